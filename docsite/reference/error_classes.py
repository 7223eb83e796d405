"""Every class of error, with its codes, its fields and a message."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from docsite.reference.text import code, head, prose, table
from truename import errors
from truename.auth.network.addresses import AddressRefused
from truename.cli._errors import UsageError
from truename.compat.openai_tools import _TEXTS, AgentsError
from truename.errors import CODES, Reason, TruenameError
from truename.gateway.upstream_errors import UpstreamError
from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["page"]

_INTRODUCTION: Final = """All errors are subclasses of `truename.errors.TruenameError`. An error has a `code` for programs, typed fields, and a text of two parts: what
happened, and what to do. Two errors of one class with equal fields are equal. Several problems at once are an `ExceptionGroup`.

The gateway answers a tool call that fails with an `isError` result that has the text, and other requests with the JSON-RPC code. Commands end with
the exit status: 1 for findings, 2 for wrong use, 3 for a server that cannot be used."""
# What each field has; with a class, what it has there.
_FIELDS: Final[Mapping[str, str]] = {
    "code": "the code of the error",
    "text": "the text that was to be a tool",
    "position": "the index of the first wrong character",
    "reason": "the cause, as one word",
    "InvalidToolId.reason": "the cause, in words",
    "LedgerError.reason": "the cause, in words",
    "name": "the name that the error is about",
    "DuplicateTool.name": 'the name that both have; "": they have one id',
    "dialect": "the client, framework or provider whose rules apply",
    "reasons": "each cause, with a code and a text",
    "suggestions": "known names that are similar",
    "existing": "the first owner of the name or id",
    "duplicate": "the second owner",
    "remedy": "the advice, a sentence",
    "id": "the tool's id; None: not known",
    "styles": "the styles that have a legal name for the tool",
    "style": "the style that was to be used",
    "file": "the file or database",
    "MigrationError.file": 'the file with the problem; "": none',
    "key": 'the key or the entry in it; "": all of it',
    "problem": "the fact, without a full stop",
    "holder": "the tool that has the name",
    "claimant": "the tool that was to get it",
    "path": "the file or database of the ledger",
    "line": "the line with the problem; 0: not known",
    "origin": "the server's key",
    "count": "the limit, or the number of such tools",
    "recorded": "the value in the ledger",
    "wanted": "the value of the configuration or of the caller",
    "version": "the format of the file",
    "field": "the path of the wrong field",
    "principal": "the caller",
    "quota": "the setting of the quota",
    "limit": "the value of the quota",
    "retry_after": "seconds until another try may succeed",
    "trail": "the steps of the resolution",
    "detail": "a continuation of the text",
    "candidates": "names that lead to exactly one tool each",
    "successor": "the name to use instead; None: none was given",
    "since": "the day on which the name was retired",
    "decision": "the reason of the decision, in words",
    "rule": "the name of the rule",
    "approval_key": "the key to approve",
    "call": "the id of the call",
    "state": "the state of the first call: seen, running, done, failed",
    "server": "the server's key",
    "kind": "the cause, as one word",
    "output": "the last lines of the program's standard error",
    "host": "the host of the address",
    "fact": "the problem, without a full stop",
    "advice": "the advice, a sentence",
    "other": "a further name or value in the message",
}
_ID: Final = ToolId.parse("github@1/create_issue@1")
_OTHER: Final = ToolId.parse("jira@1/create_issue@1")
_KEY: Final = "github@1/create_issue@1"

# One error of each class.
_EXAMPLES: Final[Sequence[TruenameError]] = (
    errors.InvalidToolId(text="GitHub/", position=7, reason="the tool is missing"),
    errors.InvalidName(
        name="fs.list", dialect="openai", reasons=(Reason("character", "'.' at 2 is not in [a-zA-Z0-9_-]"),)
    ),
    errors.UnknownDialect(name="curser", suggestions=("cursor",)),
    errors.DuplicateTool(existing="github", duplicate="jira", name="create_issue"),
    errors.NoLegalName(id=_ID, dialect="openai", styles=("prefixed", "declared"), style="canonical"),
    errors.ConfigError(
        file="truename.toml", key="max_waiting", problem="it is not a whole number", remedy="Write it as 512."
    ),
    errors.StoreError(file="state.db", key="", problem="the disk is full", remedy="Free some space.", code="unusable"),
    errors.LedgerError(code="conflict", name="create_issue", holder=_ID, claimant=_OTHER),
    errors.MigrationError(problem="two tools would have the name issue_create", remedy="Choose another name."),
    errors.InvalidCall(field="arguments", problem="is not an object"),
    errors.InvalidPayload(field="messages[3].tool_calls[0].id", problem="is missing"),
    errors.QuotaExceeded(principal="ann", quota="calls_per_minute", limit=60, retry_after=12),
    errors.UnknownTool(text="create_isue", suggestions=("create_issue",)),
    errors.UnknownToolId(text="github@2/create_issue", suggestions=("github@1/create_issue@1",)),
    errors.AmbiguousName(text="create_issue", candidates=("github_create_issue", "jira_create_issue")),
    errors.RetiredName(text="new_issue", id=_ID, successor="create_issue", since="2026-11-01"),
    errors.NotAllowed(id=_ID, rule="read-only"),
    errors.ApprovalRequired(id=_ID, approval_key=_KEY),
    errors.CallRepeated(id=_ID, call="call_1", state="done"),
    UpstreamError(server="github", kind="timeout", problem="did not answer", remedy="Try again."),
    AddressRefused(host="10.0.0.7", problem="it is a private address", remedy="Add it to allow_addresses."),
    UsageError(fact="there is no file mcp.json", advice="Name a file."),
    AgentsError(code=next(iter(_TEXTS)), name="search", other="crm"),
)


def page() -> str:
    """Return the page."""
    parts = [head("Errors", "the classes of errors"), _INTRODUCTION, "## Codes"]
    parts.append(
        table(
            ("code", "meaning", "JSON-RPC", "exit status", "class"),
            (
                (code(name), info.meaning, str(info.jsonrpc), str(info.exit_status), ", ".join(_classes(name)))
                for name, info in CODES.items()
            ),
        )
    )
    parts.append("## Classes")
    for example in _EXAMPLES:
        parts += _section(example)
    return "\n\n".join(parts) + "\n"


def _tree() -> dict[str, list[str]]:
    """Return the codes of each class, as the tree of the module's docstring lists them."""
    codes: dict[str, list[str]] = {}
    last = ""
    for line in (errors.__doc__ or "").splitlines():
        words = line.replace("|", " ").replace("+--", " ").replace(",", " ").split()
        if "+--" in line:
            last = words[0]
        if last and not line.strip():
            break
        if last:
            codes.setdefault(last, []).extend(word for word in words if word in CODES)
    return codes


