"""The preset styles: each dialect says which of them can be legal, so both tables have the same names."""

from __future__ import annotations

from truename import dialects
from truename.naming import STYLES


def test_every_preset_is_known_to_the_dialects_and_no_other() -> None:
    assert set(dialects.get("canonical").styles) <= set(STYLES)
    assert {style for name in dialects.names() for style in dialects.get(name).styles} == set(STYLES)
