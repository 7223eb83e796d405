"""The paths of the gateway over HTTP, each with its methods and the authentication that it needs.

Which route answers a path never depends on the order of a table: a path that is written whole is found before one that
stands for all below it, and of those the longest is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["ALL_BELOW", "Authentication", "Route", "Routes"]

Authentication = Literal["none", "own", "caller"]
"""What a request has to prove before its handler runs.

``none``: nothing, the answer is the same for everybody. ``own``: nothing, the handler authenticates by itself (pages of
sign-in and login, which know a browser by its cookie). ``caller``: an access token, or whatever the gateway's
configuration lets in.
"""

ALL_BELOW: Final = "/*"


@dataclass(frozen=True, kw_only=True)
class Route:
    """One path, its methods, and the ASGI application that answers it.

    A ``path`` that ends in ``/*`` stands for all paths below it. ``methods`` None leaves the methods to the
    application. ``is_public`` tells whether a setting opens the route now, whatever its ``authentication`` is.
    """

    path: str
    methods: frozenset[str] | None
    authentication: Authentication
    answer: ASGIApp
    is_public: Callable[[], bool] | None = None

    @property
    def needs_caller(self) -> bool:
        """Whether the sender of a request has to be authenticated before the route answers."""
        return self.authentication == "caller" and not (self.is_public is not None and self.is_public())

    async def refuse_method(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with a method that this path does not have (RFC 9110, section 15.5.6)."""
        allowed = ", ".join(sorted(self.methods or ()))
        text = f"{scope['method']} is not a method of this path. Use {allowed}."
        await JSONResponse({"error": text}, 405, {"allow": allowed})(scope, receive, send)


class Routes:
    """A table of routes. Raises `ValueError` for two routes of one path.

    >>> async def page(scope, receive, send): ...
    >>> routes = Routes(
    ...     Route(path=path, methods=None, authentication="none", answer=page) for path in ("/a/*", "/a/b/*", "/a/b")
    ... )
    >>> [routes.find(path).path for path in ("/a/x", "/a/b", "/a/b/c")], routes.find("/a")
    (['/a/*', '/a/b', '/a/b/*'], None)
    """

    def __init__(self, table: Iterable[Route]) -> None:
        self._whole: dict[str, Route] = {}
        self._below: dict[str, Route] = {}
        for route in table:
            is_below = route.path.endswith(ALL_BELOW)
            places, key = (self._below, route.path.removesuffix("*")) if is_below else (self._whole, route.path)
            if key in places:
                message = f"two routes have the path {route.path}"
                raise ValueError(message)
            places[key] = route
        self._longest_first = sorted(self._below, key=len, reverse=True)

    def __iter__(self) -> Iterator[Route]:
        return iter((*self._whole.values(), *self._below.values()))

    def find(self, path: str) -> Route | None:
        """Return the route that answers a path; None if there is none."""
        if (found := self._whole.get(path)) is not None:
            return found
        return next((self._below[start] for start in self._longest_first if path.startswith(start)), None)
