"""A table of some of the tools: the others keep their names and ids, and leave no other trace."""

from __future__ import annotations

import pytest

from truename import Catalog, Ledger, NameTable, project, resolve
from truename.errors import UnknownTool
from truename.ledger.seen import SeenLedger

SECRET = {"vault": ["read_file"], "open": ["readFile", "vault@1/old@1"]}


def seen(servers: dict[str, list[str]] = SECRET, ledger: Ledger | None = None) -> NameTable:
    """Return what somebody sees to whom the server ``vault`` is hidden."""
    ledger = ledger or Ledger.memory()
    catalog = Catalog.from_mcp(servers, bound=ledger.bindings(), owners=ledger.origins())
    table = project(catalog, "universal", ledger=ledger)
    shown = [id for id in table if id.integration != "vault"]
    return table.among(shown, SeenLedger(ledger, lambda id: id.integration != "vault"))


@pytest.mark.parametrize(
    "text", ["vault_read_file", "vault/read_file", "vault@1~read_file", "mcp__truename__vault_read_file"]
)
def test_the_name_and_the_id_of_a_hidden_tool_are_unknown(text: str) -> None:
    with pytest.raises(UnknownTool) as caught:
        resolve(text, seen())

    assert (caught.value.reason, "vault" in str(caught.value.suggestions)) == ("unknown", False)


def test_another_spelling_of_a_hidden_tool_is_as_if_it_were_not_there() -> None:
    without = seen({"open": SECRET["open"]})

    for text in ("read_file", "readFile", "READ-FILE"):
        assert resolve(text, seen()).id == resolve(text, without).id


@pytest.mark.parametrize("text", ["vault_old", "vault@1/old@1", "vault/old"])
def test_the_name_and_the_id_of_a_hidden_tool_that_left_never_fall_to_another(text: str) -> None:
    ledger = Ledger.memory()
    project(Catalog.from_mcp({"vault": ["old"]}), "universal", ledger=ledger)

    with pytest.raises(UnknownTool) as caught:
        resolve(text, seen(ledger=ledger))

    assert caught.value.reason == "unknown"


def test_what_was_redirected_to_a_hidden_tool_is_unknown() -> None:
    ledger = Ledger.memory()
    names = seen(ledger=ledger)
    ledger.redirect("open_read_file", "vault/read_file")

    with pytest.raises(UnknownTool) as caught:
        resolve("open_read_file", names)

    assert caught.value.reason == "unknown"
