"""`truename history`: show the events of a name in the ledger."""

from typing import Annotated

from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import Configuration, JsonOutput, StateOption
from truename.cli._rendering import print_json, print_table, show, shown_time, styled
from truename.cli._sources import configuration
from truename.cli._workspace import existing_state
from truename.identity import fold
from truename.ledger import Break, Claim, Event, Redirect, Retire, Standing, open_ledger
from truename.storage import StateLocation

__all__ = ["history"]

Name = Annotated[str, Parameter(completer=_completion.tools, help="A name, in any spelling.")]
Only = Annotated[
    str | None,
    Parameter(
        name="--only",
        metavar="SERVER",
        completer=_completion.servers,
        help="Look up the name at this server's own address (/mcp/only/SERVER).",
    ),
]


def history(
    name: Name,
    source: Configuration | None = None,
    /,
    *,
    state: StateOption = None,
    only: Only = None,
    as_json: JsonOutput = False,
) -> int:
    """Show the history of a name: for which tool it was shown, where it was redirected, when it was retired."""
    location = existing_state(_location(source, state))
    path, memory = location.name, open_ledger(location, readonly=True).scoped("" if only is None else f"only/{only}")
    events, standing = memory.history(name), memory.standing(name) or memory.standing_folded(fold(name))
    if as_json:
        told: dict[str, object] = {"name": name, "ledger": str(path), "standing": None}
        if standing is not None:
            told["standing"] = _plain(standing)
        print_json(told | {"events": [event.plain() for event in events]})
    elif standing is None:
        show(f"{name!r} was never shown. The ledger is {path}.")
    else:
        print_table(["when", "what", "name", "in", "tool"], [_row(event) for event in events])
        show("")
        use = f" Use {standing.successor}." if standing.successor else ""
        show(styled(name, "bold cyan"), f" is {_said(standing)}.{use}")
    return 0 if standing is not None else EXIT_FINDINGS


def _plain(standing: Standing) -> dict[str, object]:
    told: dict[str, object] = {
        "status": standing.status,
        "id": standing.id and str(standing.id),
        "successor": standing.successor,
    }
    more = {"until": standing.until, "protocol": standing.protocol}
    return told | {key: said for key, said in more.items() if said}


def _said(standing: Standing) -> str:
    since = f" since protocol {standing.protocol}" if standing.protocol else ""
    tool = "" if standing.id is None else f", {standing.id}"
    return standing.status + since + tool + (f", listed until {standing.until}" if standing.until else "")


def _location(source: str | None, state: str | None) -> StateLocation:
    if state == "memory":
        raise UsageError(fact="a ledger in memory has no history", advice="Give a file: --state PATH.")
    if state is not None:
        return StateLocation.of(state)
    config = configuration(source)
    location = config.state_location()
    if location.is_memory:
        raise UsageError(fact=f"{config.path} keeps its names in memory only", advice="Give a file: --state PATH.")
    return location


def _row(event: Event) -> list[str]:
    when = shown_time(event.at)
    match event:
        case Claim(name=name, id=id, table=table):
            return [when, "shown", name, table, str(id)]
        case Redirect(name=name, id=id, until=until):
            return [when, "redirected", name, f"until {until}" if until else "", str(id)]
        case Break(name=name, successor=successor, protocol=protocol):
            return [
                when,
                "broken",
                name,
                f"protocol {protocol}" if protocol else "",
                f"use {successor}" if successor else "",
            ]
        case Retire(name=name, successor=successor):
            return [when, "retired", name, "", f"use {successor}" if successor else ""]
        case _:
            return [when, event.kind, "", "", ""]
