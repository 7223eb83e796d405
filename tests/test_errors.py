"""Errors as values: typed fields, one code each, a sentence of fact and one of what to do."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from truename import ToolId, errors
from truename.dialects import Reason
from truename.errors import (
    CODES,
    AmbiguousName,
    ApprovalRequired,
    CallRepeated,
    ConfigError,
    ConfigErrors,
    DuplicateTool,
    InvalidCall,
    InvalidName,
    InvalidPayload,
    InvalidToolId,
    LedgerError,
    MigrationError,
    NoLegalName,
    NotAllowed,
    PolicyError,
    QuotaExceeded,
    ResolutionError,
    RetiredName,
    StoreError,
    TruenameError,
    UnknownDialect,
    UnknownTool,
    UnknownToolId,
    excerpt,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

AB, AC = ToolId.parse("a/b"), ToolId.parse("a/c")
WHY = (Reason("character", "'.' at 1 is not in [a-z]"), Reason("length", "it is long"))

EXAMPLES: list[TruenameError] = [
    InvalidToolId(text="x", position=1, reason="there is no '/'"),
    InvalidName(name="a.b", dialect="openai", reasons=WHY),
    UnknownDialect(name="cursr", suggestions=("cursor",)),
    UnknownDialect(name="zzz"),
    DuplicateTool(existing="crm.find", duplicate="find", name="crm.find", code="ambiguous_qualified_name"),
    DuplicateTool(existing="find", duplicate="find", name="find", code="reserved_namespace"),
    DuplicateTool(existing="find", duplicate="find", name="find", code="duplicate_deferred"),
    DuplicateTool(existing="a", duplicate="b"),
    DuplicateTool(existing="a", duplicate="b", name="x"),
    NoLegalName(id=AB, dialect="openai", styles=("prefixed",), style="canonical", reasons=WHY),
    NoLegalName(id=AB, dialect="openai", styles=("prefixed",), style="canonical"),
    StoreError(
        file="approvals.json", key="", problem="it is damaged", remedy="Restore it from a copy.", code="corrupt"
    ),
    InvalidCall(field="arguments.q", problem="is not a text"),
    InvalidPayload(field="messages[2].tool_calls", problem="is not a list", code="invalid_history"),
    InvalidPayload(field="tool_choice", problem="names no tool", code="invalid_request"),
    CallRepeated(id=AB, call="call_1", state="done"),
    CallRepeated(id=AB, call="call_1", code="call_reused"),
    ConfigError(file="f.toml", key="a.b", problem="it is not a text", remedy="Write a text."),
    ConfigError(file="f.toml", key="", problem="it is empty", remedy="Write something."),
    ConfigError(file="f.json", key="", problem="it is read-only", remedy="Nothing was changed.", code="left_alone"),
    LedgerError(code="conflict", name="x", holder=AB, claimant=AC),
    LedgerError(code="corrupt", path=Path("l"), line=3, reason="its checksum does not fit"),
    LedgerError(code="full", origin="a", count=3),
    LedgerError(code="style_mismatch", recorded="style = 'a'", wanted="style = 'b'"),
    LedgerError(code="identity_mismatch", origin="sf", name="x", recorded=str(AB), wanted=str(AC), count=2),
    LedgerError(code="newer", path=Path("l"), version=9),
    LedgerError(code="not_held", name="x"),
    LedgerError(code="readonly", name="x"),
    LedgerError(code="busy", path=Path("l")),
    LedgerError(code="unusable", path=Path("l"), reason="No space left on device"),
    LedgerError(code="withdrawn", name="x", claimant=AC),
    LedgerError(code="bound", name="x", claimant=AC, origin="a"),
    LedgerError(code="invalid_day", wanted="soon"),
    UnknownTool(text="x"),
    UnknownTool(text="x", suggestions=("y",)),
    UnknownTool(text="x", suggestions=("y", "z", "w")),
    UnknownTool(text="x", reason="absent", id=AB),
    UnknownTool(text="x", reason="renamed", id=AB, suggestions=("y",)),
    UnknownTool(text="x", reason="renamed", id=AB),
    UnknownTool(text="x", reason="malformed", detail="it is encoded twice"),
    UnknownTool(text="x", reason="moved", suggestions=("y",), detail=" since protocol 0.3"),
    UnknownTool(text="x", reason="moved"),
    UnknownTool(text="x", reason="unread", code="busy"),
    UnknownToolId(text="x"),
    UnknownToolId(text="x", suggestions=("y",)),
    MigrationError(problem="two names would become one", remedy="Choose another.", file="f.py", line=3),
    AmbiguousName(text="x", candidates=("y", "z")),
    RetiredName(text="x", id=AB, since="2026-11-22"),
    RetiredName(text="x", id=AB, successor="y", since="2026-11-22"),
    NotAllowed(id=AB, rule="read-only"),
    NotAllowed(id=AB, rule="trust", decision="Its definition is pending review.", code="quarantined"),
    NotAllowed(id=AB, rule="audit", code="unrecorded"),
    NotAllowed(id=AB, rule="approvals", code="state_unavailable"),
    ApprovalRequired(id=AB, approval_key="k"),
    QuotaExceeded(principal="ann", quota="calls_per_minute", limit=60, retry_after=11.2),
    QuotaExceeded(principal="ann", quota="concurrent_calls", limit=5),
]


def tree(kind: type[TruenameError]) -> Iterator[type[TruenameError]]:
    for child in kind.__subclasses__():
        yield child
        yield from tree(child)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_an_error_says_a_fact_and_what_to_do(error: TruenameError) -> None:
    text = str(error)

    assert re.fullmatch(r".+?[.?] [A-Z`].*[.?]", text, re.DOTALL)
    assert "None" not in text
    assert error.args == (text,)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_an_error_is_a_value(error: TruenameError) -> None:
    twins = [pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)]

    assert [error] * 3 == twins
    assert {hash(twin) for twin in twins} == {hash(error)}
    assert [str(twin) for twin in twins] == [str(error)] * 3
    assert sum(error == other for other in EXAMPLES) == 1


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_every_error_has_a_code_with_a_meaning_outside(error: TruenameError) -> None:
    info = CODES[error.code]

    assert info.jsonrpc in {-32602, -32603}
    assert info.exit_status in {1, 2, 3}


OWN = [kind for kind in tree(TruenameError) if kind.__module__ == "truename.errors"]


def test_every_class_and_every_code_has_an_example_above() -> None:
    # What the layers above raise has its tests there.
    leaves = {kind for kind in OWN if not kind.__subclasses__() and kind.__name__ != "UpstreamError"}
    codes = {code for code in CODES if not code.startswith(("upstream", "variable", "address", "login", "answer"))}

    assert {type(error) for error in EXAMPLES} >= leaves
    assert {error.code for error in EXAMPLES} | {"invalid_version", "invalid_encoding"} == codes


def test_the_codes_of_one_class_are_those_of_the_tree() -> None:
    assert [kind.__name__ for kind in OWN if kind.__name__ not in str(errors.__doc__)] == []
    docs = f"{errors.__doc__} {LedgerError.__doc__}"
    assert [code for code in CODES if code not in docs] == []


def test_every_code_has_its_meaning_in_one_sentence() -> None:
    meanings = [info.meaning for info in CODES.values()]

    assert [text for text in meanings if not re.fullmatch(r"[A-Z][^.]*(?:`[^`]*`[^.]*)*\.", text)] == []
    assert len(set(meanings)) == len(meanings)


def test_the_exported_names_are_sorted_and_whole() -> None:
    assert sorted(errors.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == errors.__all__
    assert {kind.__name__ for kind in OWN} <= set(errors.__all__)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (InvalidToolId, ValueError),
        (InvalidName, ValueError),
        (UnknownDialect, LookupError),
        (ResolutionError, LookupError),
        (UnknownTool, ResolutionError),
        (UnknownToolId, UnknownTool),
        (UnknownToolId, KeyError),
        (AmbiguousName, ResolutionError),
        (RetiredName, ResolutionError),
        (PolicyError, PermissionError),
        (NotAllowed, PolicyError),
        (ApprovalRequired, PolicyError),
    ],
)
def test_the_tree_meets_the_errors_of_python(kind: type[TruenameError], builtin: type[Exception]) -> None:
    assert issubclass(kind, builtin)
    assert issubclass(kind, TruenameError)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fs.list", "'fs.list'"),
        ("天気", "'天気'"),
        ("it's", '"it\'s"'),
        ("a\nb", r"'a\nb'"),
        ("\u202e天", r"'\u202e\u5929'"),
        ("a" * 81, f"'{'a' * 80}' (81 characters)"),
        ("a" * 10_000_000, f"'{'a' * 80}' (10,000,000 characters)"),
    ],
)
def test_hostile_text_is_shown_short_and_printable(text: str, expected: str) -> None:
    assert excerpt(text) == expected


def test_the_faults_of_a_file_are_kept_in_order_and_raised_together() -> None:
    errors = ConfigErrors("servers.toml", "Correct the entry.")
    errors.raise_any()
    errors.add("a" * 10_000, "is not a name")
    kept = ConfigErrors("other.toml")
    kept.add("b", "is not a number", "Write a number.")

    errors.adopt(ExceptionGroup("several", kept.all()))
    errors.take(errors.apart())

    assert [(len(one.key), one.problem, one.remedy) for one in errors.all()] == [
        (len(errors.all()[0].key), "is not a name", "Correct the entry."),
        (1, "is not a number", "Write a number."),
    ]
    assert len(errors.all()[0].key) < 1_000
    with pytest.raises(ExceptionGroup, match=r"servers\.toml has 2 errors"):
        errors.raise_any()


def test_one_fault_of_a_file_is_raised_as_itself_and_what_is_no_fault_is_passed_on() -> None:
    errors = ConfigErrors("servers.toml")
    errors.add("b", "is not a number")

    with pytest.raises(ConfigError, match="is not a number"):
        errors.raise_any()
    with pytest.raises(KeyError, match="not a fault"):
        errors.adopt(KeyError("not a fault"))
