"""Define every error that Truename raises, as one tree.

::

    TruenameError
    +-- InvalidToolId (ValueError)       text, position, reason      invalid_tool_id, invalid_version, invalid_encoding
    +-- InvalidName (ValueError)         name, dialect, reasons      invalid_name
    +-- UnknownDialect (LookupError)     name, suggestions           unknown_dialect
    +-- DuplicateTool                    existing, duplicate         duplicate_name, ambiguous_qualified_name,
    |                                                                duplicate_deferred, reserved_namespace
    +-- NoLegalName                      id, dialect, styles         no_legal_name
    +-- ConfigError                      file, key, remedy          invalid_config, left_alone
    |   +-- StoreError                   the same                   corrupt, newer, busy, unusable, full
    +-- LedgerError                      see the class               see the class
    +-- UpstreamError (in the gateway)   server, kind, problem      upstream_unavailable, variable_unset,
    |                                                                login_required, answer_blocked
    +-- AddressRefused (in auth)         host, problem, remedy       address_refused
    +-- MigrationError (ValueError)      file, line, problem         rename_refused, invalid_version, left_alone
    +-- InvalidCall (ValueError)         field, problem              invalid_call
    +-- InvalidPayload (ValueError)      field, problem              invalid_history, invalid_request
    +-- QuotaExceeded                    principal, quota, limit     quota_exceeded
    +-- ResolutionError (LookupError)    text, trail
    |   +-- UnknownTool                  reason, suggestions         unknown_tool
    |   |   +-- UnknownToolId            suggestions                 unknown_tool
    |   +-- AmbiguousName                candidates                  ambiguous_name
    |   +-- RetiredName                  id, successor, since        retired_name
    +-- PolicyError (PermissionError)    id, decision
        +-- NotAllowed                   rule                        unsupported, quarantined, unrecorded,
    |   |                                                            state_unavailable
        +-- ApprovalRequired             approval_key, call          approval_required
        +-- CallRepeated                 call, state                 call_reused, call_repeated

An error is a value: two errors of one type with equal fields are equal. Its text states the fact and then what to do.
Several errors at once are raised as an ``ExceptionGroup``; `ConfigErrors` collects those of one file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = [
    "CODES",
    "AmbiguousName",
    "ApprovalRequired",
    "CallRepeated",
    "ConfigError",
    "ConfigErrors",
    "DuplicateTool",
    "InvalidCall",
    "InvalidName",
    "InvalidPayload",
    "InvalidToolId",
    "LedgerError",
    "MigrationError",
    "NoLegalName",
    "NotAllowed",
    "PolicyError",
    "QuotaExceeded",
    "ResolutionError",
    "RetiredName",
    "StoreError",
    "TruenameError",
    "UnknownDialect",
    "UnknownTool",
    "UnknownToolId",
    "config_error",
    "excerpt",
    "printable",
    "spelling_remedy",
]


class CodeInfo(NamedTuple):
    """An error code outside: a JSON-RPC code, an exit status (1 findings, 2 usage, 3 upstream), and its meaning."""

    jsonrpc: int
    exit_status: int
    meaning: str


CODES: Mapping[str, CodeInfo] = {
    "invalid_tool_id": CodeInfo(-32602, 2, "The text is not a tool id."),
    "invalid_version": CodeInfo(
        -32602, 2, "The version is not a whole number from 1, is not allowed in this place, or cannot be increased."
    ),
    "invalid_encoding": CodeInfo(-32602, 2, "The text is not the encoded form of a tool id."),
    "invalid_name": CodeInfo(-32602, 2, "The name is not legal for the client."),
    "unknown_dialect": CodeInfo(-32602, 2, "No client, framework or provider has this name."),
    "duplicate_name": CodeInfo(-32602, 1, "Two tools have the same id or the same name."),
    "ambiguous_qualified_name": CodeInfo(
        -32602, 1, "A tool named `n.x` and a tool `x` in namespace `n` have the same qualified name."
    ),
    "duplicate_deferred": CodeInfo(-32602, 1, "Two deferred tools have the same name."),
    "reserved_namespace": CodeInfo(
        -32602, 1, "A namespace has the same name as its tool, which is the mark of a deferred tool."
    ),
    "no_legal_name": CodeInfo(-32602, 1, "The style has no name for the tool that the client accepts."),
    "invalid_config": CodeInfo(-32603, 2, "The configuration has an error."),
    "left_alone": CodeInfo(-32603, 2, "Truename does not change this file."),
    "conflict": CodeInfo(-32603, 1, "Another tool holds the name."),
    "corrupt": CodeInfo(-32603, 2, "The stored state is damaged, or Truename did not write it."),
    "full": CodeInfo(-32603, 1, "A limit is reached, such as the names of one server (`max_claims`)."),
    "style_mismatch": CodeInfo(-32603, 2, "The ledger was made with another style, or with other settings of names."),
    "identity_mismatch": CodeInfo(-32603, 2, "The ledger has other tool ids than the configuration declares."),
    "newer": CodeInfo(-32603, 2, "A later version of Truename wrote the stored state."),
    "not_held": CodeInfo(-32602, 2, "The ledger does not contain the name, so it cannot be changed."),
    "readonly": CodeInfo(-32603, 2, "The ledger is open for reading only, and a name was to be recorded."),
    "busy": CodeInfo(-32603, 2, "Another process uses the stored state, or the state could not be read in time."),
    "unusable": CodeInfo(-32603, 2, "The path, the disk or the database of the stored state cannot be used."),
    "withdrawn": CodeInfo(-32602, 1, "The name was retired or redirected, so no other tool can get it."),
    "invalid_day": CodeInfo(-32602, 2, "The text is not a date."),
    "rename_refused": CodeInfo(-32602, 1, "The rename was refused as a whole; nothing was changed."),
    "bound": CodeInfo(-32603, 2, "The catalogue gives a recorded id to another tool than the ledger does."),
    "upstream_unavailable": CodeInfo(-32603, 3, "The server cannot be called, or its answer did not arrive."),
    "variable_unset": CodeInfo(
        -32603, 3, "The server's entry refers to a value that is not set, so the server was not started."
    ),
    "unknown_tool": CodeInfo(-32602, 1, "No tool that the caller can use has the name."),
    "ambiguous_name": CodeInfo(-32602, 1, "Several tools match the name."),
    "retired_name": CodeInfo(-32602, 1, "The name was retired; it never leads to another tool."),
    "unsupported": CodeInfo(-32602, 1, "A rule or a person forbids the call, or the tool is not for this caller."),
    "quarantined": CodeInfo(-32602, 1, "A person has to review the tool's definition first, or rejected it."),
    "unrecorded": CodeInfo(-32603, 1, "The audit log is required and cannot be written."),
    "state_unavailable": CodeInfo(-32603, 1, "Approvals cannot be read or written, so the call was not run."),
    "address_refused": CodeInfo(-32602, 3, "The gateway may not contact this address."),
    "login_required": CodeInfo(
        -32603, 3, "The caller has to log in at the server, or to send an access token of its own."
    ),
    "answer_blocked": CodeInfo(
        -32603, 1, "A rule suspects a prompt injection in the answer, which was withheld; the call ran."
    ),
    "approval_required": CodeInfo(-32602, 1, "A person has to approve the call first."),
    "invalid_call": CodeInfo(-32602, 2, "The payload is not a call of a tool."),
    "invalid_history": CodeInfo(-32602, 2, "The recorded conversation is not one that the model's API accepts."),
    "invalid_request": CodeInfo(-32602, 2, "The request is not one that the model's API accepts."),
    "call_reused": CodeInfo(-32602, 1, "The call id was used before, for another call."),
    "call_repeated": CodeInfo(-32602, 1, "This call was started before, and was not run again."),
    "quota_exceeded": CodeInfo(-32603, 1, "The principal has reached a quota of calls."),
}


def excerpt(text: str, limit: int = 80) -> str:
    r"""Quote untrusted text for a message: printable, and cut to ``limit`` characters.

    >>> excerpt("fs.list")
    "'fs.list'"
    >>> excerpt("a" * 200, 8)
    "'aaaaaaaa' (200 characters)"
    """
    shown = text if len(text) <= limit else text[:limit]
    quoted = ascii(shown) if not shown.isprintable() else repr(shown)
    return quoted if shown is text else f"{quoted} ({len(text):,} characters)"


def printable(text: str, limit: int = 500) -> str:
    r"""Return foreign text as one printable line, cut at the limit: it goes to logs, terminals and spans.

    >>> printable("a\x1b[31mb\nc"), printable("abcdef", 3)
    ('a\\x1b[31mb\\nc', 'abc...')
    """
    cut = text if len(text) <= limit else f"{text[:limit]}..."
    return cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


def _choice(names: tuple[str, ...], word: str = "or") -> str:
    quoted = [excerpt(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"


def _values(error: TruenameError) -> dict[str, Any]:
    # Generated by the dataclass decorator for each class, the same methods would take most of the import time.
    return {field.name: getattr(error, field.name) for field in fields(error)}


def _rebuild(kind: type[TruenameError], values: dict[str, Any]) -> TruenameError:
    return kind(**values)


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why a name is not legal: a code for programs and a text for people.

    Codes: ``empty``, ``character``, ``control``, ``first``, ``last``, ``shape``, ``length``, ``reserved``,
    ``prefix``, ``server``.
    """

    code: str
    text: str


