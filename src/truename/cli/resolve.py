"""`truename resolve`: find the tool that a name refers to."""

from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

from truename import naming
from truename.cli import _completion
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, errors_of, split
from truename.cli._options import Client, JsonOutput, NamingOptions, Source
from truename.cli._rename_record import show_renames
from truename.cli._rendering import print_json, say, say_error, show, styled
from truename.cli._workspace import open_workspace
from truename.errors import ResolutionError, UnknownTool, excerpt
from truename.identity import ToolId
from truename.naming import NameTable, Resolution

__all__ = ["resolve"]

Name = Annotated[
    str,
    Parameter(
        completer=_completion.tools,
        help="A name in any form: a client's, canonical, encoded, without versions, or former.",
    ),
]
Explain = Annotated[bool, Parameter(name="--explain", show_default=False, help="Show the steps that were tried.")]
_AS_IT_IS = NamingOptions()


def resolve(
    name: Name,
    /,
    *sources: Source,
    client: Client = "universal",
    making: NamingOptions = _AS_IT_IS,
    explain: Explain = False,
    as_json: JsonOutput = False,
) -> int:
    """Find the tool that a name refers to. Exit status 1: no tool or several."""
    workspace = open_workspace(sources, making)
    table = workspace.table(client)
    try:
        found = naming.resolve(name, table)
    except ResolutionError as error:
        if explain:
            _show_trail(error.trail, error=True)
        old = workspace.renames.departed(error) if isinstance(error, UnknownTool) else None
        if old is None:
            raise
        sentence = workspace.renames.sentence_departed(old)
        say_error(*split(sentence))
        if as_json:
            ((_, told),) = errors_of(error)
            print_json({"errors": [told | {"text": sentence, "left": workspace.renames.plain_departed(old)}]})
        return EXIT_FINDINGS
    if as_json:
        plain = _plain(found, found.id, table, workspace.registered)
        print_json({"text": name, **plain, **workspace.renames.plain(found.id)})
    else:
        _show(found, found.id, table, workspace.registered, explain=explain)
        show_renames(workspace.renames, [found.id])
    if workspace.failed:
        say(f"Without the servers that failed: {', '.join(workspace.failed)}.")
    return EXIT_UPSTREAM if workspace.failed else 0


def _show(found: Resolution, id: ToolId, table: NameTable, registered: Mapping[str, str], *, explain: bool) -> None:
    origin, why = table.catalog[id].origin, table.explain(id)
    show(styled(str(id), "bold"))
    who = "every client" if table.dialect.name == "universal" else table.dialect.title
    show(f"  {who} calls it ", styled(why.name, "bold cyan"))
    show(f"  it is {origin.name!r} of server {origin.server!r}")
    if name := registered.get(origin.server_id):
        show(f"  the configuration gives that server the name {excerpt(name)} in the MCP registry")
    if explain:
        _show_trail(found.trail)
        show(f"  reason for the name: {why}")


def _plain(found: Resolution, id: ToolId, table: NameTable, registered: Mapping[str, str]) -> dict[str, object]:
    origin, why = table.catalog[id].origin, table.explain(id)
    return {
        "id": str(id),
        "name": why.name,
        "client": table.dialect.name,
        "server": origin.server,
        "registry_name": registered.get(origin.server_id),
        "tool": origin.name,
        "step": found.step,
        "trail": list(found.trail),
        "explanation": {"rung": why.rung, "reason": why.reason, "clash": why.clash and str(why.clash)},
    }


def _show_trail(trail: tuple[str, ...], *, error: bool = False) -> None:
    show("  steps:", error=error)
    for number, step in enumerate(trail, 1):
        show(f"    {number}. {step}", error=error)
