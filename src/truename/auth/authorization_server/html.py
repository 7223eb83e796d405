"""Render the consent page and the error page of a sign-in.

A client chooses its own name; the redirect URI is verified, so the page shows it prominently. The page runs no scripts,
loads nothing, and cannot be framed.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from truename.auth.authorization_server.clients import printable_name
from truename.auth.html_pages import page
from truename.auth.oauth import is_document

if TYPE_CHECKING:
    from starlette.responses import HTMLResponse

    from truename.auth.authorization_server.clients import RegisteredClient

__all__ = ["consent_page", "error_page"]


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
