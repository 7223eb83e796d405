"""What a page of the console gets, and what it gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from starlette.datastructures import FormData, QueryParams
    from starlette.responses import Response

    from truename.config.console import Role
    from truename.console.fair_semaphore import FairSemaphore
    from truename.console.name_previews import NamePreviews
    from truename.console.near_names import NearNames
    from truename.console.recent_calls import RecentCalls
    from truename.console.secret_texts import SecretTexts
    from truename.console.sessions import BrowserSession
    from truename.console.tool_rows import ToolRows
    from truename.gateway import Gateway

__all__ = ["Page", "PageHandler", "PageRequest", "PageRoute"]


Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class PageRequest:
    """A request of somebody whose role allows it.

    ``secrets`` hides secrets in texts, ``deciding`` keeps decisions one after the other, ``here`` is the gateway's URL.
    ``mark`` returns what a form carries for a content that it decides on and that the person may not see in full.
    ``computing`` limits the threads of what takes long: more at once would keep the event loop from its turn.
    ``form`` has the fields of a change, and is None for a page.
    """

    gateway: Gateway
    calls: RecentCalls
    names: NamePreviews
    tools: ToolRows
    near: NearNames
    secrets: SecretTexts
    deciding: FairSemaphore
    computing: FairSemaphore
    here: str
    mark: Callable[[object], str]
    session: BrowserSession
    role: Role
    query: QueryParams
    path: Mapping[str, str]
    form: FormData | None = None

    async def computed(self, make: Callable[[], Made]) -> Made:
        """Return what takes long to make, in a thread, when it is this person's turn. Raises `RefusedError`."""
        return await self.computing.run(self.session.principal.key, make)

    def decides(self) -> AbstractAsyncContextManager[None]:
        """Return a block for a decision of this person: others wait until it ends. Raises `RefusedError`."""
        return self.deciding.turn(self.session.principal.key)

    def field(self, name: str) -> str:
        """Return a field of the form; "" if there is none."""
        value = "" if self.form is None else self.form.get(name, "")
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A template with its values. ``title`` is the heading; ``status`` the HTTP status."""

    template: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


PageHandler = Callable[[PageRequest], Awaitable["Page | Response"]]


class PageRoute(NamedTuple):
    """One route below /console: its method, its path with parameters in braces, the least role, and the handler."""

    method: Literal["GET", "POST"]
    path: str
    role: Role
    handler: PageHandler
