"""`truename deprovision`: end everything that a person has at the gateway, and let them in no more."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import anyio
from cyclopts import Parameter

from truename.auth.authorization_server.sessions import SignInSession, end_sessions, load_sessions
from truename.auth.inbound.authentication import token_store
from truename.auth.inbound.static_tokens import StaticToken, StaticTokenStore, is_token_name
from truename.auth.vault import Vault
from truename.cli._audit import audited
from truename.cli._errors import EXIT_UPSTREAM, UsageError
from truename.cli._logins import login_servers, open_logins, revoke_at_issuer
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import count, print_json, print_table, printable, say, show, styled
from truename.cli._sources import configuration
from truename.config import Config
from truename.errors import TruenameError, excerpt
from truename.files.user import whoami
from truename.policy import Approvals, Grant, SqlApprovalStore
from truename.policy.principal import Principal
from truename.trust.approval_queue import ApprovalQueue, PendingCall

__all__ = ["deprovision"]

Person = Annotated[
    str,
    Parameter(
        help='A principal as the audit log names it, or a name that one principal has: ann, \'["https://idp", "ann"]\'.'
    ),
]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", show_default=False, help="Show what would be ended; change nothing.")
]
Readmit = Annotated[
    bool, Parameter(name="--readmit", show_default=False, help="Let the person in again; what was ended stays ended.")
]
_LONGEST = 1_024
_AS_LOGGED = 'Write it as the audit log names it: ann, or ["https://idp.example", "ann"].'


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """What one principal has at the gateway. Logins are the places of the vault that hold its secrets."""

    principal: str
    tokens: tuple[StaticToken, ...]
    sign_ins: tuple[SignInSession, ...]
    logins: tuple[str, ...]
    approvals: tuple[Grant, ...]
    pending: tuple[PendingCall, ...]

    def counts(self) -> Mapping[str, int]:
        """Return how many there are of each kind."""
        names = ("tokens", "sign_ins", "logins", "approvals", "pending")
        return {name: len(getattr(self, name)) for name in names}


class _Stores:
    """All places where a configuration keeps something of a person. Raises `StoreError`."""

    def __init__(self, config: Config, stack: ExitStack) -> None:
        location = config.state_location()
        self._config = config
        self.tokens: StaticTokenStore = stack.enter_context(token_store(config))
        # To remove a secret needs no key.
        self._vault = stack.enter_context(Vault(location, ()))
        store = SqlApprovalStore(location)
        stack.callback(store.close)
        self._approvals = Approvals(store)
        self._queue = stack.enter_context(ApprovalQueue(location))

    def principals(self) -> frozenset[str]:
        """Return the keys of all who have something, or are barred."""
        found = {one.principal.key for one in self.tokens.now().values()}
        found |= {one.principal.key for one in load_sessions(self._config)}
        found |= {principal for place, principal, _ in self._vault.entries() if not _is_our_own(place)}
        found |= {one.principal for one in self._approvals.grants()} | {one.principal for one in self._queue.all()}
        return frozenset(found | self.tokens.barred.keys()) - {""}

    def of(self, principal: str) -> Holdings:
        """Return what one principal has."""
        return Holdings(
            principal=principal,
            tokens=tuple(one for one in self.tokens.now().values() if one.principal.key == principal),
            sign_ins=tuple(one for one in load_sessions(self._config) if one.principal.key == principal),
            logins=tuple(place for place, whose, _ in self._vault.entries() if whose == principal),
            approvals=tuple(one for one in self._approvals.grants() if one.principal == principal),
            pending=tuple(one for one in self._queue.all() if one.principal == principal),
        )

    def end(self, had: Holdings) -> None:
        """Bar a principal, and remove all that it has. May be repeated."""
        # Barred first: nothing of it can be made anew meanwhile.
        self.tokens.bar(had.principal, whoami())
        self.tokens.revoke(frozenset(one.id for one in had.tokens if not self.tokens.is_configured(one.id)))
        end_sessions(self._config, [one.id for one in had.sign_ins])
        for place in had.logins:
            self._vault.remove(place, had.principal)
        for one in had.approvals:
            self._approvals.revoke(one.key)
        for call in had.pending:
            self._queue.drop(call.key)


def deprovision(
    person: Person,
    source: Configuration | None = None,
    /,
    *,
    dry_run: DryRun = False,
    readmit: Readmit = False,
    as_json: JsonOutput = False,
) -> int:
    """End everything of a person: tokens, sign-ins, logins, sessions, approvals, and calls pending approval.

    From then on nothing lets them in, not even a token of an identity provider that is still valid. Running gateways
    that share the state follow within seconds. May be repeated. Exit status 3: a login was deleted here, and could not
    be revoked at its issuer.
    """
    config = configuration(source)
    if config.state_location().is_memory:
        raise UsageError(fact=f"{config.path} keeps its state in memory only", advice="Set state to a file or a URL.")
    with ExitStack() as stack:
        stores = _Stores(config, stack)
        principal = _principal(person, stores.principals(), _issuers(config))
        if readmit:
            return _readmit(config, stores, principal, dry_run=dry_run, as_json=as_json)
        had, was_barred = stores.of(principal), stores.tokens.is_barred(principal)
        revoking = () if dry_run else _revocations(config, principal)
        if not dry_run:
            about = {"who": principal, **{name: number for name, number in had.counts().items() if number}}
            with audited(config, "access", "deprovisioned", [about]):
                stores.end(had)
        configured = [one for one in had.tokens if stores.tokens.is_configured(one.id)]
    problems = [f"{server}: {problem}" for server, revoke in revoking if (problem := revoke()) is not None]
    if as_json:
        print_json(
            {
                "principal": principal,
                "dry_run": dry_run,
                "barred": not dry_run or was_barred,
                "was_barred": was_barred,
                **{name: [_plain(one) for one in getattr(had, name)] for name in had.counts()},
                "in_configuration": [one.id for one in configured],
                "problems": problems,
            }
        )
    else:
        _tell(had, configured, problems, dry_run=dry_run, was_barred=was_barred)
    return EXIT_UPSTREAM if problems else 0


def _is_our_own(place: str) -> bool:
    """Return whether a place of the vault holds something of the gateway itself, under a key that is no person's."""
    return place.startswith("truename:")


