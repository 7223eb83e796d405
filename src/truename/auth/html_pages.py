"""Render pages for people in a browser: no scripts, nothing loaded, and not within another page's frame."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

from starlette.responses import HTMLResponse

__all__ = ["HEADERS", "page"]

_STYLE: Final = (
    ":root{color-scheme:light}body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:min(4em,6vw) auto;"
    "padding:0 1em;color:#222;background:#fff;overflow-wrap:anywhere}h1{font-size:1.3em}"
    "dt{color:#666;font-size:.85em}dd{margin:0 0 .8em}dd strong{font-size:1.1em}"
    "button{font:inherit;padding:.5em 1.4em;margin:0 1em .5em 0}p.small{color:#666}"
)
# No form-action: browsers apply it to redirects after the form too, and those lead to the provider and the client.
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# No cross-origin-opener-policy: web clients open sign-in in a popup, which would look closed to them. A page that
# opened such a popup can close or redirect it, and sees nothing of its content.
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # With "no-referrer" browsers send "Origin: null" with the form. Other sites still receive no referrer.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


def page(title: str, body: str, status: int) -> HTMLResponse:
    """Render a page without scripts and external resources; ``body`` is HTML with all texts escaped."""
    text = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>
<body><main>{body}</main></body></html>"""
    return HTMLResponse(text, status, headers=dict(HEADERS))
