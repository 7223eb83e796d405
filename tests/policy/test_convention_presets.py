"""What the presets promise: names as Truename itself makes them keep to them."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from truename import Catalog, dialects, project
from truename.conventions import Convention, Declaration, lint
from truename.conventions.convention import PRESETS

# What a server may list at all: anything that can be printed.
NAMES = st.text(min_size=1, max_size=60).filter(lambda name: name.isprintable() and name.strip() != "")
LISTS = st.dictionaries(
    st.sampled_from(["git", "Data-Grout", "天気", "a b"]),
    st.lists(NAMES, max_size=4, unique=True),
    min_size=1,
)
SAFE, CANONICAL = Convention.of("provider-safe"), Convention.of("canonical", max_length=0)


def legality(names: list[str], convention: Convention) -> list[str]:
    """Return what is wrong with names as such, whatever they mean."""
    found = lint([Declaration(name=name) for name in names], convention).findings
    return [str(one) for one in found if one.rule.code < "TN150"]


@given(LISTS)
def test_the_names_that_every_client_gets_are_provider_safe(servers: dict[str, list[str]]) -> None:
    catalog = Catalog.from_mcp(servers)

    assert legality(list(project(catalog, "universal").values()), SAFE) == []


@given(LISTS)
@example({"git": ["0", "0-"]})
def test_what_becomes_of_a_name_in_an_id_is_canonical(servers: dict[str, list[str]]) -> None:
    catalog = Catalog.from_mcp(servers)
    tools = {f"{id.suite}.{id.tool}" if id.suite else id.tool for id in catalog}

    # Each by itself: two of them may well be near each other.
    assert [text for name in sorted(tools) for text in legality([name], CANONICAL)] == []


def test_clients_of_presets_are_in_the_table_and_their_rules_are_known() -> None:
    for table in PRESETS.values():
        for name in table.get("clients", ()):
            assert "chars" not in dialects.get(name).unknown
            assert "max_length" not in dialects.get(name).unknown
