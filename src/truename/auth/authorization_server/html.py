"""Render the consent page and the error page of a sign-in.

A client chooses its own name; the redirect URI is verified, so the page shows it prominently. The page runs no scripts,
loads nothing, and cannot be framed.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from truename.auth.authorization_server.clients import is_document, printable_name

if TYPE_CHECKING:
    from truename.auth.authorization_server.clients import RegisteredClient

__all__ = ["consent_page", "error_page", "page"]

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


def consent_page(
    client: RegisteredClient, redirect_uri: str, scopes: list[str], *, gateway: str, token: str, csrf: str
) -> HTMLResponse:
    """Render the consent page. ``token`` is the signed request, ``csrf`` proves that the answer comes from the page."""
    name = printable_name(client.client_name) or "An unnamed client"
    parts = urlsplit(redirect_uri)
    place = f"{parts.scheme}://{parts.netloc}" if parts.scheme in {"http", "https"} else f"{parts.scheme}: (an app)"
    known = client.client_id if is_document(client.client_id) else "it registered itself; its name is not verified"
    granted = ", ".join(scopes) or "everything that you may use"
    body = f"""<h1>Allow this client to use {escape(gateway)} on your behalf?</h1>
<dl><dt>Sends you back to</dt><dd><strong>{escape(place)}</strong></dd>
<dt>Name (unverified)</dt><dd>{escape(name)}</dd>
<dt>Identified by</dt><dd>{escape(known)}</dd>
<dt>Requested scopes</dt><dd>{escape(granted)}</dd></dl>
<form method="post"><input type="hidden" name="request" value="{escape(token)}">
<input type="hidden" name="csrf" value="{escape(csrf)}">
<button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button></form>
<p class="small">Allow it only if you have just told it to connect. You then sign in as usual.</p>"""
    return page("Allow this client?", body, 200)


def error_page(text: str, status: int = 400) -> HTMLResponse:
    """Render a page with an error message."""
    return page("Sign-in failed", f"<h1>Sign-in failed</h1><p>{escape(text)}</p>", status)


def page(title: str, body: str, status: int) -> HTMLResponse:
    """Render a page without scripts and external resources; ``body`` is HTML with all texts escaped."""
    text = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>
<body><main>{body}</main></body></html>"""
    return HTMLResponse(text, status, headers=dict(HEADERS))
