"""`truename policy`: convert a client's lists of tools to rules of the gateway, and show how a call is decided."""

from dataclasses import replace
from typing import Annotated, Final

from cyclopts import App, Parameter

from truename import naming
from truename.cli import _completion
from truename.cli._command_list import epilogue_of
from truename.cli._connections import (
    GatewayUrl,
    ProjectDirectory,
    ToolsDump,
    find_client,
    gateway_address,
    gateway_url,
    read_gateway_config,
    show_notes,
)
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._gateway_names import known_tools, new_names
from truename.cli._options import GatewayConfig, JsonOutput, Source
from truename.cli._rename_record import show_renames
from truename.cli._rendering import print_json, print_table, say, show, styled
from truename.cli._workspace import open_workspace
from truename.clients import Machine, config_files, find
from truename.clients.gateway_address import shown_by
from truename.clients.permissions import GatewayTool, proposed_rules
from truename.clients.selection import select_servers
from truename.config.render import render_rules
from truename.errors import ConfigError
from truename.policy import Caller, Context, Policy, bound_call
from truename.policy.rules import STRICTNESS, Decision

__all__ = ["policy"]

Client = Annotated[
    str,
    Parameter(
        completer=_completion.configured_clients,
        help="The client whose lists of tools are read (`truename clients` lists many).",
    ),
]
Name = Annotated[
    str, Parameter(completer=_completion.tools, help="The tool, by a name in any form, as for `truename resolve`.")
]
CallingClient = Annotated[
    str,
    Parameter(
        name="--for",
        metavar="CLIENT",
        show_default=False,
        completer=_completion.clients,
        help="The client that calls; default: an unknown one.",
    ),
]
As = Annotated[
    str,
    Parameter(
        name="--as", metavar="NAME", show_default=False, help="The principal that calls; default: an unknown one."
    ),
]
InContext = Annotated[
    str,
    Parameter(
        name="--context", metavar="CONTEXT", show_default=False, help="The context of the call: platform=ios, app=pay."
    ),
]
_OUTCOMES: Final = {"allow": "allowed", "ask": "needs an approval", "deny": "denied"}
_COLUMNS: Final = ("as", "outcome", "rule", "reason")

policy = App(
    name="policy",
    help="Propose rules for the gateway, and show how calls are decided.",
    help_format="plaintext",
    help_epilogue=epilogue_of("policy"),
    default_parameter=Parameter(negative=()),
)


@policy.command(name="from-client")
def from_client(
    client: Client,
    /,
    *,
    source: GatewayConfig = None,
    url: GatewayUrl = None,
    catalog: ToolsDump = None,
    project: ProjectDirectory = None,
    as_json: JsonOutput = False,
) -> int:
    """Print rules with the same effect as a client's lists that deny, hide or ask about tools. Nothing is changed.

    The rules apply to this client only, however a tool is called. Add them to the configuration. Exit status 1: the
    client has no such list.
    """
    client = find_client(client)
    config = read_gateway_config(source)
    address = gateway_address(config, gateway_url(config, url))
    machine = Machine.here(project)
    mine = [found for found in find(machine) if found.file.client == client]
    choice = select_servers([found for found in mine if found.servers], address, machine)
    dialect = config_files(client)[0].dialect
    own = known_tools(config, catalog)
    shown = new_names(config, catalog, client=dialect, url=None)
    servers = [
        GatewayTool(one.key, one.upstream, {name: name for name in own.get(one.upstream, ())})
        for one in choice.selected
    ]
    for one in choice.already:
        only, several = shown_by(one.server)
        names = shown.together if only is None else shown.alone
        keys = [only] if only is not None else names if several is None else several
        servers += [
            GatewayTool(one.server.key, key, {wire: own for own, wire in names.get(key, {}).items()}) for key in keys
        ]
    proposed = proposed_rules(mine, servers, dialect)
    if as_json:
        notes = [{"subject": one.subject, "fact": one.fact, "advice": one.advice} for one in proposed.notes]
        print_json({"client": client, "rules": list(proposed.rules), "notes": notes})
    elif proposed.rules:
        for line in render_rules(proposed.rules).splitlines():
            show(line)
    else:
        say(f"{config_files(client)[0].title} has no list that limits tools of the gateway's servers.")
    if not as_json:
        show_notes(proposed.notes, error=True)
    return 0 if proposed.rules else EXIT_FINDINGS


@policy.command
def explain(
    name: Name,
    /,
    *sources: Source,
    client: CallingClient = "",
    as_: As = "",
    context: InContext = "",
    as_json: JsonOutput = False,
) -> int:
    """Show how a call of a tool is decided, by which rule, and as which former tool. Exit status 1: it is not allowed.

    A tool that its server may have renamed is judged as each tool that it may be. What a rule says of arguments, and
    what people decided on calls, is not looked at.
    """
    workspace = open_workspace(sources)
    table = workspace.table(client or "universal")
    id = naming.resolve(name, table).id
    try:
        where = Context.parse(context) if context else Context()
    except ConfigError as error:
        raise UsageError(fact=f"--context: {error.key} {error.problem}", advice=error.remedy) from error
    settings = workspace.settings
    rules = settings.policy or Policy(default="allow")
    call = bound_call(
        name=table[id],
        call_id="explain",
        arguments={},
        names=table,
        caller=Caller(principal=as_, client=client).within(where),
        tool=table.catalog[id],
        lineage=workspace.lineage,
    )
    found = replace(rules, exposure=rules.exposure or settings.exposure).decisions(call)
    strictest = max(found, key=lambda one: STRICTNESS[one[1].outcome])
    if as_json:
        told = [dict(zip(_COLUMNS, (str(one), *_told(said)), strict=True)) for one, said in found]
        print_json({"id": str(id), **told[found.index(strictest)], "decisions": told, **workspace.renames.plain(id)})
    else:
        show(styled(str(id), "bold"), f": {_OUTCOMES[strictest[1].outcome]}")
        print_table(["judged as", "outcome", "rule", "reason"], [[str(one), *_told(said)] for one, said in found])
        show_renames(workspace.renames, [id])
    return 0 if strictest[1].outcome == "allow" else EXIT_FINDINGS


def _told(said: Decision) -> tuple[str, str, str]:
    return said.outcome, said.rule, said.reason
