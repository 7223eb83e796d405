"""The documentation lists every route of the console with what guards it."""

from __future__ import annotations

import re

from tests.shared import ROOT
from truename.console import OPEN_ROUTES, ROUTES

PAGE = ROOT / "docs" / "gateway" / "console.md"
_ROW = re.compile(r"\| `(GET|POST) (/console[^`]*)` \| ([^|]+) \|")


def test_each_route_is_in_the_table_with_its_guard_and_no_other() -> None:
    listed = {(method, path): guard for method, path, guard in _ROW.findall(PAGE.read_text("utf-8"))}
    guards: dict[tuple[str, str], str] = dict(OPEN_ROUTES)
    for one in ROUTES:
        guards[one.method, f"/console{one.path.replace(':path', '')}"] = _guard(one.method, one.role)
    assert listed == guards


def _guard(method: str, role: str) -> str:
    return f"{role}, form of the session" if method == "POST" else role