def _classes(name: str) -> list[str]:
    known = {type(one).__name__ for one in _EXAMPLES}
    found = [kind for kind, codes in _tree().items() if name in codes]
    found += [type(one).__name__ for one in _EXAMPLES if one.code == name and type(one).__name__ not in found]
    found += [type(one).__name__ for one in _EXAMPLES if f"``{name}``" in str(type(one).__doc__)]
    return [f"[`{kind}`](#{kind.lower()})" for kind in dict.fromkeys(found) if kind in known]


def _section(example: TruenameError) -> Iterator[str]:
    kind = type(example)
    module = "truename.errors" if kind.__module__ == "truename.errors" else kind.__module__
    parents = ", ".join(code(one.__name__) for one in kind.__bases__)
    yield f"### {kind.__name__}"
    yield f"`{module}.{kind.__name__}`, a subclass of {parents}."
    yield prose(inspect.cleandoc(kind.__doc__ or "").partition(">>>")[0].strip())
    names = ["code", *(field.name for field in fields(example) if field.name != "code")]
    types = {field.name: str(field.type) for field in fields(example)}
    meanings = {name: _FIELDS.get(f"{kind.__name__}.{name}") or _FIELDS[name] for name in names}
    yield table(("field", "type", "meaning"), [(code(name), code(types[name]), meanings[name]) for name in names])
    yield f"Code here: `{example.code}`. Message:"
    yield f"```text\n{example}\n```"
    if kind is AgentsError:
        yield "Its codes, each with its message (`{name}` and `{other}` are the fields):"
        yield table(("code", "message"), ((code(name), text) for name, text in _TEXTS.items()))
