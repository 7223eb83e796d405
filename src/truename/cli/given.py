"""What a client is given of the names: those in its list, where the others are searched, and how it shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog.globs import fits_id
from truename.cli.failure import UsageFault
from truename.config.searching import why_searched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.cli.scene import Scene
    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["Given", "gateway_key", "given", "shown_by"]

_PROGRAMS: Final = frozenset({"client", "framework"})
# Where `truename connect` has a client find the gateway.
_ADDRESS: Final = "http://127.0.0.1:8750/mcp/for/{}"


class Given(NamedTuple):
    """What is in a client's list. ``why`` the others are searched (empty: all are listed), and by which tools."""

    why: str
    listed: tuple[ToolId, ...]
    own: tuple[str, ...] = ()

    def names(self, table: NameTable) -> tuple[str, ...]:
        """Return all names of the list."""
        return (*(table[id] for id in self.listed), *self.own)


def given(scene: Scene, table: NameTable, *, search: bool) -> Given:
    """Return what the gateway lists of these names; ``search``: at an address that searches. Raises `UsageFault`."""
    settings, most = scene.settings, table.dialect.max_tools
    why = "its address asks for it" if search else why_searched(settings, _definitions(table), most)
    if not why:
        return Given("", tuple(table))
    own = _own(table)
    pinned = [id for id in table if any(fits_id(glob, id) for glob in settings.pinned)]
    return Given(why, tuple(pinned if most is None else pinned[: max(0, most - len(own))]), own)


def _definitions(table: NameTable) -> list[Mapping[str, object]]:
    return [tool.shown for tool in table.catalog.values()]


def _own(table: NameTable) -> tuple[str, ...]:
    """Return the names of the gateway's own tools here. Raises `UsageFault` if the gateway is not installed."""
    try:
        from truename.gateway.views.own_tools import known_names  # noqa: PLC0415 - the gateway is an optional extra
    except ModuleNotFoundError as error:
        fact = f"the tools that search are the gateway's, which needs {error.name}; that is not installed"
        raise UsageFault(fact=fact, advice="Install `truename[gateway]`.") from error
    return known_names(table) or ()


def gateway_key(table: NameTable) -> str:
    """Return what this client knows the gateway by: its key, or its usual address."""
    by_address = table.dialect.mangling.part == "address"
    return _ADDRESS.format(table.dialect.name) if by_address else table.server_name


def shown_by(table: NameTable, names: tuple[str, ...]) -> Mapping[str, str]:
    """Return how the table's client shows these names to its model; nothing where it is not known to show any."""
    dialect = table.dialect
    return dialect.simulate(gateway_key(table), names).shown if dialect.kind in _PROGRAMS else {}
