"""Render the consent page and the error page of a sign-in.

What a client calls itself is its own word; what is certain is where the answer goes, so that stands out. The page
runs nothing, loads nothing, and is shown in nobody's frame.
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

__all__ = ["consent_page", "fault_page", "page"]

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
# No cross-origin-opener-policy: clients on the web open sign-in in a window of its own, and one that is cut off from
# them looks closed to them. Whoever opened such a window can close it or lead it elsewhere, and sees nothing of it.
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # To browsers the form of a page with "no-referrer" is nobody's (Origin: null). Other sites are told nothing.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


def consent_page(
    client: RegisteredClient, redirect_uri: str, scopes: list[str], *, gateway: str, token: str, csrf: str
) -> HTMLResponse:
    """Return the page that asks. ``token`` is the signed request, ``csrf`` proves that the answer comes from it."""
    name = printable_name(client.client_name) or "A client without a name"
    parts = urlsplit(redirect_uri)
    place = f"{parts.scheme}://{parts.netloc}" if parts.scheme in {"http", "https"} else f"{parts.scheme}: (a program)"
    known = client.client_id if is_document(client.client_id) else "it registered itself, and its name is its own word"
    granted = ", ".join(scopes) or "all that you may use"
    body = f"""<h1>May this client use {escape(gateway)} for you?</h1>
<dl><dt>The answer goes to</dt><dd><strong>{escape(place)}</strong></dd>
<dt>It calls itself</dt><dd>{escape(name)}</dd>
<dt>Known by</dt><dd>{escape(known)}</dd>
<dt>It asks for</dt><dd>{escape(granted)}</dd></dl>
<form method="post"><input type="hidden" name="request" value="{escape(token)}">
<input type="hidden" name="csrf" value="{escape(csrf)}">
<button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button></form>
<p class="small">Allow it only if you have just asked it to connect. You then sign in as usual.</p>"""
    return page("Allow a client?", body, 200)


def fault_page(text: str, status: int = 400) -> HTMLResponse:
    """Return the page that says what went wrong; it leads nowhere."""
    return page("Sign-in failed", f"<h1>Sign-in failed</h1><p>{escape(text)}</p>", status)


def page(title: str, body: str, status: int) -> HTMLResponse:
    """Return a page that runs nothing and loads nothing; ``body`` is HTML, in which all texts are escaped already."""
    text = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>
<body><main>{body}</main></body></html>"""
    return HTMLResponse(text, status, headers=dict(HEADERS))
