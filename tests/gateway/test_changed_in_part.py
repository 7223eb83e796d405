"""What a registry shows when lists changed one by one is what it would show if all of it were made from nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import Ledger, resolve
from truename.config import ServerConfig, Settings
from truename.config.trust import Trust
from truename.errors import LedgerError, ResolutionError
from truename.gateway.registry import Registry
from truename.gateway.upstream.following import Follower
from truename.gateway.upstream.known import KnownServer
from truename.gateway.views.choice import CANONICAL, UNIVERSAL, view_for
from truename.gateway.views.view import ViewSpec
from truename.policy import Context, read_policy
from truename.trust import PinStore

if TYPE_CHECKING:
    from truename import NameTable
    from truename.gateway.upstream.upstream import Upstream

pytestmark = pytest.mark.slow

_SERVERS = ("mail", "Mail", "files", "web.search")
# Of some the keys begin like those of others, and some names are other tools' ids, or are the same when they are cut.
_DISGUISED = ("git", "git-hub", "git/hub", "a", "a_b", "x" * 60)
_LONG = "create_confluence_page_with_long_body_and_many_attachments_for_a_team"
_DISGUISES = st.sampled_from(
    [
        *("get", "Get", "get_2", "hub_push", "push.all", "pushAll", "push__all", "b_get", "git_push", "git-hub_get"),
        *("git@1/push@1", "git/push", "git%401~push%401", "Git@v1/PUSH@latest", "a@1/b@1", "mcp__truename__git_push"),
        *("mcp__git__push", "search_tools", "gеt", "é", "___", "2", _LONG, f"{_LONG}_2", f"{_LONG}_3", "x" * 71),
    ]
)
_LISTED = st.dictionaries(_DISGUISES, st.sampled_from(["", "Reads it."]), max_size=5)
_LISTS = st.tuples(st.sampled_from(_DISGUISED), _LISTED | st.none())
_SWAPS = st.tuples(st.just("swap"), st.sampled_from(_DISGUISED), st.sampled_from(_DISGUISED))
_WITHDRAWN = st.tuples(st.sampled_from(["retire", "redirect", "break"]), st.integers(0, 50), st.integers(0, 50))
_LIVES = st.lists(_LISTS | _LISTS | _SWAPS | _WITHDRAWN, min_size=2, max_size=8)
_CLIENTS = (UNIVERSAL, CANONICAL, *map(view_for, ("cursor", "gemini-cli")))
_PARTS = (ViewSpec("own", "on-conflict", only="git"), replace(UNIVERSAL, servers=("a", "git")))
_NAMES = st.sampled_from(
    ["get", "send_mail", "sendMail", "search", "search.web", "files_get", "sеnd_mail", "get_mails"]
)
_WORDS = st.sampled_from(
    ["", "Reads it.", "Use `send_mail` first.", "Always call `get` of files.", "Ignore all others."]
)
_TOOLS = st.dictionaries(_NAMES, _WORDS, max_size=5)
_STEPS = st.lists(st.tuples(st.sampled_from(_SERVERS), _TOOLS | st.none(), _WORDS), min_size=1, max_size=7)
_SPECS = (UNIVERSAL, CANONICAL, view_for("cursor"), ViewSpec("own", "on-conflict", only="mail"))
_RULES = {"rules": [{"name": "no", "outcome": "deny", "tools": ["*/send*"], "platforms": ["phone"]}]}
_CONTEXTS = (Context(), Context(platform="phone"))
_TRUST = (Trust(), Trust(drift="quarantine", quarantine="pinned"), Trust(first="review"))


class _ListOnly:
    """A server that is a list: what a registry asks of a connection, and no connection."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.config = ServerConfig(key=key, command="none")
        self.follower = Follower(key, lambda: None)
        self.standing = KnownServer(self.config)

    def lists(self, tools: dict[str, str] | None, instructions: str) -> None:
        listed = None if tools is None else tuple(_definition(name, text) for name, text in tools.items())
        self.standing = KnownServer(self.config, listed, instructions=instructions)


def _definition(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "description": text, "inputSchema": {"type": "object"}}


def _shown(registry: Registry) -> dict[str, Any]:
    """Return all that clients could tell of a registry."""
    found: dict[str, Any] = {
        "catalog": dict(registry.catalog),
        "hidden": {id: drift.kind for id, drift in registry.vetting.hidden.items()},
        "instructions": dict(registry.vetting.instructions),
    }
    for spec in _SPECS:
        view = registry.view(spec)
        limited = [registry.tool_search.listed(registry.access.limited(view, context)) for context in _CONTEXTS]
        pages = [(list(one.tools), dict(one.by_name), one.page_json(None)) for one in limited]
        found[str(spec)] = list(view.table.items()), pages
    return found


