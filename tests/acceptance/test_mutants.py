"""The rows notice what they are about: with a part of the product broken, rows of its op fail, for that reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance import serving
from tests.acceptance.driver import execute
from tests.acceptance.rows import read
from tests.acceptance.verdict import FAILED, PASSED
from tests.shared import data
from truename.compat import openai_agents, openai_tools
from truename.compat.openai_calls import AgentCall
from truename.dialects import detection
from truename.gateway.views import descriptors
from truename.identity import LookupKey, ToolNames
from truename.migration import decision_records as adr
from truename.migration import protocol_versions as versions
from truename.naming.assign import Assignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.rows import Row
    from truename import ToolId


def one_key_for_all_namespaces(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(ToolNames, "lookup_key", property(lambda names: LookupKey("bare", names.name)))


def decisions_on_a_bare_name(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(AgentCall, "_place", lambda call: (("agent",), call.tool_name))


def another_default_name_for_handoffs(broken: pytest.MonkeyPatch) -> None:
    broken.setitem(openai_tools._DEFAULT_NAMES, "handoff", lambda agent: f"hand_to_{agent}")


def another_source_of_handoffs(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(openai_agents, "get_handoff_name", lambda agent: f"hand_to_{agent}")


def a_namespace_that_is_dropped(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(AgentCall, "tool_namespace", property(lambda call: None if call.tool else "x"))


def a_trace_without_its_namespace(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(AgentCall, "trace", property(lambda call: {"label": call.qualified_name, "namespace": None}))


def a_restored_call_without_its_namespace(broken: pytest.MonkeyPatch) -> None:
    def restored(raw: dict[str, Any], _: object) -> dict[str, Any]:
        return {key: value for key, value in raw.items() if key != "namespace"}

    broken.setattr(openai_agents, "restore_tool_call_routing_identity", restored)


def all_versions_alike(broken: pytest.MonkeyPatch) -> None:
    whole = versions.compare_peers
    broken.setattr(versions, "compare_peers", lambda **said: replace(whole(**said), compatible=True))


def a_peer_that_knows_nothing(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(versions, "_EXACT", frozenset())


def a_record_without_consequences(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(adr, "_consequences", lambda *_: iter(()))


def a_record_without_the_outcome(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(adr, "_outcome", lambda *_: iter(("Chosen: something.",)))


def names_that_are_forgotten(broken: pytest.MonkeyPatch) -> None:
    """Break what happens in a used ledger only: a tool is told apart from itself."""
    whole = Assignment._holder

    def holder(run: Assignment, key: str, id: ToolId) -> ToolId | None:
        return whole(run, key, id) or (run._memory.holder(key) if run._memory else None)

    broken.setattr(Assignment, "_holder", holder)


def a_list_without_canonical_names(broken: pytest.MonkeyPatch) -> None:
    whole = descriptors._descriptor

    def descriptor(*said: Any) -> dict[str, Any]:
        return {key: value for key, value in whole(*said).items() if key not in {"canonical_name", "openai_name"}}

    broken.setattr(descriptors, "_descriptor", descriptor)


def the_default_name_of_the_sdk_unknown(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(detection, "_shared", lambda _: None)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, int]] = [
    (one_key_for_all_namespaces, "identity_pair", 1),
    (decisions_on_a_bare_name, "identity_pair", 1),
    (another_default_name_for_handoffs, "handoff", 1),
    (another_source_of_handoffs, "handoff", 1),
    (a_namespace_that_is_dropped, "deferred_surface", 3),
    (a_trace_without_its_namespace, "deferred_surface", 1),
    (a_restored_call_without_its_namespace, "deferred_surface", 2),
    (all_versions_alike, "skew", 1),
    (a_peer_that_knows_nothing, "skew", 1),
    (a_record_without_consequences, "adr", 1),
    (a_record_without_the_outcome, "adr", 1),
    (names_that_are_forgotten, "on_conflict", 10),
    (names_that_are_forgotten, "assigned", 3),
    (a_list_without_canonical_names, "descriptor", 2),
    (a_list_without_canonical_names, "descriptor_all", 1),
    (the_default_name_of_the_sdk_unknown, "detect", 2),
    (the_default_name_of_the_sdk_unknown, "list_names", 1),
]


@pytest.fixture(autouse=True)
def _unlisted() -> Iterator[None]:
    """Forget what a gateway listed before, and what a broken one did."""
    serving._listed.cache_clear()
    yield
    serving._listed.cache_clear()


def rows_of(op: str) -> list[Row]:
    return [row for row in read(data("acceptance", "seeds.json")) if row.op == op]


@pytest.mark.parametrize(("mutate", "op", "least"), MUTANTS, ids=lambda said: getattr(said, "__name__", str(said)))
def test_rows_notice_what_they_are_about(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None], op: str, least: int
) -> None:
    rows = rows_of(op)
    assert {execute(row).status for row in rows} == {PASSED}
    serving._listed.cache_clear()
    with monkeypatch.context() as broken:
        mutate(broken)
        verdicts = [execute(row) for row in rows]

    assert sum(verdict.status == FAILED for verdict in verdicts) >= least, verdicts


def test_what_only_a_used_ledger_breaks_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    names_that_are_forgotten(monkeypatch)
    # A gateway that lists for a client has a ledger of its own.
    rows = [row for row in rows_of("on_conflict") if "listing" not in row.given]
    reasons = [verdict.reason for row in rows if (verdict := execute(row)).status == FAILED]

    assert reasons
    assert all(reason.startswith("with a used ledger: ") for reason in reasons)
