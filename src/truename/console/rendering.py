r"""Render the pages of the console: Jinja templates that escape everything, under a content security policy.

Names, descriptions, errors and arguments come from servers and clients. Whatever of them does not print is shown as
its escape (``\u202e``), so that no text can hide itself or reorder the page.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from truename.errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HEADERS", "asset", "has_htmx", "render"]

HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_STATIC: Final = files("truename.console") / "static"
_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HTMX: Final = "htmx.min.js"


def _shown(value: object) -> str:
    r"""Return a text in which everything that does not print is escaped.

    >>> _shown("a\u202eb")
    'a\\u202eb'
    """
    return printable(str(value))


def _text(value: object) -> str:
    """Return a text of several lines, in which only line breaks and tabs stay as they are."""
    return "\n".join(printable(line.expandtabs(4)) for line in str(value).split("\n"))


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, indent=2, default=str)


def _ago(seconds: float) -> str:
    """Return a duration in words of one unit.

    >>> [_ago(seconds) for seconds in (0.4, 59, 60, 7_300, 200_000)]
    ['now', '59 s', '1 min', '2 h', '2 d']
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds / size)} {unit}"
    return "now" if seconds < 1 else f"{int(seconds)} s"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("truename.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=_shown, text=_text, as_json=_as_json, ago=_ago, time=_time)
    return environment


def render(template: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(_environment().get_template(template).render(values), status, headers=dict(HEADERS))


@cache
def has_htmx() -> bool:
    """Return whether this installation has htmx: without it pages work too, but do not update themselves."""
    return (_STATIC / _HTMX).is_file()


@cache
def asset(name: str) -> Response | None:
    """Return one of the files that pages load; None if there is none of this name."""
    kind = _KINDS.get("." + name.rpartition(".")[2])
    found = None if kind is None or "/" in name or name.startswith(".") else _STATIC / name
    if found is None or not found.is_file():
        return None
    headers = {**HEADERS, "cache-control": "no-cache"}
    return Response(found.read_bytes(), media_type=kind, headers=headers)
