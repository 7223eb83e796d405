"""`truename policy`: convert a client's lists of tools to rules of the gateway."""

from typing import Annotated

from cyclopts import App, Parameter

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
from truename.cli._errors import EXIT_FINDINGS
from truename.cli._gateway_names import known_tools, new_names
from truename.cli._options import GatewayConfig, JsonOutput
from truename.cli._rendering import print_json, say, show
from truename.clients import Machine, config_files, find
from truename.clients.gateway_address import shown_by
from truename.clients.permissions import GatewayTool, proposed_rules
from truename.clients.selection import select_servers
from truename.config.render import render_rules

__all__ = ["policy"]

Client = Annotated[
    str,
    Parameter(
        completer=_completion.configured_clients,
        help="The client whose lists of tools are read (`truename clients` lists many).",
    ),
]

policy = App(
    name="policy",
    help="Propose rules for the gateway.",
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
