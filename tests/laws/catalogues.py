"""Generated catalogues: servers and tools with the names that break things, small enough to shrink."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from truename import Catalog

__all__ = ["CATALOGUES", "LABELS", "NAMES", "listed"]

# Words that meet: verbs, numbers that look like suffixes, what clients put in front, other scripts, separators.
_WORDS: Final = [
    "get",
    "tool",
    "data",
    "Data",
    "lead",
    "2",
    "3",
    "mcp",
    "truename",
    "search",
    "a",
    "create",
    "天気",
    "é",
]
_JOINS: Final = ["_", "-", "", "__", ".", " ", ":", "/"]
_ODD: Final = [
    "class",
    "___",
    "🌦️",
    "__get_instructions__",
    "21st_magic",
    "functions.get_data",
    "mcp__truename__get_data",
    "a@1/get_data@1",
    "getURLs",
    "create_confluence_page_with_long_body_and_many_attachments_for_a_team",
    "delete_confluence_page_with_long_body_and_many_attachments_for_a_team",
    "delete_confluence_page_with_long_body_and_many_attachments_for_a_team_2",
    "x" * 70,
    "tool_" + "y" * 130,
]


def _joined(words: list[str], join: str) -> str:
    return join.join(words)


_JOINED: Final = st.builds(_joined, st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4), st.sampled_from(_JOINS))
NAMES: Final = _JOINED | st.sampled_from(_ODD)
_LABELS: Final = ["a", "A", "get", "get_data", "salesforce", "sf", "data-grout", "truename", "mcp", "天気"]
LABELS: Final = st.sampled_from([*_LABELS, "@acme/mcp-server-lead", "x" * 60])
_SERVERS: Final = st.dictionaries(LABELS, st.lists(NAMES, max_size=6, unique=True), max_size=4)
_VERSIONS: Final = st.lists(
    st.builds(
        "{}@{}/{}@{}".format,
        st.sampled_from(["a", "sf", "salesforce"]),
        st.sampled_from([1, 2, 10]),
        st.sampled_from(["get", "get_2", "fs.list", "create_confluence_page_with_long_body_and_many_attachments"]),
        st.sampled_from([1, 2, 3]),
    ),
    max_size=5,
    unique=True,
)


def listed(servers: dict[str, list[str]], versions: list[str] = []) -> Catalog:  # noqa: B006
    """Return these servers' tools and, beside them, bare identities with versions."""
    catalog = Catalog.from_mcp(servers)
    return catalog.with_tools(tool for id, tool in Catalog.of(*versions).items() if id not in catalog)


CATALOGUES: Final = st.builds(listed, _SERVERS, _VERSIONS)
