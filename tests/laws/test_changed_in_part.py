"""A table that follows a catalogue in part is the table that is projected from nothing, whatever happened before.

Two ledgers live the same life: in one each table is made of the one before, in the other of the whole catalogue.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.laws.catalogues import LABELS, NAMES
from truename import Catalog, Ledger, NameTable, project, resolve
from truename.errors import LedgerError, ResolutionError
from truename.naming import reproject

if TYPE_CHECKING:
    from truename import Tool, ToolId

_DIALECTS = ("universal", "openai", "cursor", "claude-code", "gemini-cli", "n8n", "native")
_STYLES = ("prefixed", "on-conflict", "canonical")
_LISTS = st.tuples(LABELS, st.lists(NAMES, max_size=5, unique=True), st.integers(0, 2))
_WITHDRAWALS = st.tuples(st.sampled_from(["retire", "redirect", "break"]), st.integers(0, 50), st.integers(0, 50))
# Identities with versions, as operators declare them: of each family some come and go.
_IDS = [f"salesforce@{version}/{name}@1" for name in ("get", "get_data") for version in (1, 2, 3, 4)]
_VERSIONS = st.tuples(st.just("versions"), st.lists(st.sampled_from(_IDS), max_size=5, unique=True))
_STEPS = st.lists(_LISTS | _WITHDRAWALS | _VERSIONS, min_size=1, max_size=8)


class _Life:
    """One ledger, with the catalogue and the names of one client."""

    def __init__(self, dialect: str, style: str) -> None:
        self.ledger = Ledger.memory()
        self.dialect, self.style = dialect, style
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.versions: list[str] = []
        self.catalog = Catalog(())
        self.names: NameTable | None = None

    def listed(self, label: str, names: list[str], number: int) -> None:
        """Have a server list something, in other words if the number is another one; nothing is a server that left."""
        self.lists[label] = [{"name": name, "description": f"{name} {number}"} for name in names]
        if not names:
            del self.lists[label]

    def admitted(self) -> Catalog:
        """Return the whole catalogue of what is listed, under the ids that are on record."""
        ledger = self.ledger
        found = Catalog.from_mcp(self.lists, bound=ledger.bindings(), owners=ledger.origins(), strict=False)
        found = found.with_tools(tool for id, tool in Catalog.of(*self.versions).items() if self._is_free(found, tool))
        ledger.remember(None, (), [(tool.origin.server_id, tool.origin.name, id) for id, tool in found.items()])
        return found

    def _is_free(self, found: Catalog, tool: Tool) -> bool:
        owner = self.ledger.origin_of(tool.id)
        return tool.id not in found and owner in {None, (tool.origin.server_id, tool.origin.name)}

    def project_whole(self) -> None:
        self.catalog = self.admitted()
        self.names = project(self.catalog, self.dialect, style=self.style, ledger=self.ledger)

    def project_in_part(self) -> None:
        now = self.admitted()
        gone = [id for id in self.catalog if id not in now]
        tools = [tool for id, tool in now.items() if self.catalog.get(id) != tool]
        self.catalog, changed = self.catalog.changed(gone, tools)
        assert dict(self.catalog) == dict(now)
        if self.names is None:
            self.names = project(self.catalog, self.dialect, style=self.style, ledger=self.ledger)
        else:
            self.names = reproject(self.names, self.catalog, changed)

    def withdraw(self, what: str, one: int, other: int) -> None:
        names = [] if self.names is None else list(self.names.values())
        if not names:
            return
        old, new = names[one % len(names)], names[other % len(names)]
        with suppress(LedgerError):
            if what == "retire":
                self.ledger.retire(old)
            elif what == "redirect":
                self.ledger.redirect(old, new)
            else:
                self.ledger.break_name(old, "successor")


def _meaning(names: NameTable, text: str) -> ToolId | str | None:
    try:
        return resolve(text, names).id
    except ResolutionError as error:
        return error.code


@given(steps=_STEPS, dialect=st.sampled_from(_DIALECTS), style=st.sampled_from(_STYLES))
def test_names_made_in_part_are_those_made_from_nothing(steps: list[Any], dialect: str, style: str) -> None:
    partly, wholly = _Life(dialect, style), _Life(dialect, style)
    texts: set[str] = set()
    for first, second, *third in steps:
        for life in (partly, wholly):
            if first == "versions":
                life.versions = second
            elif isinstance(second, list):
                life.listed(first, second, *third)
            else:
                life.withdraw(first, second, *third)
        try:
            wholly.project_whole()
        except ExceptionGroup:
            # A tool has no legal name here: what is shown then is not decided by names.
            return
        partly.project_in_part()

        assert partly.names is not None
        assert wholly.names is not None
        assert list(partly.names.items()) == list(wholly.names.items())
        assert partly.names.exact == wholly.names.exact
        some = set(list(partly.names)[::2])
        assert list(partly.names.among(some, partly.ledger)) == list(wholly.names.among(some, wholly.ledger))
        texts |= {
            *map(str, partly.names),
            *partly.names.values(),
            *(tool.origin.name for tool in partly.catalog.values()),
        }
        for text in texts:
            assert _meaning(partly.names, text) == _meaning(wholly.names, text)


# Spellings of one name, of which the server that was asked first had none before.
@example(first={"a": [], "A": ["get", "get_get"]}, then=[("a", ["get", "get-get"], 0)])
@given(first=st.dictionaries(LABELS, st.lists(NAMES, max_size=5, unique=True), max_size=4), then=st.lists(_LISTS))
def test_a_catalogue_changed_in_part_is_the_catalogue_made_from_nothing(
    first: dict[str, list[str]], then: list[tuple[str, list[str], int]]
) -> None:
    before = Catalog.from_mcp(first)
    now = Catalog.from_mcp(
        {**first, **{label: [{"name": name, "at": number} for name in names] for label, names, number in then}},
        bound={(tool.origin.server_id, tool.origin.name): id for id, tool in before.items()},
        strict=False,
    )
    found, changed = before.changed(before.keys() - now.keys(), [now[id] for id in now if before.get(id) != now[id]])

    assert dict(found) == dict(now)
    assert {id for id in before.keys() | now.keys() if before.get(id) != now.get(id)} <= changed
    assert found.conflicts().keys() == now.conflicts().keys()
    for server in now.servers | before.servers:
        assert set(found.of_server(server)) == set(now.of_server(server))
        assert now.only(server).keys() == {tool.id for tool in now.of_server(server)}


def test_a_version_that_joins_is_numbered_after_a_name_with_a_digest_as_it_would_be_after_a_restart() -> None:
    found = []
    for is_in_part in (True, False):
        ledger, catalog = Ledger.memory(), Catalog.of("salesforce@1/get@1")
        project(catalog, "openai", ledger=ledger)
        ledger.retire("sf_get")
        names = project(catalog, "openai", ledger=ledger)
        assert names.explain("salesforce@1/get@1").rung == "digest"
        more, changed = catalog.changed((), Catalog.of("salesforce@2/get@1").values())
        names = reproject(names, more, changed) if is_in_part else project(more, "openai", ledger=ledger)
        found.append(dict(names))

    assert found[0] == found[1]


def test_what_joins_together_is_listed_in_the_order_of_the_catalogue_whatever_order_sets_have() -> None:
    words = [f"word{number}" for number in range(30)]
    catalog = Catalog.of("git/push")
    names = project(catalog, "openai", ledger=Ledger.memory())
    more, changed = catalog.changed((), Catalog.of(*(f"hg/{word}" for word in words)).values())

    assert list(reproject(names, more, changed).values()) == ["git_push", *(f"hg_{word}" for word in words)]


def test_another_definition_takes_the_place_of_a_tool_whether_or_not_others_have_its_name() -> None:
    for servers in ({"git": ["push"]}, {"git": ["push"], "hg": ["push"]}):
        catalog = Catalog.from_mcp(servers)
        (new,) = Catalog.from_mcp({"git": [{"name": "push", "description": "Pushes."}]}).values()
        now, changed = catalog.changed((), [new])

        assert list(now) == list(catalog)
        assert changed == {new.id}
        assert now[new.id].definition == new.definition
        assert now[new.id].origin == catalog[new.id].origin
