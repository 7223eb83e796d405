"""Options that several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from truename import dialects
from truename.cli import _completion
from truename.naming import STYLES

__all__ = [
    "STYLE_NAMES",
    "Aliases",
    "Client",
    "Configuration",
    "CopySecrets",
    "DryRun",
    "Force",
    "GatewayConfig",
    "JsonOutput",
    "LogFormat",
    "LogLevel",
    "NamingOptions",
    "Out",
    "ServerName",
    "Source",
    "StateOption",
    "must_be_known",
]

STYLE_NAMES = ", ".join(STYLES)


def must_be_known(_type: object, client: str) -> None:
    """Check a client's name while options are read, before any server starts. Raises `UnknownDialect`."""
    if client:
        dialects.get(client)


Source = Annotated[str, Parameter(help="A dump or a configuration file.")]
Configuration = Annotated[str, Parameter(name="SOURCE", help="A configuration: mcpServers JSON, or truename.toml.")]
GatewayConfig = Annotated[
    str | None,
    Parameter(name="--config", metavar="FILE", help="The gateway's configuration; default: as for `truename serve`."),
]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
JsonOutput = Annotated[bool, Parameter(name="--json", show_default=False, help="Print one JSON document on stdout.")]
Client = Annotated[
    str,
    Parameter(
        name="--for",
        metavar="CLIENT",
        completer=_completion.clients,
        validator=must_be_known,
        help="The client, framework or provider (`truename clients` lists them); codex@0.50 for a version.",
    ),
]
StyleName = Annotated[
    str | None,
    Parameter(
        name="--style",
        metavar="STYLE",
        completer=_completion.styles,
        help=f"{STYLE_NAMES}; default: the ledger's style, else by the number of servers.",
    ),
]
StateOption = Annotated[
    str | None,
    Parameter(
        name="--state",
        metavar="STATE",
        help="The state database: a file, a URL or `memory`; default: the configuration's.",
    ),
]
ServerName = Annotated[
    str | None, Parameter(name="--server-name", metavar="NAME", help="The key under which clients know the gateway.")
]
Aliases = Annotated[
    tuple[str, ...],
    Parameter(
        name="--alias",
        metavar="INTEGRATION=SHORT",
        show_default=False,
        help="A short name for an integration: salesforce=sf. May be repeated.",
    ),
]
Out = Annotated[Path, Parameter(name="--out", metavar="FILE", help="The file to write.")]
CopySecrets = Annotated[
    bool,
    Parameter(
        name="--copy-secrets",
        show_default=False,
        help="Copy secrets to truename.env, which only you may read; default: write only ${REFERENCES}.",
    ),
]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", show_default=False, help="Print the configuration on stdout; write nothing.")
]
Force = Annotated[
    bool, Parameter(name="--force", show_default=False, help="Replace an existing file, and keep it as FILE.bak.")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NamingOptions:
    """Options about names, which override the configuration and the ledger."""

    style: StyleName = None
    server_name: ServerName = None
    alias: Aliases = ()
    state: StateOption = None

    @property
    def is_otherwise(self) -> bool:
        """Whether any option changes how names are made."""
        return bool(self.style or self.server_name or self.alias)
