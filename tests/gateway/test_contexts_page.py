"""The page docs/gateway/contexts.md is right: its configuration is read, and its addresses work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import ROOT
from truename.config import parse
from truename.gateway.views.contexts import ContextRefused, Contexts
from truename.gateway.views.view import read_path
from truename.policy import Context

PAGE = (ROOT / "docs" / "gateway" / "contexts.md").read_text("utf-8")
(TOML,) = re.findall(r"```toml[^\n]*\n(.*?)```", PAGE, re.DOTALL)
SETTINGS = parse(TOML, Path("/etc/truename.toml"), {}).settings


def test_its_configuration_is_read() -> None:
    assert {name: one.platform for name, one in SETTINGS.contexts.items()} == {"iphone": "ios", "nightly": "android"}
    assert Contexts.of(SETTINGS).asked("nightly") == Context(platform="android", app="payments", origin="replay")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`?(/mcp/[^\s`,]*)", PAGE))))
def test_its_addresses_lead_somewhere(path: str) -> None:
    written = path.replace("CLIENT", "cursor").replace("CONTEXT", "iphone").replace("SERVER", "phone")

    assert read_path(written, {"phone"}, SETTINGS.contexts).context == "iphone"


WORDS = st.sampled_from(["platform", "app", "origin", "=", ",", " ", "ios", "replay", "llm", "iphone", "é", "\x00", ""])
TEXTS = st.lists(WORDS, max_size=12).map("".join) | st.text(max_size=60)


def answer(contexts: Contexts, name: str | None, text: str) -> Context | ContextRefused:
    try:
        return contexts.asked(name, (text,))
    except ContextRefused as refused:
        return refused


@given(TEXTS, st.sampled_from([None, "iphone", "nightly", "other"]))
def test_no_header_gets_more_than_the_operator_wrote_down(text: str, name: str | None) -> None:
    contexts = Contexts.of(SETTINGS)
    found = answer(contexts, name, text)
    if isinstance(found, ContextRefused):
        assert found.status in {400, 404}
        assert str(found).isprintable()
        return
    here = contexts.asked(name or (text if text in contexts.named else None))
    assert found.origin == here.origin
    assert here.platform in {"", found.platform}
    assert here.app in {"", found.app}
