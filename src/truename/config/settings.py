"""The settings of the gateway: each is declared once, with its type, default, unit, meaning and reload rule.

To add a setting, add a field to `Settings` (or to the dataclass of its table: `access`, `approvals`, `audit`,
`console`, `telemetry`, `trust`), and run ``python -m truename.config.reference docs/reference/settings.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename import dialects
from truename.config.access import Access, check_access
from truename.config.approvals import Asking
from truename.config.audit import Audit, check_audit
from truename.config.console import ConsoleAccess
from truename.config.field_types import (
    BOOLEAN,
    COUNT,
    COUNT_OR_ZERO,
    ID_GLOBS,
    NETWORKS,
    PATH,
    PERCENT,
    REFERENCE,
    SECONDS,
    SECONDS_OR_ZERO,
    STORE_PATH,
    TEXT,
    TEXTS,
    checked_by,
    choice,
    matching,
    read_elsewhere,
    table,
)
from truename.config.fields import EMPTY, FieldType, rows_of, setting
from truename.config.policy_tables import CONTEXT, CONTEXTS, METADATA, POLICY, PROFILES, TOOLS
from truename.config.quotas import Quotas
from truename.config.telemetry import Telemetry
from truename.config.trust import TRUST, Trust
from truename.conventions import plain_convention, read_convention
from truename.conventions.convention import CONVENTION
from truename.errors import InvalidToolId, MigrationError, UnknownDialect, excerpt
from truename.identity import ToolId
from truename.ledger import MAX_CLAIMS
from truename.naming import DEFAULT_SERVER_NAME, STYLES
from truename.policy import Context, Exposure
from truename.policy.presentation import Presentation
from truename.policy.profiles import Profiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.fields import Fields, Setting
    from truename.conventions import Convention
    from truename.policy import Policy

__all__ = ["SETTINGS", "NamesMode", "ReloadMode", "SearchMode", "SearchRanking", "Settings", "StartMode", "wrong"]

NamesMode = Literal["universal", "detect", "canonical"]
SearchMode = Literal["auto", "on", "off"]
SearchRanking = Literal["lexical", "meaning", "both"]
ReloadMode = Literal["watch", "signal", "off"]
StartMode = Literal["eager", "lazy"]
_MIB: Final = 1024 * 1024
_HOST_AND_PORT: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}")
_LONGEST: Final = 64
_WORD: Final[Mapping[str, Any]] = {"anyOf": [{"type": "string", "pattern": r"\S", "maxLength": _LONGEST}, REFERENCE]}


def wrong(setting: str, text: str) -> tuple[str, str] | None:
    """Return the problem of a text for this setting and the remedy; None if it is valid.

    >>> wrong("token", "a b")
    ('it cannot be sent as a bearer token', 'Use printable ASCII without spaces.')
    """
    if setting == "token":
        good = text and text.isascii() and text.isprintable() and " " not in text
        return None if good else ("it cannot be sent as a bearer token", "Use printable ASCII without spaces.")
    if text.strip() and text.isprintable() and len(text) <= _LONGEST:
        return None
    what = "a server's name" if setting == "server_name" else "an alias"
    return f"{excerpt(text)} cannot be {what}", "Write a short word."


def _read_checked(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and (found := wrong(name, text)):
        fields.add(name, *found)
        return None
    return text


def _read_aliases(fields: Fields, name: str) -> Mapping[str, str] | None:
    if name not in fields:
        return None
    aliases = fields.pairs(name)
    for integration, alias in aliases.items():
        if found := wrong(name, alias):
            fields.add(f"{name}.{excerpt(integration)[1:-1]}", *found)
    return MappingProxyType(aliases)


def _read_overrides(fields: Fields, name: str) -> Mapping[str, Mapping[str, str]] | None:
    declared = fields.nested(name, "an object: dialect -> tool id -> name")
    if declared is None:
        return None
    for dialect in declared:
        try:
            dialects.get(dialect)
            for id in declared.pairs(dialect):
                ToolId.parse(id)
        except UnknownDialect as error:
            problem, _, remedy = str(error).rpartition(". ")
            declared.add(dialect, problem, remedy)
        except InvalidToolId as error:
            problem = f"{excerpt(error.text)} is not a tool id: {error.reason}"
            declared.add(dialect, problem, "Write integration@version/suite.tool@version.")
    return MappingProxyType({dialect: MappingProxyType(declared.pairs(dialect)) for dialect in declared})


def _read_protocol(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is None:
        return None
    from truename.migration.protocol_versions import version_parts  # noqa: PLC0415 - the package costs 40 ms

    try:
        version_parts(text)
    except MigrationError as error:
        fields.add(name, error.problem, error.remedy)
        return None
    return text


_ALIASES: Final = FieldType(
    name="table: integration -> alias",
    read=_read_aliases,
    schema={
        "type": "object",
        "additionalProperties": {"anyOf": [*_WORD["anyOf"], {"type": ["number", "boolean"]}]},
    },
    plain=dict,
)
_OVERRIDES: Final = FieldType(
    name="table: client -> tool id -> name",
    read=_read_overrides,
    schema={
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "propertyNames": {"pattern": "[/~%]"},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
    },
    plain=lambda value: dict(sorted(value.items())),
)
_CONVENTION: Final = FieldType(
    name="table", read=partial(read_elsewhere, read_convention), schema=CONVENTION, plain=plain_convention
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a gateway; a plain ``mcpServers`` file gets the defaults."""

    # Names
    server_name: str = setting(
        DEFAULT_SERVER_NAME,
        FieldType(name="text", read=_read_checked, schema=_WORD),
        "Key under which clients know the gateway; a short one leaves more room for names.",
        live=True,
    )
    style: str | None = setting(
        None,
        choice(sorted(STYLES)),
        "How tool names are spelled. Default: the style in the ledger; in a new one, on-conflict for one server and "
        "prefixed for several.",
        live=True,
    )
    names: NamesMode = setting(
        "universal",
        choice(get_args(NamesMode)),
        "Names at /mcp: the same for all clients, those of the client that is detected, or canonical ids.",
    )
    names_in_texts: bool = setting(
        True, BOOLEAN, "Whether descriptions, prompts and errors mention tools by the names that are shown.", live=True
    )
    aliases: Mapping[str, str] | None = setting(
        None, _ALIASES, "Short names of integrations, as salesforce = sf; without it a built-in table.", live=True
    )
    overrides: Mapping[str, Mapping[str, str]] = setting(
        EMPTY, _OVERRIDES, "Names that you choose: by client, then by tool id.", live=True
    )
    state: str | None = setting(
        None,
        STORE_PATH,
        "Database of all state (names, pins, approvals, tokens, sign-ins): a file, `memory`, or a URL "
        "`postgresql://HOST/DATABASE?scope=NAME`; without it a file in the user's state directory.",
    )
    vault_key_file: str | None = setting(
        None,
        PATH,
        "File with the key that encrypts the secrets in the state, 32 bytes in base64; TRUENAME_VAULT_KEY, "
        "TRUENAME_VAULT_KEY_FILE or TRUENAME_VAULT_KEY_COMMAND replace it. Without any, a file is made.",
    )
    vault_key_command: tuple[str, ...] = setting(
        (),
        TEXTS,
        "Program, and its arguments, that prints this key, as the command of a key management service; run without a "
        "shell, once for each process.",
    )
    max_claims: int = setting(MAX_CLAIMS, COUNT, "Names that one server may hold in the ledger.", unit="names")
    convention: Convention | None = setting(
        None, _CONVENTION, "Naming convention of the team, as `truename lint` checks it.", live=True
    )
    protocol: str | None = setting(
        None,
        checked_by(_read_protocol, TEXT),
        "Version of the team's names; a breaking rename increases it, as from 0.2 to 0.3.",
        live=True,
    )
    # Who sees and may call what
    token: str | None = setting(
        None,
        FieldType(
            name="text",
            read=_read_checked,
            schema={"anyOf": [{"type": "string", "pattern": "^[!-~]+$"}, REFERENCE]},
        ),
        "Bearer token that HTTP clients must send; write a reference.",
        live=True,
        secret=True,
    )
    access: Access = setting(Access(), table(Access, check_access), "Who may connect: static tokens, OAuth, sign-in.")
    policy: Policy | None = setting(
        None,
        POLICY,
        "Rules that allow calls, ask about them or deny them; without it every call is allowed.",
        live=True,
    )
    approvals: Asking = setting(Asking(), table(Asking), "Who decides on calls that the policy asks about.")
    profiles: Profiles = setting(
        Profiles(), PROFILES, "Sets of tools, prompts and resources, and who has them.", live=True
    )
    metadata: Mapping[str, Mapping[str, Any]] = setting(
        EMPTY, METADATA, "For whom tools are; replaces what their authors declare.", live=True
    )
    tools: Presentation = setting(
        Presentation(),
        TOOLS,
        "Titles, descriptions and annotations of tools; replace what their servers send.",
        live=True,
    )
    context: Context = setting(Context(), CONTEXT, "Context of sessions that name none.", live=True)
    contexts: Mapping[str, Context] = setting(
        EMPTY, CONTEXTS, "Named contexts, for /mcp/in/NAME and --context NAME.", live=True
    )
    trust: Trust = setting(Trust(), TRUST, "How new and changed definitions are handled.")
    allow_addresses: tuple[str, ...] = setting(
        (), NETWORKS, "Networks that servers and identity providers may be in, even private and link-local ones."
    )
    quotas: Quotas = setting(Quotas(), table(Quotas), "How many calls each principal may make.", live=True)
    # What is recorded
    audit: Audit = setting(Audit(), table(Audit, check_audit), "The audit log of calls and decisions.")
    telemetry: Telemetry = setting(Telemetry(), table(Telemetry), "Metrics and traces.")
    console: ConsoleAccess = setting(
        ConsoleAccess(), table(ConsoleAccess), "Who may use the web console (`truename serve --console`).", live=True
    )
    recording: str | None = setting(None, PATH, "File in which calls of recordable tools are recorded, for a replay.")
    # Tool search
    tool_search: SearchMode = setting(
        "off",
        choice(get_args(SearchMode)),
        "Whether clients search tools instead of listing all: auto does if the list is too long.",
        live=True,
    )
    search_ranking: SearchRanking = setting(
        "lexical",
        choice(get_args(SearchRanking)),
        "How a search ranks tools: by their words, by meaning, or by both; the last two need truename[search].",
    )
    max_listed: int = setting(100, COUNT, "Longest list that auto does not search.", unit="tools", live=True)
    list_budget: int = setting(
        10_000, COUNT, "Estimated size of the largest list that auto does not search.", unit="tokens", live=True
    )
    pinned: tuple[str, ...] = setting(
        (), ID_GLOBS, "Globs on tool ids: tools that stay listed where the others are searched.", live=True
    )
    # Calls
    call_timeout: float = setting(300.0, SECONDS, "Longest time of one call.", unit="seconds", live=True)
    startup_timeout: float = setting(
        60.0, SECONDS, "Longest time that a server may take to start.", unit="seconds", live=True
    )
    answer_timeout: float = setting(
        600.0, SECONDS, "Longest time that a client may take to answer a server's request.", unit="seconds", live=True
    )
    max_rounds: int = setting(
        10, COUNT, "Times that a server may ask the client in one call.", unit="rounds", live=True
    )
    max_concurrent: int = setting(128, COUNT, "Calls that may run at one server at a time.", unit="calls", live=True)
    max_waiting: int = setting(
        512,
        COUNT,
        "Calls that may wait for a free slot at one server; one more is refused.",
        unit="calls",
        live=True,
    )
    breaker_failures: int = setting(
        5, COUNT, "Failures in a row that open the circuit breaker of a server.", unit="failures", live=True
    )
    breaker_seconds: float = setting(
        60.0, SECONDS, "Longest time that an open circuit breaker keeps calls from a server.", unit="seconds", live=True
    )
    max_held: int = setting(
        100, COUNT, "Calls that may wait for answers of clients that call again.", unit="calls", live=True
    )
    max_held_bytes: int = setting(
        64 * _MIB,
        COUNT,
        "Size of the calls, questions and answers that wait for such clients.",
        unit="bytes",
        live=True,
    )
    max_tasks: int = setting(10_000, COUNT, "Tasks of servers that the gateway remembers for clients.", unit="tasks")
    max_result: int = setting(32 * _MIB, COUNT, "Size of the longest answer of a server.", unit="bytes", live=True)
    drain_delay: float = setting(
        0.0,
        SECONDS_OR_ZERO,
        "Time for which calls are still taken at shutdown, while /readyz tells balancers to send no more.",
        unit="seconds",
        live=True,
    )
    drain_timeout: float = setting(
        30.0, SECONDS, "Longest time that the gateway waits for running calls when it stops.", unit="seconds", live=True
    )
    # Servers
    start: StartMode = setting(
        "eager",
        choice(get_args(StartMode)),
        "When servers are started: with the gateway, or at the first request to them.",
        live=True,
    )
    idle_timeout: float = setting(
        300.0,
        SECONDS_OR_ZERO,
        "Time without a request after which a lazy server is stopped; 0: never.",
        unit="seconds",
        live=True,
    )
    max_isolated: int = setting(
        32, COUNT, "Connections to one server that single sessions or users may have.", unit="connections", live=True
    )
    isolation_idle: float = setting(
        300.0,
        SECONDS,
        "Time without a request after which a connection that belongs to one session or user is closed.",
        unit="seconds",
        live=True,
    )
    max_tools: int = setting(5_000, COUNT, "Tools that one server may list.", unit="tools", live=True)
    server_instructions: int = setting(
        2_000, COUNT_OR_ZERO, "Longest instructions of one server that clients are shown.", unit="characters", live=True
    )
    max_instructions: int = setting(
        8_000,
        COUNT_OR_ZERO,
        "Longest instructions of all servers together that clients are shown; 0: none.",
        unit="characters",
        live=True,
    )
    # Clients
    tls_certificate: str | None = setting(
        None,
        PATH,
        "File of the certificate for TLS towards clients, with those that issued it (PEM). It is read again when it is "
        "renewed.",
    )
    tls_key: str | None = setting(
        None, PATH, "File of the certificate's private key (PEM). Default: the key is in the file of the certificate."
    )
    tls_key_password: str | None = setting(
        None, TEXT, "Password of an encrypted private key; write a reference.", live=True, secret=True
    )
    replica_address: str | None = setting(
        None,
        matching(_HOST_AND_PORT, "HOST:PORT"),
        "Address at which the other replicas of a shared state reach this process, and on which it listens for them. "
        "Default: a free port of 127.0.0.1, for replicas on one machine.",
    )
    max_body: int = setting(4 * _MIB, COUNT, "Size of the longest request over HTTP.", unit="bytes")
    max_incoming: int = setting(
        256 * _MIB, COUNT, "Size of all requests over HTTP that are being answered.", unit="bytes"
    )
    max_unread: int = setting(
        128 * _MIB, COUNT, "Size of all answers over HTTP that clients have not read yet.", unit="bytes"
    )
    max_depth: int = setting(100, COUNT, "Deepest nesting of objects and lists in a request.", unit="levels")
    max_entries: int = setting(50_000, COUNT, "Keys and items in one request.", unit="entries")
    max_requests: int = setting(1_000, COUNT, "Requests that a client over stdio may have open.", unit="requests")
    max_sessions: int = setting(1_000, COUNT, "Sessions over HTTP.", unit="sessions")
    session_timeout: float = setting(
        1_800.0, SECONDS, "Time without a request after which a session ends.", unit="seconds"
    )
    resume_events: int = setting(
        500, COUNT, "Messages of one session that are kept for a client whose stream is interrupted.", unit="messages"
    )
    resume_bytes: int = setting(8 * _MIB, COUNT, "Size of these messages of one session.", unit="bytes")
    resume_total: int = setting(64 * _MIB, COUNT, "Size of these messages of all sessions.", unit="bytes")
    principal_share: int = setting(
        50,
        PERCENT,
        "Share of sessions, connections, requests and unread answers that one principal may have.",
        unit="percent",
    )
    reserved_share: int = setting(
        10, PERCENT, "Share of them that is reserved for principals without any.", unit="percent"
    )
    max_views: int = setting(64, COUNT, "Lists for clients and paths that are kept ready.", unit="lists")
    # The configuration itself
    reload: ReloadMode = setting(
        "watch",
        choice(get_args(ReloadMode)),
        "When `truename serve` reads its files again: when they change and at SIGHUP, only at SIGHUP, or never.",
        live=True,
    )
    env_file: str | None = setting(
        None, PATH, "File of KEY=VALUE lines for ${KEY}; variables of the environment come first.", live=True
    )

    @property
    def exposure(self) -> Exposure:
        """The rules that tell which tools are for which session: by metadata, contexts and the convention."""
        contexts = (self.context, *self.contexts.values())
        return Exposure.within(contexts, convention=self.convention, metadata=self.metadata)


SETTINGS: Final[Mapping[str, Setting]] = rows_of(Settings)
"""The settings by their keys."""
