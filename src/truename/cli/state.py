"""Show where a configuration keeps its state, check, upgrade and copy it, and go on after changes were lost."""

from contextlib import closing
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from truename.audit import HEADS_SCHEMA
from truename.auth import sealed_values
from truename.auth.authorization_server import codes, sessions
from truename.auth.inbound import static_tokens
from truename.auth.outbound import login_attempts
from truename.cli._audit import audited
from truename.cli._command_list import epilogue_of
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import Configuration, JsonOutput
from truename.cli._progress import busy
from truename.cli._rendering import count, print_json, say, show, styled
from truename.cli._sources import configuration
from truename.cli._workspace import gateway_needed
from truename.config import Config, Settings
from truename.files.user import at_home
from truename.ledger import sql as ledger
from truename.policy import sql as approvals
from truename.storage import (
    Revision,
    Schema,
    StateLocation,
    accept_state,
    check_state,
    compare_states,
    copy_state,
    is_server_url,
    known_revision,
    open_database,
    present_revision,
)
from truename.trust import approval_queue, pins, renames

__all__ = ["state"]

# The vault and the sessions of MCP need packages that a check does not.
_SCHEMAS = (
    *(ledger.SCHEMA, pins.SCHEMA, renames.SCHEMA, approvals.SCHEMA, approval_queue.SCHEMA),
    *(static_tokens.SCHEMA, sessions.SCHEMA, codes.SCHEMA, login_attempts.SCHEMA, sealed_values.SCHEMA, HEADS_SCHEMA),
)
_SQLITE = b"SQLite format 3\0"
Place: TypeAlias = Annotated[str, Parameter(help="The path of a file, or postgresql://HOST/DATABASE?scope=NAME.")]

state = App(
    name="state",
    help="Show where the state is kept, check, upgrade and copy it, and accept it after a loss.",
    help_format="plaintext",
    help_epilogue=epilogue_of("state"),
    default_parameter=Parameter(negative=()),
)


