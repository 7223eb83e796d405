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

from truename.conventions.characters import INVISIBLE
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
_TIME: Final = "%Y-%m-%d %H:%M:%S UTC"
_HTMX: Final = "htmx.min.js"


def _shown(value: object) -> str:
    r"""Return a text in which everything that does not print is escaped.

    >>> _shown("a\u202eb")
    'a\\u202eb'
    """
    return _escaped(str(value))


def _text(value: object) -> str:
    """Return a text of several lines, in which only line breaks and tabs stay as they are."""
    return "\n".join(_escaped(line.expandtabs(4)) for line in str(value).split("\n"))


def _escaped(text: str) -> str:
    """Return a text whose invisible characters are written out. Nothing is cut: who decides has to see all of it."""
    shown = printable(text, len(text))
    return INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], shown)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, indent=2, default=str)


def _duration(seconds: float | None) -> str:
    """Return a duration in a unit that fits; "" for none.

    >>> [_duration(seconds) for seconds in (None, 0.0004, 0.0421, 1.5, 125)]
    ['', '<1 ms', '42 ms', '1.5 s', '125 s']
    """
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.0005 else "<1 ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _words(value: str) -> str:
    """Return a word of a protocol as a reader says it.

    >>> _words("input_required")
    'input required'
    """
    return value.replace("_", " ")


def _moment(text: str) -> str:
    """Return a time of the state (ISO 8601, in UTC) as pages show times; another text as it is.

    >>> _moment("2026-11-26T20:57:36+00:00"), _moment("")
    ('2026-11-26 20:57:36 UTC', '')
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime(_TIME)
    except ValueError:
        return text


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(_TIME)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("truename.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        shown=_shown, text=_text, as_json=_as_json, duration=_duration, words=_words, moment=_moment, time=_time
    )
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