class ToolIdentity(Protocol):
    """A protocol for the `truename.ToolId` that errors carry; the class itself is in a layer above this one."""

    @property
    def integration(self) -> str:
        """The integration's name."""
        ...

    @property
    def integration_version(self) -> int:
        """The integration's version."""
        ...

    @property
    def suite(self) -> str | None:
        """The suite's name, if there is one."""
        ...

    @property
    def tool(self) -> str:
        """The tool's name."""
        ...

    @property
    def version(self) -> int:
        """The tool's version."""
        ...

    @property
    def short(self) -> str:
        """The text without versions of 1."""
        ...


@dataclass(kw_only=True, eq=False, repr=False)
class TruenameError(Exception):
    """The base class of all errors that this library raises on purpose."""

    code: str = "error"

    def __post_init__(self) -> None:
        self.args = (str(self),)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((type(self), *_values(self).values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), _values(self))


@dataclass(kw_only=True, eq=False, repr=False)
class InvalidToolId(TruenameError, ValueError):
    """A text that is not a tool id or reference, with the position (from 0) and the reason of the error."""

    text: str
    position: int
    reason: str
    code: str = "invalid_tool_id"

    def __str__(self) -> str:
        return (
            f"{excerpt(self.text)} is not a tool id: {self.reason} (at {self.position}). "
            "Write integration@version/suite.tool@version, as in salesforce@1/get_leads@1."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class InvalidName(TruenameError, ValueError):
    """A name that a dialect does not accept; ``reasons`` lists everything that is wrong with it."""

    name: str
    dialect: str
    reasons: tuple[Reason, ...]
    code: str = "invalid_name"

    def __str__(self) -> str:
        why = "; ".join(reason.text for reason in self.reasons)
        advice = "Choose another name, or leave the choice to Truename."
        return f"{excerpt(self.name)} is not legal for {self.dialect}: {why}. {advice}"


@dataclass(kw_only=True, eq=False, repr=False)
class UnknownDialect(TruenameError, LookupError):
    """A provider, client or framework that is not in the table of dialects, or a ``version`` that it cannot have."""

    name: str
    suggestions: tuple[str, ...] = ()
    version: str | None = None
    code: str = "unknown_dialect"

    def __str__(self) -> str:
        hint = f"Did you mean {_choice(self.suggestions)}?" if self.suggestions else "`truename clients` lists them."
        if self.version is not None:
            owner = self.name.partition("@")[0]
            return f"{excerpt(self.version)} is not a version of {owner}. Write {owner}, or a client as in codex@0.50."
        return f"Unknown client or provider: {excerpt(self.name)}. {hint}"


@dataclass(kw_only=True, eq=False, repr=False)
class DuplicateTool(TruenameError):
    """Two tools with the same identity or the same declared name; the error names both owners."""

    existing: str
    duplicate: str
    name: str = ""
    remedy: str = "Rename one, or choose a style that resolves clashes."
    code: str = "duplicate_name"

    def __str__(self) -> str:
        what = f"the name {excerpt(self.name)}" if self.name else "one identity"
        owners = f"{self.existing} and {self.duplicate}"
        return f"{owners} both have {what}. {self.remedy}"


@dataclass(kw_only=True, eq=False, repr=False)
class NoLegalName(TruenameError):
    """A tool for which no spelling of the style is legal in the dialect; ``styles`` lists the styles that are."""

    id: ToolIdentity
    dialect: str
    styles: tuple[str, ...]
    style: str = ""
    reasons: tuple[Reason, ...] = ()
    code: str = "no_legal_name"

    def __str__(self) -> str:
        why = "; ".join(reason.text for reason in self.reasons)
        detail = f" ({why})" if why else ""
        return (
            f"{self.id} has no legal name for {self.dialect} in style {self.style}{detail}. "
            f"Use a style that is legal there: {', '.join(self.styles)}."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ConfigError(TruenameError):
    """An error in a configuration: the file, the key in it, the problem and the remedy."""

    file: str
    key: str
    problem: str
    remedy: str
    code: str = "invalid_config"

    def __str__(self) -> str:
        where = f"{self.file}: {self.key}" if self.key else self.file
        return f"{where}: {self.problem}. {self.remedy}"


_LEDGER_TEXT: Mapping[str, str] = {
    "conflict": "{name!r} is held by {holder}, so {claimant} cannot have it. A name never passes to another tool; "
    "choose another name.",
    "corrupt": "{path}, line {line} is damaged ({reason}). Restore the file from a copy; nothing was changed.",
    "full": "Server {origin!r} needs more than {count} names, the limit for one server. "
    "Leave out tools that it does not need, or raise max_claims.",
    "style_mismatch": "This ledger was created with {recorded}, not with {wanted}. "
    "Run `truename rename --all` to change it, or use another ledger (--state PATH).",
    "identity_mismatch": "Tool {name!r} of server {origin!r} is recorded as {recorded} and now declared as {wanted}. "
    "Run `truename rename --ids` to redirect the old ids to the new ones, or declare the recorded id.",
    "newer": "{path} was written by a newer Truename (format {version}). Upgrade Truename; nothing was changed.",
    "not_held": "{name!r} was never shown, so there is nothing to change. See `truename history NAME`.",
    "readonly": "The ledger is open for reading only; {name!r} was not recorded. Open it for writing.",
    "busy": "{path} is locked by another process. Wait for that process, or stop it, and try again.",
    "unusable": "{path} cannot be used as a ledger: {reason}. Check the path and the disk; nothing was recorded.",
    "bound": "{claimant} is recorded for tool {name!r} of server {origin!r}, and this catalogue gives it to another. "
    "Build the catalogue with bound=ledger.bindings() and owners=ledger.origins().",
    "invalid_day": "{wanted!r} is not a date. Write it like 2027-02-01.",
    "withdrawn": "{name!r} was retired or redirected, so {claimant} cannot have it. Choose another name.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class LedgerError(TruenameError):
    """An error of the ledger; the code says which fields are set.

    - ``conflict``: name, holder, claimant; ``withdrawn``: name, claimant
    - ``bound``: claimant, origin, name; ``full``: origin, count
    - ``style_mismatch``: recorded, wanted
    - ``identity_mismatch``: origin, name, recorded, wanted, and as count the number of such tools
    - ``not_held`` and ``readonly``: name; ``invalid_day``: wanted
    - ``corrupt``: path, line, reason; ``newer``: path, version; ``busy``: path; ``unusable``: path, reason

    If ``remedy`` is set, the text consists of ``path``, ``reason`` and ``remedy``.
    """

    code: str
    name: str = ""
    holder: ToolIdentity | None = None
    claimant: ToolIdentity | None = None
    path: Path | str | None = None
    line: int = 0
    reason: str = ""
    origin: str = ""
    count: int = 0
    recorded: str = ""
    wanted: str = ""
    version: int = 0
    remedy: str = ""

    def __str__(self) -> str:
        if self.remedy:
            return f"{self.path}: {self.reason}. {self.remedy}"
        return _LEDGER_TEXT[self.code].format_map(vars(self))


@dataclass(kw_only=True, eq=False, repr=False)
class ResolutionError(TruenameError, LookupError):
    """A name that did not resolve to exactly one tool; ``trail`` lists the steps that were tried."""

    text: str
    trail: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class UnknownTool(ResolutionError):
    """A name that no available tool has.

    ``reason`` is ``unknown``, ``absent`` (the tool that has the name is not available now), ``malformed``, or
    ``moved``: the tool was renamed without an alias, or the caller's protocol version differs. It is ``renamed`` if the
    server of an absent tool probably renamed it, to the one in ``suggestions``. It is ``unread`` (code
    ``busy``) if other gateways may have given the name to a tool, and what they wrote could not be read in time.
    ``detail`` continues the text: for ``malformed`` the problem, else the protocol versions concerned ("" if none).
    """

    reason: str = "unknown"
    suggestions: tuple[str, ...] = ()
    id: ToolIdentity | None = None
    detail: str = ""
    code: str = "unknown_tool"

    def __str__(self) -> str:
        if self.reason == "renamed" and self.suggestions:
            name = excerpt(self.suggestions[0])
            return (
                f"{excerpt(self.text)} was probably renamed to {name} by its server; nothing was run. "
                f"Nobody has confirmed that: read what {name} does, and call it only if it is the tool that you mean."
            )
        if self.reason in ("absent", "renamed"):
            return (
                f"{excerpt(self.text)} is {self.id}, which is not available now; nothing was run. "
                "It works again when its server offers it; no other tool has this name."
            )
        if self.reason == "unread":
            return (
                f"Whether {excerpt(self.text)} is a tool is not known now, as the state cannot be read; nothing was "
                "run. Try again, or call a tool by the name with which it is listed."
            )
        since = "" if self.reason == "malformed" else self.detail
        fact = f"Tool {excerpt(self.text)} does not exist{since}; nothing was run."
        if self.reason == "malformed":
            fact = f"{excerpt(self.text)} is not a valid tool name: {self.detail}; nothing was run."
        if not self.suggestions:
            return f"{fact} List the tools and call one of them exactly."
        if self.reason == "moved":
            return f"{fact} It is {_choice(self.suggestions)} now. Call it exactly."
        advice = "Call one of these exactly." if len(self.suggestions) > 1 else "Call it exactly."
        return f"{fact} Did you mean {_choice(self.suggestions)}? {advice}"


@dataclass(kw_only=True, eq=False, repr=False)
class UnknownToolId(UnknownTool, KeyError):
    """An id that is not in a catalogue or a name table; ``suggestions`` are the ids there that are near to it."""

    def __str__(self) -> str:
        fact = f"No tool here has the id {excerpt(self.text)}."
        if not self.suggestions:
            return f"{fact} Iterate over the catalogue to see the ids; `resolve` finds tools by other names."
        return f"{fact} Did you mean {_choice(self.suggestions)}?"


@dataclass(kw_only=True, eq=False, repr=False)
class AmbiguousName(ResolutionError):
    """A text that several tools match; ``candidates`` are their unique names."""

    candidates: tuple[str, ...] = ()
    code: str = "ambiguous_name"

    def __str__(self) -> str:
        return f"{excerpt(self.text)} is not unique: {_choice(self.candidates, 'and')}. Call one of these exactly."


@dataclass(kw_only=True, eq=False, repr=False)
class RetiredName(ResolutionError):
    """A name that was withdrawn and will never mean another tool."""

    id: ToolIdentity | None = None
    successor: str | None = None
    since: str = ""
    code: str = "retired_name"

    def __str__(self) -> str:
        advice = (
            f"Call {excerpt(self.successor)}." if self.successor else "List the tools and call one of them exactly."
        )
        return f"{excerpt(self.text)} was retired on {self.since}; nothing was run. {advice}"


@dataclass(kw_only=True, eq=False, repr=False)
class PolicyError(TruenameError, PermissionError):
    """A call of a known tool that this caller may not make now."""

    id: ToolIdentity
    decision: str = ""


@dataclass(kw_only=True, eq=False, repr=False)
class NotAllowed(PolicyError):
    """A call that a rule forbids; ``rule`` names the rule, ``remedy`` says what to do."""

    rule: str = ""
    code: str = "unsupported"
    remedy: str = "Use another tool."

    def __str__(self) -> str:
        why = f": {self.decision}" if self.decision else ""
        return f"{self.id} is not allowed here (rule {self.rule}{why}); nothing was run. {self.remedy}"


@dataclass(kw_only=True, eq=False, repr=False)
class ApprovalRequired(PolicyError):
    """A call that needs an approval first: ``approval_key`` is the key to approve, ``remedy`` says how if known."""

    approval_key: str = ""
    call: str = ""
    remedy: str = ""
    code: str = "approval_required"

    def __str__(self) -> str:
        remedy = self.remedy or f"Ask for it under {self.approval_key}."
        return f"{self.id} needs an approval{f' ({self.decision})' if self.decision else ''}; nothing was run. {remedy}"


_REPEATED: Final = {
    "call_reused": "The call id {call} was already used for another call of {id}{other}; nothing was run. "
    "Give each call its own id.",
    "call_repeated": "The call {call} of {id} was already started{other}; it was not run again. Make a new call.",
}


_QUOTAS: Final = {
    "calls_per_minute": "{principal} has made {limit:,} calls in this minute, which is the limit; nothing was run. "
    "Try again in {seconds:,} seconds.",
    "concurrent_calls": "{principal} has {limit:,} calls running, which is the limit; nothing was run. "
    "Try again when one of them has ended.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class QuotaExceeded(TruenameError):
    """A call beyond a quota of its principal.

    ``quota`` is ``calls_per_minute`` or ``concurrent_calls``, ``limit`` its value, and ``retry_after`` the seconds
    after which a call may succeed.

    >>> print(QuotaExceeded(principal="ann", quota="calls_per_minute", limit=60, retry_after=11.2))
    ann has made 60 calls in this minute, which is the limit; nothing was run. Try again in 12 seconds.
    """

    principal: str
    quota: str
    limit: int
    retry_after: float = 1.0
    code: str = "quota_exceeded"

    def __str__(self) -> str:
        who, seconds = printable(self.principal, 80), math.ceil(self.retry_after)
        return _QUOTAS[self.quota].format(principal=who, limit=self.limit, seconds=seconds)


@dataclass(kw_only=True, eq=False, repr=False)
class InvalidCall(TruenameError, ValueError):
    """A payload that is not a call: ``field`` is the path of the wrong field, ``problem`` describes it."""

    field: str
    problem: str
    code: str = "invalid_call"

    def __str__(self) -> str:
        return (
            f"Invalid call: {excerpt(self.field)[1:-1]} {self.problem}; nothing was run. Correct it and send it again."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class CallRepeated(PolicyError):
    """A call id that was used before: for another call (``call_reused``) or for the same one (``call_repeated``).

    ``call`` is the id, ``state`` the state of the first call (seen, running, done, failed).
    """

    call: str
    state: str = ""
    code: str = "call_repeated"

    def __str__(self) -> str:
        other = f" (it is {self.state})" if self.state else ""
        return _REPEATED[self.code].format(call=excerpt(self.call), id=self.id, other=other)


@dataclass(kw_only=True, eq=False, repr=False)
class StoreError(ConfigError):
    """Stored state that cannot be used: ``file`` and ``key`` say where, the code says why.

    ``corrupt`` (damaged, or not a file of Truename), ``newer`` (written by a later version), ``busy`` (another process
    holds the lock), ``unusable`` (disk or path), ``full``.
    """


@dataclass(kw_only=True, eq=False, repr=False)
class MigrationError(TruenameError, ValueError):
    """A change of names that was refused as a whole; nothing was changed.

    The code is ``rename_refused``, or ``invalid_version`` for a protocol version that cannot be incremented.
    """

    problem: str
    remedy: str
    file: str = ""
    line: int = 0
    code: str = "rename_refused"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return f"{place}{self.problem}. {self.remedy}"


_ADVICE: Final = {
    "invalid_history": ("Invalid history", "Correct it there; nothing was rewritten."),
    "invalid_request": ("Invalid request for the model", "Use a value that this API supports."),
}


@dataclass(kw_only=True, eq=False, repr=False)
class InvalidPayload(TruenameError, ValueError):
    """A history (``invalid_history``) or a request (``invalid_request``) that a model API does not accept.

    ``field`` is the path of the wrong field, ``problem`` describes it.
    """

    field: str
    problem: str
    code: str = "invalid_history"

    def __str__(self) -> str:
        fact, advice = _ADVICE[self.code]
        return f"{fact}: {excerpt(self.field, 200)[1:-1]} {self.problem}. {advice}"


_LONGEST_KEY: Final = 200
_LONGEST_WORD: Final = 100


def config_error(file: str, key: str, problem: str, remedy: str) -> ConfigError:
    """Build a `ConfigError`; ``problem`` is a clause without a full stop, ``remedy`` a sentence."""
    return ConfigError(file=file, key=key, problem=problem, remedy=remedy)


def spelling_remedy(word: object, known: Iterable[str]) -> str:
    """Return a remedy for a misspelt word: the nearest known word, else all known words.

    >>> spelling_remedy("tols", ["tools", "servers"]), spelling_remedy("x", ["tools", "servers"])
    ("Did you mean 'tools'?", 'Use one of: servers, tools.')
    """
    known = sorted(known)
    close = get_close_matches(str(word)[:_LONGEST_WORD], known, 1)
    return f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(known)}."


class ConfigErrors:
    """The errors found in one file, in the order found; ``remedy`` is the default remedy of an error without one."""

    def __init__(self, file: str, remedy: str = "") -> None:
        self._file = file
        self._remedy = remedy
        self._found: list[ConfigError] = []

    def add(self, key: str, problem: str, remedy: str = "") -> None:
        """Add an error for a key of the file."""
        # A hostile file may have keys of megabytes; the beginning is enough to locate the error.
        self._found.append(config_error(self._file, key[:_LONGEST_KEY], problem, remedy or self._remedy))

    def apart(self) -> ConfigErrors:
        """Return an empty collection for the same file, for errors that may be discarded."""
        return ConfigErrors(self._file, self._remedy)

    def take(self, other: ConfigErrors) -> None:
        """Add the errors of another collection."""
        self._found += other._found

    def adopt(self, error: Exception) -> None:
        """Add a `ConfigError`, or a group of them, that another reader raised; raise any other exception again."""
        if isinstance(error, ExceptionGroup):
            for one in error.exceptions:
                self.adopt(one)
        elif isinstance(error, ConfigError):
            self.add(error.key, error.problem, error.remedy)
        else:
            raise error

    def all(self) -> tuple[ConfigError, ...]:
        """Return the errors in the order found."""
        return tuple(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def raise_any(self) -> None:
        """Raise the only error, or several as an `ExceptionGroup`; do nothing if there is none."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            message = f"{self._file} has {len(self._found)} errors"
            raise ExceptionGroup(message, self._found)
