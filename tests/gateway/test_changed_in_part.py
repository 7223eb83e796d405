"""What a registry shows when lists changed one by one is what it would show if all of it were made from nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import Ledger
from truename.config import ServerConfig, Settings
from truename.config.trust import Trust
from truename.gateway.registry import Registry
from truename.gateway.upstream.following import Follower
from truename.gateway.upstream.known import KnownServer
from truename.gateway.views.choice import CANONICAL, UNIVERSAL, view_for
from truename.gateway.views.view import ViewSpec
from truename.policy import Context, read_policy
from truename.trust import PinStore

if TYPE_CHECKING:
    from truename.gateway.upstream.upstream import Upstream

_SERVERS = ("mail", "Mail", "files", "web.search")
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
