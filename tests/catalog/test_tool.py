"""A tool with an operator's words: what is shown of it, and what stays about the server's own definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from truename.catalog import Catalog, Tool

SAID = {"name": "rm", "title": "Tidy", "description": "Tidies up.", "inputSchema": {"type": "object"}}


def tool(**more: Any) -> Tool:
    return next(iter(Catalog.from_mcp({"fs": [{**SAID, **more}]}).values()))


@pytest.mark.parametrize(
    ("notes", "words", "shown"),
    [
        ({}, {"description": "Deletes."}, {"description": "Deletes."}),
        ({}, {"annotations": {"destructiveHint": True}}, {"annotations": {"destructiveHint": True}}),
        (
            {"readOnlyHint": True, "openWorldHint": False},
            {"annotations": {"readOnlyHint": False}},
            {"annotations": {"readOnlyHint": False, "openWorldHint": False}},
        ),
        # A title may stand in two places; clients differ in which of them they show.
        ({"title": "Tidy"}, {"title": "Delete"}, {"title": "Delete", "annotations": {"title": "Delete"}}),
        ({"title": "Tidy"}, {"title": "Delete", "annotations": {"title": "Del"}}, {"annotations": {"title": "Del"}}),
    ],
)
def test_words_stand_in_the_place_of_the_servers(
    notes: dict[str, Any], words: dict[str, Any], shown: dict[str, Any]
) -> None:
    own = tool(annotations=notes) if notes else tool()
    told = replace(own, presented=words)
    assert {key: told.shown[key] for key in shown} == shown
    assert (told.definition, told.digest, told.id) == (own.definition, own.digest, own.id)


def test_without_words_the_servers_own_is_shown() -> None:
    own = tool()
    assert own.shown is own.definition


@pytest.mark.parametrize(
    ("words", "may_repeat"),
    [
        ({}, None),
        ({"annotations": {"idempotentHint": True}}, True),
        ({"annotations": {"idempotentHint": False}}, False),
        ({"title": "Delete"}, None),
    ],
)
def test_only_the_operator_says_that_a_call_may_be_repeated(words: dict[str, Any], may_repeat: bool | None) -> None:
    assert replace(tool(annotations={"idempotentHint": True}), presented=words).repeatable is may_repeat
