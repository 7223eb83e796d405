"""One ledger in several hands: threads, gateways with their own catalogues, and files that change underneath."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from truename import Catalog, Ledger, ToolId, project, resolve
from truename.errors import InvalidName, LedgerError, RetiredName, UnknownTool

if TYPE_CHECKING:
    from pathlib import Path

WEATHER = ToolId.parse("weather/get")


def shown(ledger: Ledger, *ids: str) -> dict[str, str]:
    names = project(Catalog.of(*ids), "universal", ledger=ledger)
    return {str(id): name for id, name in names.items()}


def test_threads_that_share_a_ledger_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "names.ledger"
    ledger = Ledger.open(path)
    failures: list[LedgerError] = []

    def work(number: int) -> None:
        try:
            for round_ in range(10):
                shown(ledger, f"s{number}/t{round_}", "common/tool")
        except LedgerError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(Ledger.open(path, readonly=True).bindings()) == 81


def test_an_id_on_record_is_not_given_to_another_server(ledger: Ledger) -> None:
    project(Catalog.from_mcp({"Weather": ["get"]}), "universal", ledger=ledger)
    careless = Catalog.from_mcp({"Weather": ["get"], "weather": ["get"]})

    with pytest.raises(LedgerError) as caught:
        project(careless, "universal", ledger=ledger)

    assert (caught.value.code, caught.value.claimant, caught.value.origin) == ("bound", WEATHER, "Weather")
    assert "bound=ledger.bindings()" in str(caught.value)

    careful = Catalog.from_mcp({"Weather": ["get"], "weather": ["get"]}, bound=ledger.bindings())
    names = project(careful, "universal", ledger=ledger)

    assert careful[names.id_of("weather_get")].origin.server == "Weather"


def test_two_that_began_alike_can_not_give_one_id_to_two_servers(tmp_path: Path) -> None:
    first, second = (Ledger.open(tmp_path / "names.ledger") for _ in range(2))
    one = Catalog.from_mcp({"Weather": ["get"]}, bound=first.bindings())
    two = Catalog.from_mcp({"weather": ["get"]}, bound=second.bindings())
    project(one, "universal", ledger=first)

    with pytest.raises(LedgerError, match="is recorded for tool 'get' of server 'Weather'"):
        project(two, "universal", ledger=second)


def test_what_another_process_withdraws_counts_after_a_refresh(tmp_path: Path) -> None:
    running, operator = (Ledger.open(tmp_path / "names.ledger") for _ in range(2))
    names = project(Catalog.of("x/y", "x/z"), "universal", ledger=running)
    nothing_new = running.refresh()
    operator.retire("x_y")
    operator.redirect("old_z", "x/z")
    something_new = running.refresh()

    assert (nothing_new, something_new) == (False, True)
    with pytest.raises(RetiredName):
        resolve("x_y", names)
    assert str(resolve("old_z", names).id) == "x@1/z@1"


def test_a_ledger_in_memory_is_always_fresh() -> None:
    assert Ledger.memory().refresh() is False


def test_another_ledger_in_its_place_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "names.ledger", tmp_path / "other.ledger"
    ledger, another = Ledger.open(path), Ledger.open(other)
    shown(ledger, "w/get")
    shown(another, "v/get")
    another.close()
    other.replace(path)

    for _ in range(2):
        with pytest.raises(LedgerError, match="it was moved, removed or replaced while it was in use"):
            shown(ledger, "w/get", "w/put")
    assert ledger.holder("w_get") == ToolId.parse("w/get")
    ledger.close()
    # The log beside the file holds changes of the file that was replaced.
    with pytest.raises(LedgerError, match=r"write-ahead log beside it \(names.ledger-wal\) belongs to another file"):
        Ledger.open(path)
    (tmp_path / "names.ledger-wal").unlink()
    (tmp_path / "names.ledger-shm").unlink()
    with pytest.raises(LedgerError, match="another database was put in its place"):
        Ledger.open(path)


def test_a_ledger_that_is_removed_while_it_is_used_is_told(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "names.ledger")
    shown(ledger, "w/get")
    (tmp_path / "names.ledger").unlink()
    with pytest.raises(LedgerError) as gone:
        shown(ledger, "w/get", "w/put")
    assert (ledger.holder("w_get"), gone.value.code) == (ToolId.parse("w/get"), "unusable")


@pytest.mark.parametrize("text", ["", " ", "a\nb", "x" * 1_025, "\u202ea"])
def test_what_can_not_be_told_is_neither_retired_nor_redirected(ledger: Ledger, text: str) -> None:
    shown(ledger, "w/get")

    with pytest.raises(InvalidName):
        ledger.redirect(text, "w/get")
    with pytest.raises(InvalidName):
        ledger.retire(text)
    with pytest.raises(InvalidName):
        ledger.retire("w_get", successor=text)


@pytest.mark.parametrize("spelling", ["fs/list", "FS@1/LIST@v1", "fs@1/list@1", "fs%401%2Flist%401", "fs~list"])
def test_an_id_is_redirected_and_retired_in_every_spelling(spelling: str) -> None:
    ledger = Ledger.memory()
    shown(ledger, "fs/list", "files/list")
    ledger.redirect(spelling, "files/list")
    names = project(Catalog.of("fs/list", "files/list"), "universal", ledger=ledger)

    for text in ("fs/list", "FS@1/LIST@1", "fs@1/list@1", "fs%401%2Flist%401", "fs~list"):
        assert str(resolve(text, names).id) == "files@1/list@1"

    ledger.retire("files@1/list@1")
    with pytest.raises(RetiredName):
        resolve("files/list", names)


def test_a_server_may_bind_no_more_identities_than_names() -> None:
    ledger = Ledger.memory(max_claims=3)

    with pytest.raises(LedgerError, match="needs more than 3 names"):
        project(Catalog.of("a/b", "a/c", "a/d", "a/e"), "native", style="canonical", ledger=ledger)

    assert dict(ledger.bindings()) == {}


def test_a_scope_of_one_server_knows_nothing_of_the_others(ledger: Ledger) -> None:
    catalog = Catalog.from_mcp({"a": ["open"], "b": ["secret"]})
    project(catalog, "universal", ledger=ledger)
    only = project(catalog.only("a"), "openai", style="on-conflict", ledger=ledger.scoped("only/a"))

    with pytest.raises(UnknownTool) as caught:
        resolve("b/secret", only)

    assert (caught.value.reason, caught.value.id) == ("unknown", None)


def test_names_framed_under_a_former_server_name_keep_their_meaning(ledger: Ledger) -> None:
    first = project(Catalog.of("a/get"), "claude-code", ledger=ledger, server_name="old")
    seen = first.dialect.shown("old", first["a@1/get@1"])
    assert seen == "mcp__old__a_get"
    settings = ledger.settings
    assert settings is not None
    ledger.restyle(type(settings)(style=settings.style, server_name="new", aliases=settings.aliases))
    catalog = Catalog.from_mcp({"a": ["get"], "mcp": ["old_a_get"]}, bound=ledger.bindings())

    names = project(catalog, "claude-code", ledger=ledger, server_name="new")

    assert str(resolve(seen, names).id) == "a@1/get@1"