@state.command
def path(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Print the path, or the URL without its password, of the state database."""
    _, location = _of(source)
    if as_json:
        print_json({"path": location.public_address, "exists": location.exists})
    else:
        show(location.public_address)
    return 0


@state.command
def upgrade(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Bring all tables to this version's form. A gateway does it too when it starts.

    Gateways of the version before go on with the upgraded tables; those of earlier versions refuse them. With
    PostgreSQL, the command may run as a role that may create tables, so that the gateways' role need not.
    """
    _, location = _of(source)
    versions: dict[str, int] = {}
    with busy(f"Upgrading {location.name}"):
        for schema in _all_schemas():
            with closing(open_database(location, schema)) as database:
                if why := database.readonly_because:
                    database.refuse(f"it cannot be written ({why})", "unusable", "Check the disk.")
            versions[schema.part] = schema.version
    if as_json:
        print_json({"path": location.name, "versions": versions})
    else:
        show(f"{location.name} has the tables of this version.")
    return 0


@state.command
def check(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Check the whole database: pages, constraints, the names against their history, and the revision.

    The revision is compared with the audit log and with the file beside the database.

    Exit status 1: something is wrong.
    """
    _, location = _of(source)
    if not location.exists:
        raise UsageError(fact=f"no state found at {location.name} yet", advice="`truename serve` creates it.")
    with busy(f"Checking {location.name}"):
        report = check_state(location, _SCHEMAS, (ledger.check_ledger, pins.check_pins))
    if as_json:
        changes = None if report.revision is None else report.revision.number
        print_json(
            {
                "path": location.name,
                "changes": changes,
                "parts": dict(report.parts),
                "problems": [*report.problems],
            }
        )
    else:
        for problem in report.problems:
            show(styled("error: ", "bold red"), problem)
        if not report.problems and report.revision is not None:
            show(f"{location.name} is whole: {report.revision.changes}.")
    return EXIT_FINDINGS if report.problems else 0


@state.command
def accept(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Accept the database as it is, after changes were lost. Names may then mean other tools than before.

    If no change is missing, nothing is written.
    """
    config, location = _of(source)
    known, found = known_revision(location), present_revision(location)
    is_refused = known is not None and (
        found is None or found.database != known.database or found.number < known.number
    )
    if is_refused:
        with audited(config, "state", "accepted") as (record,):
            found = accept_state(location)
            record.update({"database": found.database, "revision": found.number} if found else {"revision": 0})
    if as_json:
        print_json(
            {
                "path": location.name,
                "accepted": is_refused,
                "changes": None if found is None else found.number,
                "known_changes": None if known is None else known.number,
                "is_another_database": bool(known and found and known.database != found.database),
            }
        )
        return 0
    show(_accepted(location, found, known))
    return 0


@state.command
def export(target: Place, source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Copy the state to a file, or to a scope of a PostgreSQL database, that has none yet.

    All of it is copied or nothing: each table is counted and compared before the copy exists. Stop the gateways first.
    The keys of sealed secrets are not in the state: copy them with it.
    """
    _, location = _of(source)
    return _copied(location, _other(target), as_json=as_json)


@state.command(name="import")
def import_(origin: Place, source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Copy a state from a file, or from a scope of a PostgreSQL database, to that of a configuration, which has none.

    All of it is copied or nothing: each table is counted and compared before the copy exists. Stop the gateways first.
    The keys of sealed secrets are not in the state: copy them with it.
    """
    config, location = _of(source)
    with audited(config, "state", "imported") as (record,):
        origin_location = _other(origin)
        status = _copied(origin_location, location, as_json=as_json)
        record |= {"from": origin_location.name, **_revision(location)}
    return status


@state.command
def rotate(
    source: Configuration | None = None,
    /,
    *,
    forget_lost: Annotated[bool, Parameter(help="Delete what only a lost key opens.")] = False,
    as_json: JsonOutput = False,
) -> int:
    """Encrypt all secrets with the first key of the vault, so that older keys can be removed.

    Secrets are logins, sign-ins, the keys that gateways share, and the arguments of calls that wait for approval.
    """
    config, location = _of(source)
    with gateway_needed():
        from truename.auth.vault import open_vault  # noqa: PLC0415 - packages that other commands do not need
    with audited(config, "state", "rotated") as (record,), open_vault(config, checks=not forget_lost) as vault:
        with closing(approval_queue.ApprovalQueue(location)) as queue:
            before = vault.count() + queue.count_sealed()
            renewed = vault.rotate(forget_lost=forget_lost) + queue.rotate(forget_lost=forget_lost)
            total = vault.count() + queue.count_sealed()
        record |= {"count": renewed, **_revision(location)}
    if as_json:
        print_json({"path": location.name, "secrets": renewed, "all": total})
    else:
        lost = f"{before - total:,} {_were(before - total)} deleted. " if before > total else ""
        are = "secret of {} is" if total == 1 else "secrets of {} are"
        told = f"{total:,} {are.format(location.name)} encrypted with the first key."
        show(f"{told} {lost}{renewed:,} {_were(renewed)} encrypted anew.")
    return 0


@state.command
def verify(other: Place, source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Compare the state with another one, table by table. Exit status 1: they differ."""
    _, location = _of(source)
    with busy("Comparing the two states"):
        found = compare_states(location, _other(other))
    if as_json:
        print_json({"path": location.name, "differences": [*found]})
    else:
        for difference in found or ("The two states are equal.",):
            show(difference)
    return EXIT_FINDINGS if found else 0


def _other(place: str) -> StateLocation:
    """Return the place of another state. Raises `UsageError` for memory, which the setting has for none."""
    if place == "memory":
        raise UsageError(
            fact="a state in memory is that of one process",
            advice="Give a file (./memory for one of this name) or a URL.",
        )
    return StateLocation.of(place)


def _copied(source: StateLocation, target: StateLocation, *, as_json: bool) -> int:
    told = None if as_json else _tell
    with busy(f"Copying {source.name}"):
        copied = copy_state(source, target, _all_schemas(), told)
    if as_json:
        tables = {name: {"rows": table.rows, "digest": table.digest} for name, table in copied.tables.items()}
        document = {"from": source.name, "to": target.name, "changes": copied.revision.number, "tables": tables}
        print_json(document)
    else:
        show(f"{target.name} has all {count(copied.rows, 'row')} of {source.name}, each compared.")
    return 0


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _revision(location: StateLocation) -> dict[str, object]:
    """Return the fields of the audit record about the state; the next start compares it with the last such record."""
    with closing(open_database(location, Schema("revision", ()), readonly=True)) as database:
        found = database.revision()
    return {"database": found.database, "revision": found.number}


def _tell(table: str, rows: int) -> None:
    if rows:
        say(f"{table}: {count(rows, 'row')}")


def _all_schemas() -> tuple[Schema, ...]:
    with gateway_needed():
        from truename.gateway.http.served_tables import SERVED  # noqa: PLC0415 - packages that a check does not need

    return SERVED


def _accepted(location: StateLocation, found: Revision | None, known: Revision | None) -> str:
    """Return a sentence about what was accepted, and what was lost."""
    lost = "" if known is None else f" All changes of the lost one ({known.changes}) are gone."
    if found is None:
        former = ", ".join(str(path) for path in location.former.values() if path.exists())
        again = (
            "Tokens and approvals that were revoked since then count again; move the files away to start without them."
        )
        imported = f" It imports the files of an earlier version again: {former}. {again}" if former else ""
        return f"There is no database at {location.name}: the next start creates one.{lost}{imported}"
    what = f"{location.name} is accepted with {found.changes}."
    if known is not None and known.database != found.database:
        return f"{what} It is another database than before.{lost} Its names may mean other tools."
    if known is not None and known.number > found.number:
        missing = known.number - found.number
        lost = "1 later change is" if missing == 1 else f"{missing:,} later changes are"
        return f"{what} {lost} lost: names may mean other tools."
    return f"Nothing to accept: no change of {location.name} is missing. It has {found.changes}."


def _of(source: str | None) -> tuple[Config, StateLocation]:
    """Return a configuration and the place of its state, with the revision that its audit log has."""
    if source is not None and is_server_url(source):
        config = Config(settings=Settings(state=source))
    elif source is not None and _is_database(source):
        config = Config(settings=Settings(state=str(at_home(source))))
    else:
        config = configuration(source)
    location = config.state_location()
    if location.is_memory:
        raise UsageError(fact=f"{config.path} keeps its state in memory only", advice="Set state to a file or a URL.")
    return config, location


def _is_database(source: str) -> bool:
    """Return whether a path names a database, or the place of one that is lost."""
    path = at_home(source)
    if path.with_name(f"{path.name}.revision").exists():
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
