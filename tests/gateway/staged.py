"""A gateway in this process over servers that are staged: they list and say what they are told to, at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from truename import Ledger
from truename.config import ServerConfig, Settings
from truename.gateway.endpoint.endpoint import Endpoint
from truename.gateway.registry import Registry
from truename.gateway.upstream.known import Known
from truename.gateway.upstream_errors import UpstreamError
from truename.gateway.views.view import Asked, ViewSpec

if TYPE_CHECKING:
    from truename.storage import StateLocation
    from truename.trust import PinStore
    from truename.trust.renames import RenameStore

SPEC = ViewSpec("universal")


class Staged(Known):
    """A server that counts the calls that reach it, and answers none."""

    follower: Any = SimpleNamespace(on_update=None, expect=None, on_task=None, level=None)
    says = ""
    calls = 0

    @property
    def instructions(self) -> str:
        return self.says

    def offers(self, capability: str) -> bool:
        return capability == "tools"

    async def awake(self) -> None:
        self.calls += 1
        raise UpstreamError(server=self.key, kind="unavailable", problem="is staged", remedy="Leave it.")


class Stage:
    """One staged server, `fs`, behind a gateway."""

    def __init__(  # noqa: PLR0917 - all that a gateway keeps
        self,
        settings: Settings,
        book: PinStore | None = None,
        approvals: StateLocation | None = None,
        server: type[Staged] = Staged,
        ledger: Ledger | None = None,
        renames: RenameStore | None = None,
    ) -> None:
        self.fs = server(ServerConfig(key="fs", command="true"), settings)
        pool: dict[str, Any] = {"fs": self.fs}
        record = ledger or Ledger.memory()
        self.registry = Registry(pool, record, settings, pins=book, approvals=approvals, renames=renames)
        self.endpoint = Endpoint(self.registry, SPEC, lambda _: SPEC, Asked())

    def lists(self, *tools: dict[str, Any], says: str = "") -> None:
        self.fs.says = says
        if self.fs.takes(tools, self.fs.lists):
            self.registry.stale = True
