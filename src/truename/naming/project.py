"""Project a catalogue through a dialect to the names that one client sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from truename import dialects
from truename.catalog import Catalog
from truename.identity import ToolId, fold
from truename.ledger import Claim, LedgerSettings
from truename.naming.assign import AssignedName, Assignment
from truename.naming.candidates import NameGenerator
from truename.naming.style import style_of
from truename.naming.table import NameTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from truename.dialects import Dialect
    from truename.ledger import Ledger
    from truename.naming.style import Style

__all__ = ["DEFAULT_SERVER_NAME", "follows", "project", "reproject"]

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
    fixed = _fixed(chosen, overrides)
    if ledger is None:
        assigned = Assignment(generator, None).run(fixed, {})
        return NameTable(generator=generator, assigned=assigned, ledger=None)
    withdrawals = ledger.withdrawals
    assigned = _remembered(generator, ledger, fixed, None, catalog)
    ordered = {id: assigned[id] for id in ledger.pinned(assigned)}
    return NameTable(
        generator=generator, assigned=ordered, ledger=ledger, made_from=(withdrawals, *_made_from(ledger)[1:])
    )


def reproject(
    names: NameTable,
    catalog: Catalog,
    changed: Collection[ToolId],
    *,
    overrides: Mapping[str, Mapping[ToolId | str, str]] | None = None,
) -> NameTable:
    """Return the names of a catalogue that was changed in part; it costs what changed, and copies of indexes.

    ``changed`` are the ids of all tools that are gone, new, or not the same. The names are those that `project` gives
    with this ledger: tools keep what they hold, so only new tools need names. A table without a ledger that remembers
    them, and one since which names were withdrawn or settings changed, is projected whole. Raises as `project` does.

    >>> from truename import Catalog, Ledger
    >>> catalog = Catalog.of("git/push")
    >>> names = project(catalog, "openai", ledger=Ledger.memory())
    >>> more, changed = catalog.changed((), Catalog.of("hg/push").values())
    >>> list(reproject(names, more, changed).values())
    ['git_push', 'hg_push']
    """
    ledger, generator = names.ledger, names.generator
    if ledger is None or not follows(names):
        return project(
            catalog,
            names.dialect,
            style=names.style,
            ledger=ledger,
            overrides=overrides,
            server_name=names.server_name,
        )
    generator = generator.over(catalog, changed)
    gone = [id for id in changed if id not in catalog and id in names]
    new = {id for id in changed if id in catalog and id not in names}
    if not new:
        return names.changed(generator, gone, {})
    known = names.assignments()
    for id in gone:
        del known[id]
    fixed = {id: name for id, name in _fixed(names.dialect, overrides).items() if id not in known}
    # In the order of the catalogue, which a ledger that has not seen them takes for the order of lists.
    part = Catalog((tool for id, tool in catalog.items() if id in new), catalog.aliases)
    return names.changed(generator, gone, _remembered(generator, ledger, fixed, known, part))


def follows(names: NameTable) -> bool:
    """Return whether `reproject` can make the next table of this one: no name was withdrawn since, no setting changed.

    >>> from truename import Catalog, Ledger
    >>> ledger = Ledger.memory()
    >>> names = project(Catalog.of("git/push"), "openai", ledger=ledger)
    >>> follows(names), ledger.retire("git_push"), follows(names)
    (True, None, False)
    """
    ledger = names.ledger
    if ledger is None or ledger.readonly or names.whole is not names:
        return False
    return names.made_from == _made_from(ledger)


def _fixed(dialect: Dialect, overrides: Mapping[str, Mapping[ToolId | str, str]] | None) -> dict[ToolId, str]:
    """Return the names that the operator fixed for one dialect."""
    return {
        ToolId.parse(id) if isinstance(id, str) else id: name
        for key, names in (overrides or {}).items()
        if dialects.get(key).name == dialect.name
        for id, name in names.items()
    }


def _made_from(ledger: Ledger) -> tuple[object, ...]:
    """Return what names that tools hold depend on, besides what they hold."""
    return ledger.withdrawals, ledger.server_names, ledger.settings


def _remembered(
    generator: NameGenerator,
    ledger: Ledger,
    fixed: Mapping[ToolId, str],
    known: Mapping[ToolId, AssignedName] | None,
    new: Catalog,
) -> dict[ToolId, AssignedName]:
    """Assign names by the ledger and record them; start again if another process recorded something meanwhile."""
    if ledger.readonly:
        return _assigned(generator, ledger, fixed, known, new).names
    for _ in range(_ATTEMPTS):
        ledger.catch_up()
        since = ledger.revision
        found = _assigned(generator, ledger, fixed, known, new)
        if ledger.remember(*found.recorded(new), since=since):
            return found.names
    # If others keep writing meanwhile, lock them out for the last attempt.
    with ledger.transaction():
        found = _assigned(generator, ledger, fixed, known, new)
        ledger.remember(*found.recorded(new))
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


def _assigned(
    generator: NameGenerator,
    ledger: Ledger,
    fixed: Mapping[ToolId, str],
    known: Mapping[ToolId, AssignedName] | None,
    part: Catalog,
) -> _Assigned:
    """Assign names to all tools, or to a part of them where all others are ``known``."""
    table = generator.dialect.name
    settings = None
    held: Mapping[ToolId, str] = {}
    if generator.style.spelling != "canonical":
        # Canonical names are the ids themselves: they are not recorded, and any ledger can be used with them.
        settings = LedgerSettings(
            style=generator.style.recorded, server_name=generator.server_name, aliases=dict(part.aliases)
        )
        ledger.check(settings)
        held = ledger.held_by(part, table)
    if known is None:
        names = Assignment(generator, ledger).run(fixed, held)
    else:
        names = Assignment(generator, ledger, known).run_for(part.keys(), fixed, held)
    new = [
        id
        for id, one in names.items()
        if one.rung != "canonical" and (held.get(id) != one.name or ledger.holder(fold(one.name)) != id)
    ]
    return _Assigned(names, settings, new, table)