def _issuers(config: Config) -> tuple[str, ...]:
    """Return the issuers whose people may come: those of access tokens, and the one of sign-in."""
    access = config.settings.access
    found = [issuer.issuer for issuer in access.oauth.values()]
    return tuple(dict.fromkeys([*found, *([access.sign_in.vouches] if access.sign_in else [])]))


def _principal(person: str, known: Iterable[str], issuers: tuple[str, ...]) -> str:
    """Return the key of the principal that is meant. Raises `UsageError`.

    Somebody of whom nothing is on record can be barred too, if the key can be anybody's: a mistyped one would bar
    nobody, and say that it did.
    """
    if not person or len(person) > _LONGEST or not person.isprintable():
        raise UsageError(fact=f"{excerpt(person)} is not a principal", advice=_AS_LOGGED)
    keys = frozenset(known)
    fitting = sorted(key for key in keys if _name(key) == person)
    if person in keys or len(fitting) == 1:
        return person if person in keys else fitting[0]
    if fitting:
        advice = f"Use one of: {', '.join(fitting)}."
        raise UsageError(fact=f"{excerpt(person)} is the name of {len(fitting)} principals", advice=advice)
    if person.startswith("["):
        return _with_issuer(person, issuers)
    if issuers or not is_token_name(person):
        forms = ", ".join(json.dumps([issuer, person]) for issuer in issuers)
        raise UsageError(
            fact=f"nothing is known of a principal {excerpt(person)}",
            advice=f"Somebody who comes by an identity provider is written with the issuer: {forms}."
            if forms
            else _AS_LOGGED,
        )
    return person


