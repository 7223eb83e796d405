"""The page about metadata runs: its Python and its TOML, and it names every field and every answer."""

from __future__ import annotations

import re
import textwrap
import tomllib

from tests.shared import ROOT
from truename.conventions.metadata import FIELDS
from truename.policy import read_metadata
from truename.policy.call import ORIGINS

PAGE = (ROOT / "docs" / "gateway" / "metadata.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return [textwrap.dedent(text) for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)]


def test_the_page_s_example_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "docs/gateway/metadata.md", "exec"), {"__name__": "page"})


def test_the_page_s_settings_are_read() -> None:
    (settings,) = blocks("toml")
    read = read_metadata(tomllib.loads(settings)["metadata"])

    assert set(read) == {"phone/ios_*", "phone/ios_old"}


def test_the_page_tells_every_field_and_every_answer() -> None:
    for word in (*FIELDS, *ORIGINS, "platform", "app", "not_for_llm", "metadata"):
        assert f"`{word}`" in PAGE, word
