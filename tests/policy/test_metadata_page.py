"""The page about contexts is right about metadata: its Python runs, and it names every field and every answer."""

from __future__ import annotations

import re
import tomllib

from tests.shared import ROOT
from truename.conventions.metadata import FIELDS
from truename.policy import read_metadata
from truename.policy.call import ORIGINS

PAGE = (ROOT / "docs" / "gateway" / "contexts.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_s_example_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "docs/gateway/contexts.md", "exec"), {"__name__": "page"})


def test_the_page_s_settings_are_read() -> None:
    (settings,) = blocks("toml")
    read = read_metadata(tomllib.loads(settings)["metadata"])

    assert set(read) == {"agenda/create_event", "agenda/delete_*"}


def test_the_page_tells_every_field_and_every_answer() -> None:
    for word in (*FIELDS, "platform", "app", "not_for_llm", "metadata"):
        assert f"`{word}`" in PAGE, word
    for origin in ORIGINS:
        assert re.search(rf"\b{origin}\b", PAGE), origin
