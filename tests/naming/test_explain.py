"""Why a tool is called so, in words."""

from __future__ import annotations

import re

import pytest

from tests.naming.tables import table
from truename import Catalog, ToolId, project, resolve
from truename.errors import UnknownTool


@pytest.mark.parametrize(
    ("tools", "client", "style", "id", "text"),
    [
        (
            ("salesforce/x", "salesforce@2/x"),
            "openai",
            "prefixed",
            "salesforce@1/x@1",
            "sf_x is salesforce@1/x@1 (natural: alias sf for salesforce)",
        ),
        (
            ("salesforce/x", "salesforce@2/x"),
            "openai",
            "prefixed",
            "salesforce@2/x@1",
            (
                "sf_x_2 is salesforce@2/x@1 (numbered: variant 2 of salesforce@1/x@1; "
                "salesforce@1/x@1 has the better name)"
            ),
        ),
        (
            {"a": ["b_c"], "a_b": ["c"]},
            "openai",
            "prefixed",
            "a_b@1/c@1",
            ("a_b_c_fcfa is a_b@1/c@1 (digest: with a digest of its id; a@1/b_c@1 has the better name)"),
        ),
        (
            {"github": ["github_x"]},
            "openai",
            "prefixed",
            "github@1/github_x@1",
            "github_x is github@1/github_x@1 (natural: the tool's name already begins with github)",
        ),
        ({"a": ["x"]}, "openai", "declared", "a@1/x@1", "x is a@1/x@1 (declared: as declared)"),
        ({"a": ["x"]}, "openai", "on-conflict", "a@1/x@1", "x is a@1/x@1 (natural: the tool's own name)"),
        (
            {"a": ["fs.x"]},
            "openai",
            "on-conflict",
            "a@1/fs.x@1",
            "fs_x is a@1/fs.x@1 (natural: the tool's own name, adapted to the client)",
        ),
        ({"a": ["x"]}, "native", "canonical", "a@1/x@1", "a@1/x@1 is a@1/x@1 (canonical: the canonical id)"),
    ],
)
def test_the_explanation_says_why(tools: dict[str, list[str]], client: str, style: str, id: str, text: str) -> None:
    names = table(tools, client, style)

    assert str(names.explain(id)) == text
    assert names.explain(id) == names.explain(ToolId.parse(id))


@pytest.mark.parametrize("style", ["prefixed", "on-conflict"])
def test_a_digest_says_which_word_kept_the_plain_name_from_the_tool(style: str) -> None:
    names = project(Catalog.from_mcp({"web": ["search"], "docs": ["search"]}), "universal", style=style)

    assert names.explain("web@1/search@1").reason == (
        "with a digest of its id, since the plain name is not legal for universal: "
        "'web_search' is reserved by clients, providers or programming languages"
    )


def test_a_name_with_a_digest_is_known_by_its_server_s_other_name_too() -> None:
    names = table({"sf_b": ["c"], "zeta": ["b_c"]}, aliases={"zeta": "sf"})
    name = names["zeta@1/b_c@1"]

    assert re.fullmatch("sf_b_c_[0-9a-f]{4}", name)
    assert resolve(name.replace("sf_", "zeta_"), names).id == ToolId.parse("zeta/b_c")
    with pytest.raises(UnknownTool):
        resolve(f"zeta_{name}", names)