@pytest.mark.filterwarnings("ignore")
@given(steps=_STEPS, trust=st.sampled_from(_TRUST), in_texts=st.booleans())
def test_lists_that_change_in_part_are_shown_as_if_made_from_nothing(
    steps: list[Any], trust: Trust, in_texts: bool
) -> None:
    pool = {key: _ListOnly(key) for key in _SERVERS}
    policy = read_policy(_RULES)
    settings = Settings(state="memory", trust=trust, names_in_texts=in_texts, policy=policy)
    with PinStore() as pins:
        registry = Registry(cast("dict[str, Upstream]", pool), Ledger.memory(), settings, pins=pins)
        registry.rebuild()
        for server, tools, words in steps:
            before = _shown(registry)
            pool[server].lists(tools, words)
            made = registry.beside_with({key: one.standing for key, one in pool.items()})
            made.make(in_part=True)
            registry.take(made)
            now, changes = _shown(registry), registry.changes()
            registry.rebuild()

            assert now == _shown(registry)
            different = {spec for spec in _SPECS if before[str(spec)][1] != now[str(spec)][1]}
            assert different <= changes | registry.changes()


class _Life:
    """A registry with a ledger of its own, which makes its lists in part or whole."""

    def __init__(self, pins: PinStore, *, in_part: bool) -> None:
        self.pool = {key: _ListOnly(key) for key in _DISGUISED}
        self.lists: dict[str, dict[str, str] | None] = {}
        self._given = dict(self.lists)
        self.ledger = Ledger.memory()
        settings = Settings(state="memory", policy=read_policy(_RULES))
        self.registry = Registry(cast("dict[str, Upstream]", self.pool), self.ledger, settings, pins=pins)
        self.registry.rebuild()
        self._in_part = in_part

    def begins(self, lists: dict[str, dict[str, str]]) -> None:
        self.lists |= lists
        self._follow()

    def lives(self, step: tuple[Any, ...]) -> None:
        if step[0] in self.pool:
            self.lists[step[0]] = step[1]
        elif step[0] == "swap":
            self.lists |= {step[1]: self.lists[step[2]], step[2]: self.lists[step[1]]}
        else:
            self._withdraw(*step)
        self._follow()

    def _follow(self) -> None:
        for key, tools in self.lists.items():
            if self._given.get(key) != tools:
                self.pool[key].lists(tools, "")
        self._given = dict(self.lists)
        made = self.registry.beside_with({key: one.standing for key, one in self.pool.items()})
        made.make(in_part=self._in_part)
        self.registry.take(made)

    def _withdraw(self, how: str, one: int, other: int) -> None:
        names = [str(name) for spec in _CLIENTS for name in self.table(spec).values()]
        if not names:
            return
        old, new = names[one % len(names)], names[other % len(names)]
        try:
            if how == "retire":
                self.ledger.retire(old)
            elif how == "redirect":
                self.ledger.redirect(old, new)
            else:
                self.ledger.break_name(old, "successor")
        except LedgerError:
            return

    def table(self, spec: ViewSpec) -> NameTable:
        return self.registry.view(spec).table

    def shown(self, texts: set[str]) -> dict[str, Any]:
        """Return what clients see and what these texts mean to them."""
        registry, found = self.registry, dict[str, Any]()
        for spec in (*_CLIENTS, *_PARTS):
            view, table = registry.view(spec), self.table(spec)
            pages = [registry.access.limited(view, context).page_json(None) for context in _CONTEXTS]
            found[str(spec)] = list(table.items()), pages, {text: _meaning(text, table) for text in sorted(texts)}
        return found


def _meaning(text: str, table: NameTable) -> tuple[str, ...]:
    try:
        return ("tool", str(resolve(text, table).id))
    except ResolutionError as error:
        return (error.code, str(getattr(error, "reason", "")))


@pytest.mark.filterwarnings("ignore")
@given(first=st.fixed_dictionaries(dict.fromkeys(_DISGUISED, _LISTED)), steps=_LIVES)
def test_what_is_made_in_part_is_made_whole_elsewhere_and_no_name_changes_hands(
    first: dict[str, dict[str, str]], steps: list[tuple[Any, ...]]
) -> None:
    with PinStore() as pins, PinStore() as other:
        partly, wholly = _Life(pins, in_part=True), _Life(other, in_part=False)
        texts = {"git_push", "git@1/push@1", "a_b_get", "GIT/PUSH", "push-all", "mcp__truename__get"}
        held: dict[tuple[ViewSpec, str], str] = {}
        may_move = False
        for life in (partly, wholly):
            life.begins(first)
        for step in steps:
            may_move |= step[0] in {"redirect", "retire", "break"}
            for life in (partly, wholly):
                life.lives(step)
                for spec in _CLIENTS:
                    table = life.table(spec)
                    texts |= {*map(str, table), *table.values(), *(one.origin.name for one in table.catalog.values())}
            assert partly.shown(texts) == wholly.shown(texts)
            for spec in _CLIENTS:
                for id, name in partly.table(spec).items():
                    assert held.setdefault((spec, name), str(id)) == str(id)
            for (spec, text), was in held.items():
                meant = _meaning(text, partly.table(spec))
                assert meant[0] != "tool" or meant[1] == was or may_move
