"""`truename rename`: other names for tools, in files and in the ledger; planned, shown, and made all at once."""

from typing import Annotated

from cyclopts import Parameter

from truename.cli.failure import UsageFault
from truename.cli.migrating import Request, check, migrate, take_back
from truename.cli.moved_ids import move_ids
from truename.cli.options import Aliases, JsonOutput, LedgerPath, Making, ServerName
from truename.cli.rename_options import AS_PLANNED, EVERYWHERE, Fate, Where
from truename.cli.restyling import restyle

__all__ = ["rename"]

Words = Annotated[str, Parameter(help="OLD NEW; or the SOURCE of the tools for --style, --all and --ids.")]
All = Annotated[
    bool, Parameter(name="--all", show_default=False, help="All tools of a ledger: how their names are made.")
]
Ids = Annotated[
    bool,
    Parameter(
        name="--ids",
        show_default=False,
        help="The ids of servers that the configuration declares another integration or version for.",
    ),
]
MapFile = Annotated[
    str | None, Parameter(name="--map", help="A file of renames: TOML with [renames], or a JSON object, old to new.")
]
For = Annotated[
    tuple[str, ...],
    Parameter(
        name="--for",
        show_default=False,
        help="A client that has to accept the new names (`truename clients` lists them). May be repeated.",
    ),
]
StyleName = Annotated[
    str | None,
    Parameter(
        name="--style",
        help="For names in files: underscore, convention (your own), or a preset of one (trailblaze, provider-safe, "
        "canonical, mcp). With --all: prefixed, on-conflict, server-prefix, canonical, declared or dotted-double.",
    ),
]
DryRun = Annotated[bool, Parameter(name="--dry-run", show_default=False, help="Show it only; change nothing.")]
Undo = Annotated[
    bool, Parameter(name="--undo", show_default=False, help="Give the files of the last rename here back.")
]


def rename(
    *words: Words,
    every: All = False,
    ids: Ids = False,
    map_file: MapFile = None,
    clients: For = (),
    style: StyleName = None,
    server_name: ServerName = None,
    alias: Aliases = (),
    ledger: LedgerPath = None,
    where: Where = EVERYWHERE,
    fate: Fate = AS_PLANNED,
    undo: Undo = False,
    dry_run: DryRun = False,
    as_json: JsonOutput = False,
) -> int:
    """Rename tools: in files (--apply), and in the ledger. Without --apply the plan is shown, and nothing is changed.

    OLD NEW renames one tool, --map several, --style underscore or --style convention whatever breaks that style.
    --all changes how all names of a ledger are made; --ids has old ids of servers lead to those that the configuration
    declares now. Old names and ids go on working.
    """
    if undo:
        if words or every or ids or dry_run or map_file or style or fate != AS_PLANNED or where != EVERYWHERE:
            raise UsageFault(
                fact="--undo takes nothing else", advice="Say `truename rename --undo`, with --json if wanted."
            )
        return take_back(as_json=as_json)
    if (every or ids) and len(words) > 1:
        given = "--all" if every else "--ids"
        raise UsageFault(fact=f"{len(words)} words were given with {given}", advice="Give one SOURCE, or none.")
    if ids:
        said = every or map_file or style or clients or server_name or alias or where != EVERYWHERE
        if said or fate.clean_break:
            raise UsageFault(
                fact="--ids takes no other names, files or clean break",
                advice="Say `truename rename SOURCE --ids`; --ledger, --listed-for, --dry-run and --json go with it.",
            )
        return move_ids(words[0] if words else None, ledger, fate, dry_run=dry_run, as_json=as_json)
    if every:
        client = clients[0] if clients else "universal"
        making = Making(style=style, server_name=server_name, alias=alias, ledger=ledger)
        return restyle(words[0] if words else None, making, client, dry_run=dry_run, as_json=as_json)
    request = Request(words=words, map_file=map_file, style=style, ledger=ledger, clients=clients)
    if where.check is not None:
        return check(request, where, as_json=as_json)
    return migrate(request, where, fate, dry_run=dry_run, as_json=as_json)
