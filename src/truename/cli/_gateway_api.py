"""Read and change another gateway through its HTTP API, with the bearer token that the environment has for it.

A redirect is refused, so that the token reaches no other host; an answer is bounded.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.cli._errors import UsageError
from truename.cli._gateway_list import VARIABLE, bearer
from truename.cli._progress import busy, counted
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.clients.exporters import ApiRequest

__all__ = ["HttpApi"]

_SECONDS: Final = 120
_LARGEST: Final = 256 * 1024 * 1024
_MOST_SHOWN: Final = 300
_SCHEMES: Final = ("http", "https")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# An answer that is not HTTP is neither an `OSError` nor a `ValueError`.
_FAILED: Final = (OSError, ValueError, http.client.HTTPException)
_REFUSED: Final = {401: "a token is missing or wrong", 403: "the token may not do this"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow no redirect: the answer itself is the error."""


class HttpApi:
    """The API below a base URL. Raises `UsageError` for anything but a successful answer in JSON."""

    def __init__(self, base: str) -> None:
        try:
            parts = urlsplit(base)
            is_usable = parts.scheme in _SCHEMES and bool(parts.hostname) and not parts.query and not parts.fragment
        except ValueError:
            is_usable = False
        if not is_usable or not base.isprintable():
            raise UsageError(fact=f"{base!r} is not the URL of an API", advice="Write it as --url http://HOST:PORT.")
        if parts.username is not None or parts.password is not None:
            raise UsageError(fact="--url has credentials", advice=f"Put the token into {VARIABLE}.")
        self._base = base.rstrip("/")
        # No proxy of the environment: the gateway is the user's own.
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))

    def read(self, paths: Sequence[str]) -> Mapping[str, object]:
        """Return the answer of each path."""
        with busy("Reading what the gateway has"):
            return {path: self._ask("GET", path) for path in paths}

    def send(self, requests: Sequence[ApiRequest], *, remedy: str) -> None:
        """Send requests one after the other; the remedy says how to go on if one fails."""
        with counted("Setting names", len(requests)) as step:
            for number, request in enumerate(requests):
                try:
                    self._ask(request.method, request.path, request.body)
                except UsageError as error:
                    error.fact = (
                        f"{number:,} of {len(requests):,} requests were sent; {excerpt(request.what)}: {error.fact}"
                    )
                    error.advice = f"{error.advice} {remedy}"
                    raise
                step()

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> object:
        content = None if body is None else json.dumps(body).encode()
        headers = {"accept": "application/json", "content-type": "application/json", **bearer()}
        request = urllib.request.Request(self._base + path, content, headers, method=method)  # noqa: S310 - the scheme is checked above
        where = f"{method} {path}"
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                raw = answer.read(_LARGEST + 1)
        except urllib.error.HTTPError as error:
            raise _refused(where, error) from None
        except _FAILED as error:
            reason = getattr(error, "reason", None) or error
            raise _unusable(f"{where} failed ({excerpt(str(reason), _MOST_SHOWN)[1:-1]})") from None
        if len(raw) > _LARGEST:
            raise _unusable(f"{where} answers more than {_LARGEST:,} bytes")
        try:
            return json.loads(raw or b"null")
        except (ValueError, RecursionError):
            raise _unusable(f"{where} does not answer in JSON") from None


def _refused(where: str, error: urllib.error.HTTPError) -> UsageError:
    text = ""
    with error, suppress(*_FAILED):
        text = error.read(_MOST_SHOWN * 4).decode("utf-8", "replace")
    token = bearer().get("Authorization", "").removeprefix("Bearer ")
    if token:
        text = text.replace(token, "...")
    said = f": {excerpt(text, _MOST_SHOWN)}" if text.strip() else ""
    why = f" ({_REFUSED[error.code]}: set {VARIABLE})" if error.code in _REFUSED else ""
    if error.code in _REDIRECTS:
        where_to = excerpt(error.headers.get("location") or "", _MOST_SHOWN)
        why = f" (it points to {where_to}, and redirects are not followed: the token goes to --url only)"
    return _unusable(f"{where} is answered with HTTP {error.code}{why}{said}")


def _unusable(fact: str) -> UsageError:
    return UsageError(fact=fact, advice="Check --url, and that the gateway runs.", code="upstream_unavailable")
