"""The names and signatures that others build on: a change here is a change of contract."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

import truename
from truename import (
    Catalog,
    Ledger,
    NameTable,
    Passthrough,
    Resolution,
    ToolId,
    ToolRef,
    UnknownToolId,
    dialects,
    project,
    resolve,
)
from truename.dialects import Detection, Dialect, Reason, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

PUBLIC = [
    "AmbiguousName",
    "Catalog",
    "ConfigError",
    "DuplicateTool",
    "Explanation",
    "InvalidName",
    "InvalidToolId",
    "Ledger",
    "LedgerError",
    "NameTable",
    "NoLegalName",
    "Origin",
    "Passthrough",
    "Resolution",
    "ResolutionError",
    "RetiredName",
    "Style",
    "Tool",
    "ToolId",
    "ToolRef",
    "TruenameError",
    "UnknownDialect",
    "UnknownTool",
    "UnknownToolId",
    "WireName",
    "dialects",
    "errors",
    "project",
    "resolve",
]


def test_the_public_names_are_these() -> None:
    assert truename.__all__ == PUBLIC
    assert all(hasattr(truename, name) for name in PUBLIC)


@pytest.mark.parametrize(
    "module", ["", ".catalog", ".dialects", ".errors", ".identity", ".ledger", ".naming"], ids=lambda name: name or "."
)
def test_every_package_says_what_it_exports(module: str) -> None:
    package = import_module(f"truename{module}")

    assert len(set(package.__all__)) == len(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
    assert package.__doc__


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (ToolId.parse, ["text"]),
        (ToolId, ["integration", "integration_version", "suite", "tool", "version"]),
        (ToolRef.parse, ["text"]),
        (Catalog.of, ["*ids", "aliases=None"]),
        (Catalog.from_mcp, ["servers", "aliases=None", "bound=None", "identities=None", "owners=None", "strict=True"]),
        (Catalog.from_file, ["path", "aliases=None", "strict=True"]),
        (dialects.names, ["older=False"]),
        (dialects.versions, ["client"]),
        (dialects.get, ["name_or_alias"]),
        (dialects.detect, ["client_info=None", "headers=None"]),
        (Dialect.check, ["self", "wire_name", "server='truename'"]),
        (Dialect.shown, ["self", "server", "wire_name"]),
        (Dialect.simulate, ["self", "server", "wire_names"]),
        (
            project,
            ["catalog", "dialect", "style='prefixed'", "ledger=None", "overrides=None", "server_name='truename'"],
        ),
        (NameTable.id_of, ["self", "name"]),
        (NameTable.explain, ["self", "id"]),
        (resolve, ["text", "names", "on_unknown='raise'"]),
        (Resolution, ["id", "step", "trail=()"]),
        (Passthrough, ["trail", "id=None", "step='passthrough'"]),
        (Ledger.memory, ["max_claims=20000"]),
        (Ledger.open, ["path", "readonly=False", "max_claims=20000"]),
        (Ledger.bindings, ["self"]),
        (Ledger.retire, ["self", "name", "successor=None"]),
        (Ledger.redirect, ["self", "old", "new", "until=''"]),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_the_signatures_are_these(function: Callable[..., Any], parameters: list[str]) -> None:
    found = inspect.signature(function).parameters.values()

    shown = [("*" if p.kind is p.VAR_POSITIONAL else "") + p.name for p in found]
    defaults = ["" if p.default is p.empty else f"={p.default!r}" for p in found]
    assert [a + b for a, b in zip(shown, defaults, strict=True)] == parameters


@pytest.mark.parametrize(
    ("function", "keyword_only"),
    [
        (project, {"style", "ledger", "overrides", "server_name"}),
        (resolve, {"on_unknown"}),
        (Catalog.of, {"aliases"}),
        (Catalog.from_mcp, {"identities", "owners", "strict"}),
        (Ledger.open, {"max_claims"}),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_options_are_given_by_name(function: Callable[..., Any], keyword_only: set[str]) -> None:
    found = inspect.signature(function).parameters.values()

    assert {p.name for p in found if p.kind is p.KEYWORD_ONLY} == keyword_only


def test_what_comes_back_has_these_types() -> None:
    catalog = Catalog.from_mcp({"a": [{"name": "b", "description": "c"}]})
    names = project(catalog, dialects.get("openai"))
    (id,) = catalog

    assert isinstance(dialects.names(), tuple)
    assert all(isinstance(name, str) for name in dialects.names())
    assert isinstance(dialects.get("openai").styles, tuple)
    assert isinstance(dialects.get("openai").check("a b")[0], Reason)
    assert dialects.get("openai").check("a_b") == ()
    assert dialects.get("openai").shown("a", "b") == "b"
    assert isinstance(dialects.get("openai").simulate("a", ["b"]), Simulation)
    assert isinstance(dialects.detect({"name": "cursor-vscode"}), Detection)
    assert (catalog[id].origin.server, catalog[id].origin.name) == ("a", "b")
    assert catalog[id].definition["description"] == "c"
    assert isinstance(names, NameTable)
    assert names[id] == names[str(id)] == "a_b"
    assert names.id_of("a_b") == id
    assert resolve("a_b", names) == Resolution(id, "table", ("table: found",))
    assert isinstance(resolve("a_b", names).trail, tuple)


def test_the_examples_of_the_design_hold() -> None:
    catalog = Catalog.of("salesforce@1/create_lead@1", "salesforce@2/create_lead@1", "data-grout@1/prism.refract@1")
    names = project(catalog, dialects.get("openai"))

    assert repr(ToolId.parse("Salesforce@v1/GET_LEADS@1")) == "ToolId('salesforce@1/get_leads@1')"
    assert names["salesforce@2/create_lead@1"] == "sf_create_lead_2"
    for form in ("dg_prism_refract", "data-grout/prism.refract", "data-grout%401~prism.refract%401"):
        assert str(resolve(form, names).id) == "data-grout@1/prism.refract@1"
    assert dialects.get("anthropic").check("fs.list") == (Reason("character", "'.' at 2 is not in [a-zA-Z0-9_-]"),)


def test_the_version_is_that_of_the_package() -> None:
    assert truename.__version__ == version("truename")


CATALOG = Catalog.of("salesforce@1/get_leads@1", "git@1/push@1")


@pytest.mark.parametrize(
    ("id", "suggestions"),
    [
        ("salesforce/get_leads", ("salesforce@1/get_leads@1",)),
        ("git%401/push", ("git@1/push@1",)),
        (ToolId.parse("git@1/pusch@1"), ("git@1/push@1",)),
        ("git@2/push@1", ("git@1/push@1",)),
        ("\x1b[31m", ()),
        ("", ()),
    ],
)
@pytest.mark.parametrize("mapping", [CATALOG, project(CATALOG, "openai")], ids=["catalog", "table"])
def test_a_look_up_of_an_id_that_is_not_there_names_those_near_to_it(
    mapping: Catalog | NameTable, id: str | ToolId, suggestions: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownToolId) as caught:
        mapping[id]

    assert isinstance(caught.value, KeyError)
    assert caught.value.suggestions == suggestions
    assert str(caught.value).isprintable()
    assert all(near in str(caught.value) for near in suggestions)
    assert id not in mapping
    assert mapping.get(id) is None
    assert mapping.get(id, "none") == "none"


def test_a_table_of_some_tools_suggests_none_of_the_others() -> None:
    names = project(CATALOG, "openai").among({ToolId.parse("git@1/push@1")}, None)

    for id in ("salesforce@1/get_leads@1", "salesforce/get_leads", "salesforce@1/get_lead@1"):
        with pytest.raises(UnknownToolId) as caught:
            names[id]
        assert caught.value.suggestions == ()
    with pytest.raises(UnknownToolId):
        names.explain("salesforce@1/get_leads@1")
