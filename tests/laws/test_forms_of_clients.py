"""What a client makes of a name never means another tool, also for names made of the words that clients add."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from truename import Catalog, dialects, project, resolve
from truename.errors import ResolutionError

STYLES = [
    (name, style) for name in dialects.names(older=True) for style in dialects.get(name).styles if style != "declared"
]
WORDS = st.lists(st.sampled_from(["mcp", "truename", "tool", "a", "2"]), min_size=1, max_size=4)
NAMES = st.builds(lambda words, join: join.join(words), WORDS, st.sampled_from(["_", "_", "__", "-", ".", "--"]))
LABELS = st.sampled_from(["mcp", "truename", "tool", "a", "b", "2"])
SERVERS = st.dictionaries(LABELS, st.lists(NAMES, max_size=6, unique=True), max_size=4)
_PROBE = "truename_probe"


def forms(server_name: str) -> set[tuple[str, str]]:
    """Return what clients put before and behind a name of a gateway with this key."""
    shown = [dialects.get(name).shown(server_name, _PROBE) or "" for name in dialects.names(older=True)]
    return {(before, after) for before, found, after in (text.partition(_PROBE) for text in shown) if found}


@settings(max_examples=400)
@given(SERVERS, st.sampled_from(STYLES), st.sampled_from(["truename", "mcp", "tool", "a", "2", "tool tool2"]))
@example({"a": ["mcp_truename"], "tool": ["a"]}, ("librechat", "prefixed"), "truename")
@example({"mcp": ["get", "truename"], "truename": ["truename"]}, ("crewai", "prefixed"), "truename")
@example({"tool": ["tool_tool", "tool"], "a": ["tool"]}, ("zed", "on-conflict"), "tool")
@example({"mcp": ["mcp--mcp", "mcp--truename"]}, ("roo-code", "prefixed"), "truename")
def test_what_a_client_makes_of_a_name_runs_its_tool_or_none(
    servers: dict[str, list[str]], kind: tuple[str, str], server_name: str
) -> None:
    client, style = kind
    if dialects.get(client).check("ok", server_name):
        return
    names = project(Catalog.from_mcp(servers), client, style=style, server_name=server_name)

    for (id, name), (before, after) in product(names.items(), forms(server_name)):
        try:
            ran = resolve(f"{before}{name}{after}", names).id
        except ResolutionError:
            continue
        assert ran == id, (name, f"{before}{name}{after}")
    for id, name in names.items():
        shown = dialects.get(client).shown(server_name, name)
        assert shown is not None
        assert resolve(shown, names).id == id


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(["mcp", "truename", "tool", "get", "a/get"]), min_size=6, max_size=14),
    st.sampled_from([(client, style) for client, style in STYLES if style in {"on-conflict", "prefixed"}]),
    st.sampled_from(["truename", "tool", "mcp"]),
)
@example(["truename", "mcp", "truename", "a/get", "mcp", "truename"], ("universal", "on-conflict"), "truename")
def test_a_long_name_of_the_words_of_clients_is_shortened_with_the_words_that_keep_it_apart(
    words: list[str], kind: tuple[str, str], server_name: str
) -> None:
    client, style = kind
    if dialects.get(client).check("tool_get_tool_5a70", server_name):
        return
    names = project(
        Catalog.from_mcp({"git": ["_".join(words), "_".join(words[1:])]}), client, style=style, server_name=server_name
    )

    assert [reason for name in names.values() for reason in dialects.get(client).check(name, server_name)] == []


@pytest.mark.parametrize(
    ("servers", "server_name", "expected"),
    [
        ({"a": ["mcp_search"]}, "search", ["a_mcp_search_tool"]),
        ({"mcp": ["search"]}, "search", ["tool_mcp_search_tool"]),
        ({"tool": ["a"]}, "tool", ["tool2_tool_a"]),
        ({"search": ["a"]}, "search", ["tool_search_a"]),
    ],
)
def test_a_word_keeps_a_name_apart_from_what_clients_make_of_others(
    servers: dict[str, list[str]], server_name: str, expected: list[str]
) -> None:
    names = project(Catalog.from_mcp(servers), "openai", server_name=server_name)

    assert list(names.values()) == expected
