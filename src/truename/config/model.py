"""Represent a configuration as frozen values, and name the place of its state."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.catalog import UNDECLARED, ServerIdentity
from truename.config.access import Access
from truename.config.approvals import Asking
from truename.config.audit import Audit
from truename.config.telemetry import Telemetry
from truename.config.trust import Trust
from truename.files.private import state_directory
from truename.files.user import at_home
from truename.ledger import MAX_CLAIMS
from truename.naming import DEFAULT_SERVER_NAME
from truename.policy import Context, Exposure
from truename.policy.presentation import Presentation
from truename.policy.profiles import Profiles
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.credentials import Auth
    from truename.conventions import Convention
    from truename.errors import ConfigError
    from truename.policy import Policy

__all__ = [
    "MEMORY",
    "Config",
    "Isolation",
    "NamesMode",
    "ReloadMode",
    "SearchMode",
    "ServerConfig",
    "Settings",
    "StartMode",
    "state_path",
]

NamesMode = Literal["universal", "detect", "canonical"]
SearchMode = Literal["auto", "on", "off"]
Isolation = Literal["shared", "session", "user"]
ReloadMode = Literal["watch", "signal", "off"]
StartMode = Literal["eager", "lazy"]
MEMORY: Final = "memory"
_MIB: Final = 1024 * 1024


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set; the defaults are what a plain ``mcpServers`` file gets.

    ``aliases`` are short names of integrations (None: the built-in table). ``style`` None leaves the choice to the
    ledger, and to the number of servers when the ledger is new. ``state`` is the path of the state database,
    ``memory``, or None for `state_path`; one server may hold ``max_claims`` names in it. Times are seconds, sizes
    bytes; ``answer_timeout`` is for what a server asks the client, ``max_rounds`` how often it may in one call,
    ``max_isolated`` how many sessions or users may have connections of their own to one server, and
    ``isolation_idle`` how long those may be unused over HTTP, ``max_held`` how many calls may wait for answers
    (``max_held_bytes`` in all), and ``max_tasks`` how many tasks of servers are known at a time.
    ``max_concurrent`` calls run at one server and ``max_waiting`` wait; after ``breaker_failures`` in a row it is
    left alone for ``breaker_seconds``. A session ends after ``session_timeout`` without a request; for a client that
    comes back, ``resume_events`` of it are kept, of ``resume_bytes`` (``resume_total`` of all). One client that
    started the gateway may have ``max_requests`` open, all together may send ``max_incoming`` bytes at a time, nested
    ``max_depth`` levels, one of them ``max_entries`` keys and items, and ``max_views`` lists are kept ready.
    Answers that are not read are kept up to ``max_unread`` bytes. Of sessions, connections, requests and unread answers
    one principal has ``principal_share`` percent at most, and ``reserved_share`` are for those who have none. At its
    end the gateway waits ``drain_timeout`` for running calls. ``reload`` says when `truename serve` reads its files
    anew. With ``start`` lazy a server is started at the first request to it, and ended after ``idle_timeout`` without
    one (0: never). ``server_instructions`` is how many characters of each server's instructions clients are given,
    ``max_instructions`` of all together (0: none).
    ``overrides`` are declared names: dialect -> tool id -> name. ``metadata`` is
    the operator's word on tools: id or glob -> fields of their `Metadata`, ``tools`` what clients are shown of them
    in the place of the servers' words, ``convention`` what their names say.
    ``policy`` None allows every call. ``context`` is that of sessions that say nothing, ``contexts`` are named ones.
    ``protocol`` is the version of the names, ``recording`` the file of recorded calls. ``names_in_texts`` has the
    servers' texts mention tools by the names that are shown. ``tool_search`` auto lists only ``pinned`` tools (globs
    on ids) where more than ``max_listed`` are shown, or about ``list_budget`` tokens of definitions. ``env_file``
    holds KEY=VALUE lines for ``${KEY}`` references; what it says is never kept. ``access`` is who may come in,
    ``trust`` what is done about definitions that are new or changed, ``audit`` what is written down of calls,
    ``telemetry`` what machines are told of how it goes,
    ``approvals`` who is asked about them,
    ``profiles`` which tools, prompts and resources there are for whom. ``allow_addresses`` are networks that are gone
    to whatever they are.
    """

    aliases: Mapping[str, str] | None = None
    style: str | None = None
    server_name: str = DEFAULT_SERVER_NAME
    names: NamesMode = "universal"
    state: str | None = None
    token: str | None = field(default=None, repr=False)
    call_timeout: float = 300.0
    startup_timeout: float = 60.0
    answer_timeout: float = 600.0
    max_rounds: int = 10
    max_isolated: int = 32
    isolation_idle: float = 300.0
    max_held: int = 100
    max_held_bytes: int = 64 * _MIB
    max_tasks: int = 10_000
    max_concurrent: int = 128
    max_waiting: int = 512
    breaker_failures: int = 5
    breaker_seconds: float = 60.0
    drain_timeout: float = 30.0
    reload: ReloadMode = "watch"
    start: StartMode = "eager"
    idle_timeout: float = 300.0
    server_instructions: int = 2_000
    max_instructions: int = 8_000
    max_body: int = 4 * _MIB
    max_result: int = 32 * _MIB
    max_tools: int = 5_000
    max_sessions: int = 1_000
    session_timeout: float = 1_800.0
    resume_events: int = 500
    resume_bytes: int = 8 * _MIB
    resume_total: int = 64 * _MIB
    max_requests: int = 1_000
    max_incoming: int = 256 * _MIB
    max_unread: int = 128 * _MIB
    principal_share: int = 50
    reserved_share: int = 10
    max_depth: int = 100
    max_entries: int = 50_000
    max_views: int = 64
    max_claims: int = MAX_CLAIMS
    overrides: Mapping[str, Mapping[str, str]] = field(default_factory=_nothing)
    policy: Policy | None = None
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=_nothing)
    tools: Presentation = field(default_factory=Presentation)
    convention: Convention | None = None
    context: Context = field(default_factory=Context)
    contexts: Mapping[str, Context] = field(default_factory=_nothing)
    tool_search: SearchMode = "off"
    max_listed: int = 100
    list_budget: int = 10_000
    pinned: tuple[str, ...] = ()
    allow_addresses: tuple[str, ...] = ()
    protocol: str | None = None
    names_in_texts: bool = True
    recording: str | None = None
    env_file: str | None = None
    access: Access = field(default_factory=Access)
    trust: Trust = field(default_factory=Trust)
    audit: Audit = field(default_factory=Audit)
    telemetry: Telemetry = field(default_factory=Telemetry)
    approvals: Asking = field(default_factory=Asking)
    profiles: Profiles = field(default_factory=Profiles)

    @property
    def exposure(self) -> Exposure:
        """Which tools are for which session: what the operator, the tools' authors and their names say."""
        contexts = (self.context, *self.contexts.values())
        return Exposure.within(contexts, convention=self.convention, metadata=self.metadata)


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """One upstream server: ``command`` (stdio) or ``url`` (HTTP), never both.

    ``cwd`` is absolute, or None for the directory of the caller. ``timeout`` is for one call, in seconds,
    ``tool_timeouts`` for calls of single tools: by the server's own name, or a glob. ``idempotent`` are the tools whose
    calls may be sent again. ``max_concurrent`` and ``max_waiting`` go before the settings. ``isolation`` says whether
    all clients share one connection, or each session (or user) has one of its own. ``start`` and ``idle_timeout`` go
    before the settings. ``auth`` is how access tokens for it are had, if it takes any. ``allow_redirects`` are the
    other hosts (``host`` or ``host:port``) to which its redirects are followed. ``identity`` is what its entry
    declares of the ids of its tools: ``integration``, ``version``, ``versions``. ``unset`` are the variables that its
    texts refer to (``${NAME}``) and that have no value: with any, the server can't be started.
    """

    key: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=_nothing, repr=False)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=_nothing, repr=False)
    type: Literal["stdio", "http", "sse"] = "stdio"
    disabled: bool = False
    timeout: float | None = None
    tool_timeouts: Mapping[str, float] = field(default_factory=_nothing)
    idempotent: tuple[str, ...] = ()
    max_concurrent: int | None = None
    max_waiting: int | None = None
    isolation: Isolation = "shared"
    start: StartMode | None = None
    idle_timeout: float | None = None
    auth: Auth | None = None
    allow_redirects: tuple[str, ...] = ()
    identity: ServerIdentity = UNDECLARED
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration: where it came from, its servers in the order of the file, and its settings.

    ``files`` are those that its references name: what they say is part of it. ``warnings`` are what is probably not
    meant and stops nobody, each with its place and what to do.
    """

    path: Path | None = None
    servers: tuple[ServerConfig, ...] = ()
    settings: Settings = Settings()
    files: tuple[Path, ...] = field(default=(), compare=False)
    warnings: tuple[ConfigError, ...] = field(default=(), compare=False)

    @property
    def enabled(self) -> tuple[ServerConfig, ...]:
        """The servers that are not disabled."""
        return tuple(server for server in self.servers if not server.disabled)

    @property
    def identities(self) -> Mapping[str, ServerIdentity]:
        """What the entries of the servers that are not disabled declare of the ids of their tools, by key."""
        return MappingProxyType({server.key: server.identity for server in self.enabled})

    def state_location(self, environ: Mapping[str, str] | None = None) -> StateLocation:
        """Return the place of the state database; memory where the setting says so, or there is no file of settings.

        At the default place, files of earlier versions are imported.
        """
        said = self.settings.state
        if said == MEMORY or (said is None and self.path is None):
            return StateLocation()
        if said is not None:
            return StateLocation(at_home(said))
        path = state_path(self.path or Path(), environ)
        return StateLocation(path, _former_files(path))

    def keys_path(self, environ: Mapping[str, str] | None = None) -> Path | None:
        """Return the directory of the key that seals secrets and of locks between processes, or None for memory."""
        path = self.state_location(environ).path
        if path is None:
            return None
        return path.with_name(f"{path.name}.keys") if self.settings.state else path.parents[1] / "access" / path.stem

    def pins_location(self, environ: Mapping[str, str] | None = None) -> StateLocation:
        """Return the place of the pins: the state database, unless ``trust.pins`` names another."""
        said = self.settings.trust.pins
        if said is None:
            return self.state_location(environ)
        return StateLocation(None if said == MEMORY else Path(said))


def _former_files(state: Path) -> Mapping[str, Path]:
    """Return the files that earlier versions kept, by owner, for a database at its default place."""
    home, name = state.parents[1], state.stem
    access = home / "access" / name
    return MappingProxyType(
        {
            "ledger": state.with_suffix(".ledger"),
            "pin": home / "pins" / f"{name}.pins",
            "approval": home / "approvals" / f"{name}.json",
            "pending_call": home / "approvals" / f"{name}.json.pending",
            "token": access / "tokens.json",
            "sign_in": access / "sign-ins.db",
            "secret": access / "vault.db",
            "session": access / "sessions.db",
        }
    )


def state_path(config_path: Path | str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the default state database of a configuration: one each, in the user's state directory.

    ``XDG_STATE_HOME`` (or ``~/.local/state``), ``~/Library/Application Support`` on macOS, ``%LOCALAPPDATA%`` on
    Windows. The name holds a digest of the configuration's absolute path.
    """
    path = at_home(config_path).resolve()
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    stem = "".join(character if character.isalnum() else "-" for character in path.stem)[:40]
    return state_directory(environ) / "ledgers" / f"{stem}-{digest}.db"
