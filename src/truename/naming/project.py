"""Project a catalogue through a dialect to the names that one client sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from truename import dialects
from truename.identity import ToolId, fold
from truename.ledger import Claim, LedgerSettings
from truename.naming.assign import AssignedName, Assignment
from truename.naming.candidates import NameGenerator
from truename.naming.style import style_of
from truename.naming.table import NameTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.catalog import Catalog
    from truename.dialects import Dialect
    from truename.ledger import Ledger
    from truename.naming.style import Style

__all__ = ["DEFAULT_SERVER_NAME", "project"]

DEFAULT_SERVER_NAME: Final = "truename"
_ATTEMPTS: Final = 3


def project(
    catalog: Catalog,
    dialect: Dialect | str,
    *,
    style: str | Style = "prefixed",
    ledger: Ledger | None = None,
    overrides: Mapping[str, Mapping[ToolId | str, str]] | None = None,
    server_name: str = DEFAULT_SERVER_NAME,
) -> NameTable:
    """Give every tool of the catalogue one name that this client accepts.

    Without a ledger, the table is a pure function of the set of tools. With a ledger, tools keep the names that they
    hold, a new tool gets no name that another tool ever held, and new names are recorded (unless it is read-only).
    ``overrides`` are names by dialect and tool that the operator fixed; ``server_name`` is the key under which clients
    configure the gateway, since most of them prepend it to every name.

    Raises, before anything is recorded, an `ExceptionGroup` of `NoLegalName`, `InvalidName`, `DuplicateTool`; and
    `LedgerError` (``style_mismatch``, ``full``).

    >>> from truename import Catalog
    >>> catalog = Catalog.of("salesforce@1/create_lead@1", "salesforce@2/create_lead@1")
    >>> project(catalog, "openai")["salesforce@2/create_lead@1"]
    'sf_create_lead_2'
    """
    chosen = dialects.get(dialect) if isinstance(dialect, str) else dialect
    preset = style_of(style)
    former = () if ledger is None else ledger.server_names
    generator = NameGenerator(catalog, chosen, preset, server_name, former)
    fixed = {
        ToolId.parse(id) if isinstance(id, str) else id: name
        for key, names in (overrides or {}).items()
        if dialects.get(key) is chosen
        for id, name in names.items()
    }
    if ledger is None:
        assigned = Assignment(generator, None).run(fixed, {})
        return _table(generator, assigned, None)
    assigned = _remembered(generator, ledger, fixed)
    ordered = {id: assigned[id] for id in ledger.pinned(assigned)}
    return _table(generator, ordered, ledger)


def _table(generator: NameGenerator, assigned: dict[ToolId, AssignedName], ledger: Ledger | None) -> NameTable:
    return NameTable(
        catalog=generator.catalog,
        dialect=generator.dialect,
        style=generator.style,
        assigned=assigned,
        ledger=ledger,
        server_name=generator.server_name,
    )


def _remembered(generator: NameGenerator, ledger: Ledger, fixed: Mapping[ToolId, str]) -> dict[ToolId, AssignedName]:
    """Assign names by the ledger and record them; start again if another process recorded something meanwhile."""
    if ledger.readonly:
        return _assigned(generator, ledger, fixed).names
    for _ in range(_ATTEMPTS):
        ledger.catch_up()
        since = ledger.revision
        found = _assigned(generator, ledger, fixed)
        if ledger.remember(*found.recorded(generator.catalog), since=since):
            return found.names
    # If others keep writing meanwhile, lock them out for the last attempt.
    with ledger.transaction():
        found = _assigned(generator, ledger, fixed)
        ledger.remember(*found.recorded(generator.catalog))
        return found.names


class _Assigned(NamedTuple):
    """An assignment that is not recorded yet."""

    names: dict[ToolId, AssignedName]
    settings: LedgerSettings | None
    new: list[ToolId]
    table: str

    def recorded(
        self, catalog: Catalog
    ) -> tuple[LedgerSettings | None, Iterator[Claim], Iterator[tuple[str, str, ToolId]]]:
        """Return the arguments of `Ledger.remember`."""
        claims = (
            Claim(
                name=one.name,
                id=id,
                table=self.table,
                server=catalog[id].origin.server_id,
                prefix=one.prefix,
                number=one.number,
            )
            for id, one in ((id, self.names[id]) for id in self.new)
        )
        return self.settings, claims, ((tool.origin.server_id, tool.origin.name, id) for id, tool in catalog.items())


def _assigned(generator: NameGenerator, ledger: Ledger, fixed: Mapping[ToolId, str]) -> _Assigned:
    catalog, table = generator.catalog, generator.dialect.name
    settings = None
    held: Mapping[ToolId, str] = {}
    if generator.style.spelling != "canonical":
        # Canonical names are the ids themselves: they are not recorded, and any ledger can be used with them.
        settings = LedgerSettings(
            style=generator.style.recorded, server_name=generator.server_name, aliases=dict(catalog.aliases)
        )
        ledger.check(settings)
        held = dict(ledger.held(table).items())
    names = Assignment(generator, ledger).run(fixed, held)
    new = [
        id
        for id, one in names.items()
        if one.rung != "canonical" and (held.get(id) != one.name or ledger.holder(fold(one.name)) != id)
    ]
    return _Assigned(names, settings, new, table)