def _with_issuer(person: str, issuers: tuple[str, ...]) -> str:
    """Return the key that a text with an issuer stands for. Raises `UsageError`."""
    try:
        issuer, name = json.loads(person)
    except (ValueError, TypeError, RecursionError):
        issuer = name = None
    if not isinstance(issuer, str) or not isinstance(name, str) or not name:
        raise UsageError(fact=f"{excerpt(person)} is not a principal", advice=_AS_LOGGED)
    if issuers and issuer not in issuers:
        advice = f"Known are: {', '.join(issuers)}."
        raise UsageError(fact=f"nobody comes from the issuer {excerpt(issuer)} here", advice=advice)
    return Principal(name=name, issuer=issuer).key


def _name(key: str) -> str:
    """Return the name in the key of a principal with an issuer, else the key itself."""
    try:
        _, name = json.loads(key)
    except (ValueError, TypeError, RecursionError):
        return key
    return str(name)


def _revocations(config: Config, principal: str) -> list[tuple[str, Callable[[], str | None]]]:
    """Return what revokes each login at its issuer, by server; read before the logins are deleted here."""
    found: list[tuple[str, Callable[[], str | None]]] = []
    for key, (server, said) in login_servers(config).items():
        try:
            with open_logins(config, server.url or "", said) as kept:
                whole = kept.of(principal)
                had = None if whole is None else kept.logins(whole).of(principal)
        except TruenameError as error:
            # Without the vault's key they are deleted, and not revoked.
            found.append((key, partial(str, error)))
            continue
        if whole is not None and had is not None:
            found.append((key, partial(anyio.run, revoke_at_issuer, kept, whole, had, config)))
    return found


def _readmit(config: Config, stores: _Stores, principal: str, *, dry_run: bool, as_json: bool) -> int:
    was_barred = stores.tokens.is_barred(principal)
    if was_barred and not dry_run:
        with audited(config, "access", "readmitted", [{"who": principal}]):
            stores.tokens.readmit(principal)
    if as_json:
        print_json({"principal": principal, "dry_run": dry_run, "readmitted": was_barred and not dry_run})
    elif not was_barred:
        show(f"{printable(principal)} is not barred.")
    else:
        again = "would no longer be" if dry_run else "is no longer"
        show(f"{printable(principal)} {again} barred; new credentials are needed.")
    return 0


def _plain(one: object) -> object:
    match one:
        case StaticToken() | SignInSession():
            return {"id": one.id, "name": one.name}
        case Grant():
            return {"key": one.key, "tool": str(one.subject.id), "approved": one.approved, "scope": one.scope}
        case PendingCall():
            return {"key": one.key, "tool": str(one.subject.id)}
        case _:
            return one


def _tell(
    had: Holdings, configured: list[StaticToken], problems: list[str], *, dry_run: bool, was_barred: bool
) -> None:
    who = printable(had.principal)
    rows = [
        *(["token", one.id, ""] for one in had.tokens),
        *(["sign-in", one.id, one.client_name] for one in had.sign_ins),
        *(["login", place, ""] for place in had.logins),
        *(["approval", one.key, str(one.subject.id)] for one in had.approvals),
        *(["pending call", one.key, str(one.subject.id)] for one in had.pending),
    ]
    if rows:
        print_table(["ended" if not dry_run else "would be ended", "id", ""], rows)
        show("")
    if dry_run:
        show(f"{count(len(rows), 'item')} of {who} would be ended, and {who} would be barred.")
    else:
        again = " (as before)" if was_barred else ""
        show(styled("Deprovisioned", "bold"), f" {who}: {count(len(rows), 'item')} ended; {who} is barred{again}.")
        show("Running gateways follow within seconds. `--readmit` ends the bar.")
    if configured:
        say("A token in [access.tokens] is refused too; remove it from the configuration.")
    for problem in problems:
        say(f"A login is deleted here, and may still be valid at its issuer. {problem}")
