"""Version skew: two sides that know different names, and what is run between them (seed 002)."""

from __future__ import annotations

import pytest

from truename import Catalog, Ledger, NameTable, ToolId, project
from truename.errors import AmbiguousName, MigrationError, RetiredName, UnknownTool
from truename.migration.protocol_versions import VersionSkew, compare_peers, resolve_between

EXEC = ToolId.parse("kenny/powershell_exec")


@pytest.mark.parametrize(
    ("server", "peer", "same", "compatible"),
    [
        ("0.3", "0.3", True, True),
        ("0.3", "v0.3.0", True, True),
        ("0.3", "0.2", False, False),
        ("0.2", "0.3", False, False),
        ("0.10", "0.9", False, False),
        ("0.3.1", "0.3.2", False, True),
        ("1.2", "1.10", False, True),
        ("1.2", "2.0", False, False),
        ("1", "1.0", True, True),
        ("0", "0.0", True, True),
        ("0.3", "", False, False),
        ("0.3", "0.3\n", False, False),
        ("0.3", "\u0660.3", False, False),
        ("0.3", "9" * 5000, False, False),
    ],
)
def test_versions_are_compared_number_by_number(server: str, peer: str, same: bool, compatible: bool) -> None:
    found = compare_peers(server=server, peer=peer)

    assert found == VersionSkew(server=server, peer=peer, same=same, compatible=compatible)
    assert len(str(found)) < 300
    assert str(found).isprintable()


def test_a_report_says_what_to_do() -> None:
    assert str(compare_peers(server="0.3", peer="0.2")) == (
        "the server speaks protocol 0.3, the peer 0.2: names may have changed between them. "
        "Upgrade the older side, or both together."
    )
    assert str(compare_peers(server="0.3", peer="0.3")).endswith("names mean the same in both.")


def test_the_own_version_has_to_be_one() -> None:
    with pytest.raises(MigrationError):
        compare_peers(server="newest", peer="0.3")


def names(*tools: str) -> NameTable:
    ledger = Ledger.memory()
    ledger.break_name("powershell.exec", "powershell_exec", id=EXEC, protocol="0.3")
    return project(Catalog.from_mcp({"kenny": list(tools)}), "native", style="declared", ledger=ledger)


@pytest.mark.parametrize("text", ["powershell_exec", "kenny/powershell_exec", "Kenny@1/PowerShell_Exec"])
@pytest.mark.parametrize("peer", ["0.2", "0.3", "x"])
def test_what_was_shown_and_ids_mean_the_same_in_all_versions(text: str, peer: str) -> None:
    assert resolve_between(text, names("powershell_exec"), server="0.3", peer=peer).id == EXEC


def test_other_spellings_count_between_compatible_versions_only() -> None:
    table = names("powershell_exec")

    assert resolve_between("kenny_powershell_exec", table, server="0.3.1", peer="0.3").step == "spelling"
    with pytest.raises(UnknownTool) as caught:
        resolve_between("kenny_powershell_exec", table, server="0.3", peer="0.2")
    error = caught.value
    assert (error.reason, error.suggestions, error.id) == ("moved", ("powershell_exec",), EXEC)
    assert str(error) == (
        "Tool 'kenny_powershell_exec' does not exist in protocol 0.3 (the call is of 0.2); nothing was run. "
        "It is 'powershell_exec' now. Call it exactly."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("powershell.exec", "It is 'powershell_exec' now. Call it exactly."),
        ("powershell_exce", "Did you mean 'powershell_exec'? Call it exactly."),
        ("something", "List the tools and call one of them exactly."),
    ],
)
def test_what_moved_or_is_unknown_is_told_with_both_versions(text: str, said: str) -> None:
    with pytest.raises(UnknownTool) as caught:
        resolve_between(text, names("powershell_exec"), server="0.3", peer="0.2")

    assert (
        str(caught.value)
        == f"Tool {text!r} does not exist in protocol 0.3 (the call is of 0.2); nothing was run. {said}"
    )


def test_other_errors_are_as_ever() -> None:
    table = names("powershell_exec")

    with pytest.raises(UnknownTool) as caught:
        resolve_between("a%zz", table, server="0.3", peer="0.2")
    assert caught.value.reason == "malformed"
    two = project(Catalog.from_mcp({"a": ["get"], "b": ["get"]}), "openai")
    with pytest.raises(AmbiguousName):
        resolve_between("get", two, server="0.3", peer="0.2")
    ledger = Ledger.memory()
    lone = project(Catalog.from_mcp({"a": ["get"]}), "openai", ledger=ledger)
    ledger.retire("a_get")
    with pytest.raises(RetiredName):
        resolve_between("a_get", lone, server="0.3", peer="0.2")
