"""Read forms, and only those that one of our own pages sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from truename.console.refusals import RefusedError

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.requests import Request

    from truename.console.sessions import BrowserSession

__all__ = ["own_form", "same_origin_form"]

_SAME: Final = frozenset({"same-origin", "none"})
_TYPE: Final = "application/x-www-form-urlencoded"
_LONGEST: Final = 64 * 1024
_MOST_FIELDS: Final = 100
_RELOAD: Final = "Reload the page, and repeat."


async def own_form(request: Request, session: BrowserSession) -> FormData:
    """Return the form of a page of this session. Raises `RefusedError`."""
    form = await same_origin_form(request)
    token = form.get("csrf")
    if not isinstance(token, str) or not session.is_own_form(token):
        raise RefusedError(403, f"This form is not of your session. {_RELOAD}")
    return form


async def same_origin_form(request: Request) -> FormData:
    """Return the form of a page of ours, whoever has it. Raises `RefusedError`."""
    if not _is_same_origin(request):
        raise RefusedError(403, f"Another web page sent this form. {_RELOAD}")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise RefusedError(415, f"Send the form as {_TYPE}.")
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > _LONGEST:
        raise RefusedError(413, f"A form may have {_LONGEST:,} bytes, and says how many it has.")
    try:
        return await request.form(max_fields=_MOST_FIELDS, max_files=0)
    except HTTPException as problem:
        raise RefusedError(400, f"This form cannot be read: {problem.detail}.") from problem


def _is_same_origin(request: Request) -> bool:
    """Return whether a browser says that one of our own pages sent this request.

    Another web server of the same machine is another origin, though the gateway's `OriginGuard` lets it in.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in _SAME
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] == request.headers.get("host")
