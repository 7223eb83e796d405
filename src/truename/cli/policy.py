"""`truename policy`: convert a client's lists of tools to rules of the gateway, and show how a call is decided."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Self

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
from truename.cli._name_table import default_sentence
from truename.cli._options import GatewayConfig, JsonOutput, Source, must_be_known
from truename.cli._rename_record import show_renames
from truename.cli._rendering import Cell, print_json, print_table, say, show, styled
from truename.cli._workspace import open_workspace
from truename.clients import Machine, config_files, find
from truename.clients.gateway_address import shown_by
from truename.clients.permissions import GatewayTool, proposed_rules
from truename.clients.selection import select_servers
from truename.config import Config
from truename.config.render import render_rules
from truename.errors import ConfigError, excerpt
from truename.policy import Caller, CallRule, Context, Policy, bound_call
from truename.policy.rules import STRICTNESS, TERMS, Decision

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
        validator=must_be_known,
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

_TOLD_APART: Final = frozenset({"name", "outcome", "reason"})
policy = App(
    name="policy",
    help="Explain the rules of the gateway and how calls are decided, and propose some.",
    help_format="plaintext",
    help_epilogue=epilogue_of("policy"),
    default_parameter=Parameter(negative=()),
)


@policy.command(name="rules")
def rules(*, source: GatewayConfig = None, as_json: JsonOutput = False) -> int:
    """Show each rule of the policy: its terms, and the servers that it applies to. Nothing is started.

    A rule with registry_names applies to servers whose entries have such a registry_name. Names that a server states
    itself do not count.
    """
    config = read_gateway_config(source)
    known = config.settings.policy
    found = [_RuleServers.of(rule, config) for rule in (() if known is None else known.rules)]
    if as_json:
        default = None if known is None else known.default
        print_json({"default": default, "rules": [one.plain(config.registered) for one in found]})
        return 0
    if known is None:
        show("There is no policy, so every call is allowed.")
        return 0
    rows: list[list[Cell]] = [
        [styled(one.rule.name, "bold"), styled(one.rule.outcome), one.conditions, one.shown(config.registered)]
        for one in found
    ]
    if rows:
        print_table(["rule", "outcome", "matches", "servers"], rows)
        show("")
    show(default_sentence(known))
    return 0


@dataclass(frozen=True, kw_only=True)
class _RuleServers:
    """A rule, and the servers of the configuration that it is about; None: whatever server a tool is of."""

    rule: CallRule
    servers: tuple[str, ...] | None

    @classmethod
    def of(cls, rule: CallRule, config: Config) -> Self:
        if not rule.servers and not rule.registry_names:
            return cls(rule=rule, servers=None)
        return cls(rule=rule, servers=tuple(one.key for one in config.enabled if rule.concerns_server(one.key)))

    @property
    def written(self) -> dict[str, object]:
        """The conditions of the rule as in a configuration."""
        known = ((about.key or term, getattr(self.rule, term)) for term, about in TERMS.items())
        return {key: value for key, value in known if value and key not in _TOLD_APART}

    @property
    def conditions(self) -> str:
        return "; ".join(f"{key} {_as_text(value)}" for key, value in self.written.items())

    def shown(self, registered: Mapping[str, str]) -> str:
        if self.servers is None:
            return "all"
        keys = (f"{excerpt(key)[1:-1]}{self._why(registered.get(key))}" for key in self.servers)
        return ", ".join(keys) or "none now"

    def _why(self, name: str | None) -> str:
        return f" ({excerpt(name)[1:-1]})" if name and self.rule.registry_names else ""

    def plain(self, registered: Mapping[str, str]) -> dict[str, object]:
        servers = None
        if self.servers is not None:
            servers = [{"key": key, "registry_name": registered.get(key)} for key in self.servers]
        conditions = {key: dict(value) if isinstance(value, Mapping) else value for key, value in self.written.items()}
        return {
            "name": self.rule.name,
            "outcome": self.rule.outcome,
            "reason": self.rule.reason,
            "matches": conditions,
            "servers": servers,
        }


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {str(one).lower()}" for key, one in value.items())
    return ", ".join(excerpt(str(one))[1:-1] for one in value) if isinstance(value, tuple) else str(value)


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

    A tool that its server may have renamed is judged as each tool that it may be. The command ignores the arguments of
    calls, and decisions of people about calls.
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
        # Rules are about a client in all its versions.
        caller=Caller(principal=as_, client=client and table.dialect.client).within(where),
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
