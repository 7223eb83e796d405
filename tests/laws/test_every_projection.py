"""What holds for every catalogue, in every dialect and every style that it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.laws.catalogues import CATALOGUES, listed
from truename import Catalog, Resolution, dialects, project, resolve
from truename.errors import DuplicateTool, InvalidName, NoLegalName, ResolutionError
from truename.identity import fold

if TYPE_CHECKING:
    from truename import NameTable

PAIRS = [(name, style) for name in dialects.names(older=True) for style in dialects.get(name).styles]
KINDS = st.sampled_from([pair for pair in PAIRS if pair[1] != "declared"])
CALLED_LIKE_THE_GATEWAY = listed({"weather": ["search"], "truename": ["weather_search", "truename_search"]})
ILLEGAL_EDGES = listed({"a": ["__get_instructions__", "_x", "x_", "3d", "-a-"]}, ["a@1/3d@2", "a@1/3d@3", "a@2/3d@1"])


def check(names: NameTable, catalog: Catalog) -> None:
    """Assert all that a table promises."""
    dialect, server = names.dialect, names.server_name
    assert set(names) == set(catalog)
    assert [(id, name, dialect.check(name, server)) for id, name in names.items() if dialect.check(name, server)] == []
    if names.style.name != "canonical":
        assert len({fold(name) for name in names.values()}) == len(names)
    seen = dialect.simulate(server, names.values())
    assert (seen.dropped, dict(seen.merged), seen.refused) == ((), {}, ())
    assert len(set(seen.shown.values())) == len(names)
    for id, name in names.items():
        assert resolve(name, names).id == id
        assert resolve(seen.shown[name], names).id == id
        assert resolve(str(id), names).id == id
        assert names.id_of(name) == id
        assert name in str(names.explain(id))
        assert str(id) in str(names.explain(id))


@settings(max_examples=300)
@given(CATALOGUES, KINDS, st.randoms(use_true_random=False))
@example(CALLED_LIKE_THE_GATEWAY, ("claude-code", "prefixed"), None)
@example(CALLED_LIKE_THE_GATEWAY, ("opencode", "on-conflict"), None)
@example(ILLEGAL_EDGES, ("google-gemini", "on-conflict"), None)
@example(ILLEGAL_EDGES, ("openai-agents-python-prefix", "dotted-double"), None)
def test_a_table_is_total_legal_one_to_one_and_free_of_order(
    catalog: Catalog, kind: tuple[str, str], random: object
) -> None:
    client, style = kind
    shuffled = list(catalog.values())
    if random is not None:
        random.shuffle(shuffled)  # type: ignore[attr-defined]

    names = project(catalog, client, style=style)

    check(names, catalog)
    assert dict(names) == dict(project(Catalog(shuffled), client, style=style))


@settings(max_examples=100)
@given(CATALOGUES, st.sampled_from([name for name, style in PAIRS if style == "declared"]))
def test_declared_names_are_taken_as_they_are_or_everything_wrong_is_told(catalog: Catalog, client: str) -> None:
    names, errors = attempted(catalog, client)

    assert {type(error) for error in errors} <= {NoLegalName, DuplicateTool, InvalidName}
    assert all("a style" in str(error) for error in errors if not isinstance(error, InvalidName))
    if names is not None:
        check(names, catalog)
        assert dict(names) == {id: tool.origin.name for id, tool in catalog.items()}


def attempted(catalog: Catalog, client: str) -> tuple[NameTable | None, tuple[Exception, ...]]:
    try:
        return project(catalog, client, style="declared"), ()
    except ExceptionGroup as group:
        return None, group.exceptions


@settings(max_examples=60)
@given(CATALOGUES, st.sampled_from(["truename", "gate", "a", "get_data", "mcp", "My Tools", "x" * 20]))
def test_it_holds_for_every_key_that_clients_may_know_the_gateway_by(catalog: Catalog, server_name: str) -> None:
    for client in ("claude-code", "gemini-cli", "n8n", "cline", "crewai", "vscode-copilot"):
        dialect = dialects.get(client)
        if dialect.check("ok", server_name):
            with pytest.raises(ExceptionGroup) if catalog else pytest.MonkeyPatch.context():
                project(catalog, dialect, server_name=server_name)
        else:
            check(project(catalog, dialect, server_name=server_name), catalog)


@settings(max_examples=200)
@given(CATALOGUES, KINDS, st.text(max_size=30) | st.from_regex(r"[a-z0-9_/@.~%:-]{1,30}", fullmatch=True))
def test_whatever_text_comes_back_is_one_tool_or_one_of_our_errors(
    catalog: Catalog, kind: tuple[str, str], text: str
) -> None:
    names = project(catalog, kind[0], style=kind[1])

    found = answer(text, names)

    if isinstance(found, ResolutionError):
        assert str(found).isprintable()
        assert str(found).endswith((" exactly.", " name."))
    else:
        assert found.id in names
        assert found.trail[-1].startswith(f"{found.step}:")


def answer(text: str, names: NameTable) -> Resolution | ResolutionError:
    try:
        return resolve(text, names)
    except ResolutionError as error:
        return error
