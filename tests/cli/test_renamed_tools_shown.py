"""Commands tell what servers renamed: why a tool is denied, where one went, and how to decide."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import HOSTILE
from tests.gateway.staged import Stage
from truename import Catalog, ToolId
from truename.config import Config, load
from truename.ledger import open_ledger
from truename.trust import PinStore
from truename.trust.rename_decisions import RenameDecisions
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

READ: dict[str, Any] = {"name": "read", "description": "Read a page of one book.", "inputSchema": {"type": "object"}}
PAGE = {**READ, "name": "page"}
WIPE: dict[str, Any] = {
    "name": "wipe",
    "description": "Wipe all shelves of a library.",
    "inputSchema": {"type": "object"},
}
CLEAN = {**WIPE, "name": "clean", "description": "Put every chair back where it was."}
SOFT = {**CLEAN, "annotations": {"readOnlyHint": True}}
SETTINGS = """
style = "on-conflict"

[mcpServers.fs]
command = "fs"

[[policy.rules]]
name = "no wiping"
outcome = "deny"
tools = ["fs/wipe"]
reason = "It cannot be undone."

[profiles.readers]
servers = ["fs"]
annotations = { readOnlyHint = true }
default = true
"""


class House:
    """A gateway that ran on a state, and commands on a dump of what its server lists now."""

    def __init__(self, folder: Path, run: Run) -> None:
        file = folder / "truename.toml"
        file.write_text(SETTINGS)
        self.config: Config = load(file)
        self._dump = folder / "fs.json"
        self._run = run

    def lists(self, *lists: tuple[dict[str, Any], ...]) -> None:
        location = self.config.state_location()
        ledger = open_ledger(location)
        with PinStore(location) as pins, RenameStore(location) as book:
            stage = Stage(self.config.settings, pins, ledger=ledger, renames=book)
            for tools in lists:
                stage.lists(*tools)
                stage.registry.catch_up()
        ledger.close()
        self._dump.write_text(json.dumps({"fs": lists[-1]}))

    def accepts(self, new: str, old: str, *, by: str = "ann") -> None:
        location = self.config.state_location()
        ledger = open_ledger(location)
        with RenameStore(location) as book:
            decisions = RenameDecisions(book, ledger)
            assert decisions.accept(ToolId.parse(new), ToolId.parse(old), by=by, until="") is not None
        ledger.close()

    def shows(self, command: str, *words: str) -> Any:
        """Run a command on the dump and the state, without the configuration: no server is started."""
        return self._run(*command.split(), *words, str(self._dump), "--state", str(self.config.state_location().path))


@pytest.fixture
def house(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> House:
    found = House(tmp_path, run)

    def listed(_: Config) -> tuple[Catalog, tuple[str, ...]]:
        return Catalog.from_mcp(json.loads((tmp_path / "fs.json").read_text())), ()

    monkeypatch.setattr("truename.cli._servers.list_tools", listed)
    return found


def said(text: str) -> str:
    return " ".join(text.split())


def test_a_new_tool_says_what_it_probably_was_and_how_to_decide(house: House, run: Run) -> None:
    house.lists((READ, WIPE), (PAGE, WIPE))
    sentence = (
        "fs@1/page@1 was certainly fs@1/read@1, which its server renamed. Until you decide, it is denied what "
        "fs@1/read@1 is denied: `truename renames accept fs@1/page@1` if it is fs@1/read@1, else "
        "`truename renames reject fs@1/page@1`."
    )
    for shown in (
        house.shows("resolve", "page"),
        house.shows("names"),
        run("policy", "explain", "page", "truename.toml"),
    ):
        assert sentence in said(shown.out)
    expected = {"state": "proposed", "old": "fs@1/read@1", "certain": True, "may_be": ["fs@1/read@1"]}
    assert house.shows("resolve", "page", "--json").document["renamed"] == expected
    (named,) = (one for one in house.shows("names", "--json").document["tools"] if one["name"] == "page")
    assert named["renamed"] == expected
    assert "renamed" not in house.shows("resolve", "wipe", "--json").document


def test_a_former_name_says_where_its_tool_went(house: House) -> None:
    house.lists((READ, WIPE), (PAGE, WIPE))
    gone = house.shows("resolve", "read")
    assert gone.status == 1
    assert "It was certainly renamed to fs@1/page@1: `truename renames accept fs@1/page@1` if that is" in said(gone.err)
    (error,) = house.shows("resolve", "fs/read", "--json").document["errors"]
    assert (error["code"], error["left"]["id"]) == ("unknown_tool", "fs@1/read@1")
    assert error["left"]["may_be"] == [{"id": "fs@1/page@1", "proposed": True}]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        (((READ, WIPE), (READ,)), "and no new tool may be it"),
        (((READ, WIPE), (READ, CLEAN)), "It may be fs@1/clean@1 now: `truename renames accept fs@1/clean@1 --was"),
        (
            ((READ, WIPE), (READ,), *[(READ, *({**CLEAN, "name": name} for name in "abcde"[:n])) for n in range(1, 6)]),
            "It may be fs@1/a@1, fs@1/b@1, fs@1/c@1 or 2 more now: `truename renames accept TOOL --was fs@1/wipe@1`",
        ),
    ],
)
def test_a_former_name_says_which_new_tools_may_have_it_if_none_is_proposed(
    house: House, lists: Any, expected: str
) -> None:
    house.lists(*lists)
    assert expected in said(house.shows("resolve", "wipe").err)


def test_a_name_that_nothing_ever_had_is_answered_as_before(house: House) -> None:
    house.lists((READ,), (READ,))
    unknown = house.shows("resolve", "zulu")
    assert (unknown.status, "renames" in unknown.err) == (1, False)


def test_a_denied_call_names_the_former_tool_whose_denial_it_inherits(house: House, run: Run) -> None:
    house.lists((READ, WIPE), (READ, CLEAN))
    denied = run("policy", "explain", "clean", "truename.toml")
    assert denied.status == 1
    assert "fs@1/clean@1: denied" in denied.out
    assert "`truename renames reject fs@1/clean@1`" in said(denied.out)
    told = run("policy", "explain", "clean", "truename.toml", "--json").document
    assert (told["id"], told["outcome"], told["as"], told["rule"]) == (
        "fs@1/clean@1",
        "deny",
        "fs@1/wipe@1",
        "no wiping",
    )
    assert [(one["as"], one["outcome"]) for one in told["decisions"]] == [
        ("fs@1/clean@1", "allow"),
        ("fs@1/wipe@1", "deny"),
    ]
    allowed = run("policy", "explain", "read", "truename.toml", "--as", "ann", "--for", "cursor")
    assert (allowed.status, "fs@1/read@1: allowed" in allowed.out) == (0, True)
    wrong = run("policy", "explain", "read", "truename.toml", "--context", "planet=mars")
    assert (wrong.status, "--context: 'planet' it is not a field" in said(wrong.err)) == (2, True)


@pytest.mark.parametrize("client", ["codex-cli", "codex", "codex@0.50", "Codex"])
def test_a_rule_about_a_client_holds_for_each_way_to_name_it(
    house: House, run: Run, tmp_path: Path, client: str
) -> None:
    house.lists((READ,))
    with (tmp_path / "truename.toml").open("a") as file:
        file.write('[[policy.rules]]\noutcome = "deny"\ntools = ["fs/read"]\nclients = ["codex-cli"]\n')

    assert run("policy", "explain", "read", "truename.toml", "--for", client).status == 1
    assert run("policy", "explain", "read", "truename.toml", "--for", "cursor").status == 0


def test_an_accepted_rename_is_told_with_who_accepted_it_and_how_to_take_it_back(house: House, run: Run) -> None:
    house.lists((READ, WIPE), (READ, CLEAN))
    house.accepts("fs/clean", "fs/wipe")
    for shown in (house.shows("resolve", "clean"), run("policy", "explain", "clean", "truename.toml")):
        assert "fs@1/clean@1 is the former fs@1/wipe@1, accepted by ann: `truename renames undo" in said(shown.out)
    assert run("policy", "explain", "clean", "truename.toml").status == 1
    house.lists((READ, CLEAN), (PAGE, CLEAN))
    house.accepts("fs/page", "fs/read", by="")
    assert "accepted by trust.auto_accept: `truename renames undo" in said(house.shows("resolve", "page").out)


def test_profiles_show_what_a_gateway_shows_of_a_tool_that_may_be_another(house: House, run: Run) -> None:
    read = {**READ, "annotations": {"readOnlyHint": True}}
    house.lists((read, WIPE), (read, SOFT))
    (profile,) = run("profiles", "truename.toml", "--json").document["profiles"]
    assert [one["id"] for one in profile["tools"]] == ["fs@1/read@1"]
    names = run("names", "truename.toml", "--profile", "readers", "--json").document["tools"]
    assert [one["name"] for one in names] == ["read"]


def test_nothing_hostile_reaches_a_terminal_and_many_renames_are_cut(house: House, run: Run) -> None:
    odd = {**CLEAN, "description": HOSTILE}
    house.lists((WIPE,), tuple({**odd, "name": f"n{number} [bold red]boo[/]"} for number in range(40)))
    shown = house.shows("names")
    assert all(character.isprintable() or character == "\n" for character in shown.out + shown.err)
    assert "and 20 more: `truename renames list` shows all." in said(shown.out)
