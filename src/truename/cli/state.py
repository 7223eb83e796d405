"""Show where a configuration keeps its state, check the database, and go on after changes were lost."""

from cyclopts import App, Parameter

from truename.auth.authorization_server import sessions
from truename.auth.inbound import static_tokens
from truename.cli._audit import audited
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, show, styled
from truename.cli._sources import configuration
from truename.config import Config, Settings
from truename.files.user import at_home
from truename.ledger import sql as ledger
from truename.policy import sql as approvals
from truename.storage import Revision, StateLocation, accept_state, check_state, known_revision
from truename.trust import approval_queue, pins

__all__ = ["state"]

# The vault and the sessions of MCP need packages that a check does not.
_SCHEMAS = (
    *(ledger.SCHEMA, pins.SCHEMA, approvals.SCHEMA, approval_queue.SCHEMA),
    *(static_tokens.SCHEMA, sessions.SCHEMA),
)
_SQLITE = b"SQLite format 3\0"

state = App(
    name="state",
    help="Show where the state is kept, check it, and accept it after a loss.",
    help_format="plaintext",
    help_epilogue="The state is one database: names, pins, approvals, tokens, logins and sessions. A SOURCE is a "
    "configuration, or the database itself. Copy it with `sqlite3 PATH '.backup COPY'` while the gateway runs.",
    default_parameter=Parameter(negative=()),
)


@state.command
def path(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Print the path of the state database."""
    _, location = _of(source)
    if as_json:
        print_json({"path": str(location.path), "exists": location.exists})
    else:
        show(str(location.path))
    return 0


@state.command
def check(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Check the whole database: pages, constraints, the names against their history, and the revision.

    The revision is compared with the audit log and with the file beside the database.

    Exit status 1: something is wrong.
    """
    _, location = _of(source)
    if not location.exists:
        raise UsageError(fact=f"no state found at {location.path} yet", advice="`truename serve` creates it.")
    report = check_state(location, _SCHEMAS, (ledger.check_ledger,))
    if as_json:
        changes = None if report.revision is None else report.revision.number
        print_json(
            {
                "path": str(location.path),
                "changes": changes,
                "parts": dict(report.parts),
                "problems": [*report.problems],
            }
        )
    else:
        for problem in report.problems:
            show(styled("error: ", "bold red"), problem)
        if not report.problems and report.revision is not None:
            show(f"{location.path} is whole: {report.revision.number:,} changes.")
    return EXIT_FINDINGS if report.problems else 0


@state.command
def accept(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Accept the database as it is, after changes were lost. Names may then mean other tools than before."""
    config, location = _of(source)
    known = known_revision(location)
    with audited(config, "state", "accepted") as (record,):
        found = accept_state(location)
        record.update({"database": found.database, "revision": found.number} if found else {"revision": 0})
    if as_json:
        print_json(
            {
                "path": str(location.path),
                "changes": None if found is None else found.number,
                "known_changes": None if known is None else known.number,
                "is_another_database": bool(known and found and known.database != found.database),
            }
        )
        return 0
    show(_accepted(location, found, known))
    return 0


def _accepted(location: StateLocation, found: Revision | None, known: Revision | None) -> str:
    """Return a sentence about what was accepted, and what was lost."""
    lost = "" if known is None else f" All {known.number:,} changes of the lost one are gone."
    if found is None:
        former = ", ".join(str(path) for path in location.former.values() if path.exists())
        again = (
            "Tokens and approvals that were revoked since then count again; move the files away to start without them."
        )
        imported = f" It imports the files of an earlier version again: {former}. {again}" if former else ""
        return f"There is no database at {location.path}: the next start creates one.{lost}{imported}"
    what = f"{location.path} is accepted with {found.number:,} changes."
    if known is not None and known.database != found.database:
        return f"{what} It is another database than before.{lost} Its names may mean other tools."
    if known is not None and known.number > found.number:
        return f"{what} {known.number - found.number:,} later changes are lost: names may mean other tools."
    return f"{what} No change was missing."


def _of(source: str | None) -> tuple[Config, StateLocation]:
    """Return a configuration and the place of its state, with the revision that its audit log has."""
    if source is not None and _is_database(source):
        config = Config(settings=Settings(state=str(at_home(source))))
    else:
        config = configuration(source)
    location = config.state_location()
    if location.path is None:
        raise UsageError(fact=f"{config.path} keeps its state in memory only", advice="Set state to a file.")
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
