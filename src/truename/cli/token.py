"""`truename token`: create, list and revoke static access tokens for HTTP clients."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from cyclopts import App, Parameter

from truename.auth.authorization_server.sessions import SignInSession, end_sessions, load_sessions
from truename.auth.inbound.authentication import token_store
from truename.auth.inbound.static_tokens import (
    StaticToken,
    StaticTokenStore,
    create_token,
    digest_of,
    is_token_name,
    token_id,
)
from truename.cli import _completion
from truename.cli._audit import audited
from truename.cli._command_list import epilogue_of
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, print_table, printable, say, show, styled, utc_time
from truename.cli._sources import configuration
from truename.config import Config
from truename.errors import excerpt

__all__ = ["token"]

Name = Annotated[
    str, Parameter(help="The principal of the token: a short name, used in rules, approvals and the audit log.")
]
Which = Annotated[
    str,
    Parameter(
        completer=_completion.tokens,
        help="The id of a token or sign-in, or a name, to revoke all of its tokens and sign-ins.",
    ),
]
Groups = Annotated[
    str,
    Parameter(
        name="--groups",
        metavar="GROUPS",
        show_default=False,
        help="The groups of the principal, for profiles: eng,ops.",
    ),
]
Scopes = Annotated[
    str,
    Parameter(
        name="--scopes", metavar="SCOPES", show_default=False, help="The scopes of the token, for profiles: read,write."
    ),
]
Expires = Annotated[
    str | None,
    Parameter(name="--expires", metavar="TIME", help="How long the token is valid: 12h, 90d, 52w; default: for ever."),
]
PrintHash = Annotated[
    bool,
    Parameter(
        name="--print-hash", show_default=False, help="Store nothing; print the lines for the configuration instead."
    ),
]

_UNITS = {"h": 1, "d": 24, "w": 24 * 7}
_LONGEST_HOURS = 24 * 365 * 10

token = App(
    name="token",
    help="Create, list and revoke access tokens for HTTP clients.",
    help_format="plaintext",
    help_epilogue=epilogue_of("token"),
    default_parameter=Parameter(negative=()),
)


@token.command
def add(
    name: Name,
    source: Configuration | None = None,
    /,
    *,
    groups: Groups = "",
    scopes: Scopes = "",
    expires: Expires = None,
    print_hash: PrintHash = False,
    as_json: JsonOutput = False,
) -> int:
    """Create a token and print it; it cannot be shown again."""
    if not is_token_name(name):
        advice = "Use up to 64 of A-Z, a-z, 0-9, '.', '_', '@', '+', '-'."
        raise UsageError(fact=f"{excerpt(name)} cannot be a name", advice=advice)
    until = None if expires is None else (datetime.now(UTC) + _span(expires)).timestamp()
    text, kept = create_token(name, groups=_words(groups), scopes=_words(scopes), expires=until)
    if not print_hash:
        config = configuration(source)
        with _store(config) as store:
            if store.is_barred(kept.principal.key):
                raise UsageError(
                    fact=f"{name} was deprovisioned, and is barred",
                    advice=f"Run `truename deprovision {name} --readmit` first.",
                )
            with audited(config, "access", "token_made", [_noted(kept)]):
                store.add(kept)
    if as_json:
        print_json({"token": text, **_plain(kept), **({"hash": _hash(text)} if print_hash else {})})
        return 0
    show(text)
    if print_hash:
        _show_lines(kept, text)
    say("")
    say(styled("It cannot be shown again.", "bold"), f" {name} sends it as: Authorization: Bearer tn1_{kept.id}_...")
    return 0


@token.command(name="list")
def list_(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """List tokens (without their texts) and sign-ins of clients."""
    config, now = configuration(source), time.time()
    with token_store(config) as store:
        tokens = sorted(store.now().values(), key=lambda one: (one.name, one.made, one.id))
        barred = tuple(store.barred.values())
    sessions = load_sessions(config)
    if as_json:
        listed = [{**_plain(one), "expired": not one.is_good(now)} for one in tokens]
        shown = {"sign_ins": [_plain_session(one) for one in sessions], "barred": [vars(one) for one in barred]}
        print_json({"tokens": listed, **shown})
        return 0
    for one in barred:
        say(f"{printable(one.principal)} is barred since {_day(one.at)} (`truename deprovision`).")
    if not tokens and not sessions:
        show("There are no tokens. `truename token add NAME` creates one.")
        return 0
    rows = [
        [one.id, one.name, " ".join(one.groups), " ".join(one.scopes), "", _day(one.made), _until(one, now)]
        for one in tokens
    ]
    rows += [
        [one.id, one.name, " ".join(sorted(one.groups)), "", one.client_name, _day(one.made), utc_time(one.until)]
        for one in sessions
    ]
    print_table(["id", "name", "groups", "scopes", "client", "created", "valid until"], rows)
    return 0


@token.command
def revoke(which: Which, source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """Revoke a token or a sign-in, or all of a principal's. Running gateways refuse them at once."""
    config = configuration(source)
    store = _store(config)
    id = token_id(which) or which
    found = [one for one in store.now().values() if id in {one.id, one.name}]
    if configured := [one for one in found if store.is_configured(one.id)]:
        advice = "Remove it from [access.tokens], and restart the gateway."
        raise UsageError(fact=f"the token of {configured[0].name} is in the configuration", advice=advice)
    sessions = [one for one in load_sessions(config) if id in {one.id, one.name}]
    with audited(config, "access", "revoked", [*map(_noted, found), *map(_noted, sessions)]):
        if found:
            store.revoke(frozenset(one.id for one in found))
        if sessions:
            end_sessions(config, [one.id for one in sessions])
    if as_json:
        print_json({"revoked": [_plain(one) for one in found], "ended": [_plain_session(one) for one in sessions]})
    elif found or sessions:
        for id, name in [(one.id, one.name) for one in found] + [(one.id, one.name) for one in sessions]:
            show(styled("Revoked ", "bold"), f"{id} of {name}.")
    else:
        show(f"There is no token or sign-in {excerpt(which[:40])}. `truename token list` shows them.")
    return 0 if found or sessions else EXIT_FINDINGS


def _noted(one: StaticToken | SignInSession) -> dict[str, Any]:
    """Return the audit record of a token or a sign-in."""
    plain = _plain(one) if isinstance(one, StaticToken) else _plain_session(one)
    return {
        "who": one.name,
        "token" if isinstance(one, StaticToken) else "sign_in": one.id,
        "groups": " ".join(plain["groups"]),
        "scopes": " ".join(plain["scopes"]),
        "until": plain["expires"],
    }


def _store(config: Config) -> StaticTokenStore:
    if config.state_location().is_memory:
        raise UsageError(fact="tokens have no file to be stored in", advice="Name a configuration file.")
    return token_store(config)


def _words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if len(word) > 256 or not word.isascii() or not word.isprintable() or " " in word:
            raise UsageError(fact=f"{excerpt(word)} is not a group or scope", advice="Separate them with commas: a,b.")
    return words


def _span(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit()) or unit not in _UNITS or len(number) > 6:
        raise UsageError(fact=f"{excerpt(text)} is not a duration", advice="Write it as in --expires 90d, 12h or 52w.")
    hours = int(number) * _UNITS[unit]
    if not 1 <= hours <= _LONGEST_HOURS:
        raise UsageError(fact=f"{text} is not an hour to ten years", advice="Write it as in --expires 90d.")
    return timedelta(hours=hours)


def _hash(text: str) -> str:
    return f"tn1:{token_id(text)}:{digest_of(text)}"


def _show_lines(kept: StaticToken, text: str) -> None:
    say("")
    say(f"[access.tokens.{kept.name}]" if kept.name.replace("-", "").isalnum() else f'[access.tokens."{kept.name}"]')
    say(f'hash = "{_hash(text)}"')
    for key, words in (("groups", kept.groups), ("scopes", kept.scopes)):
        if words:
            say(f"{key} = {json.dumps(list(words))}")
    if kept.expires is not None:
        say(f'expires = "{utc_time(kept.expires)}"')


def _plain(one: StaticToken) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "groups": list(one.groups),
        "scopes": list(one.scopes),
        "made": utc_time(one.made),
        "expires": None if one.expires is None else utc_time(one.expires),
    }


def _plain_session(one: SignInSession) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "issuer": one.issuer,
        "client": one.client,
        "client_name": one.client_name,
        "groups": sorted(one.groups),
        "scopes": sorted(one.scopes),
        "made": utc_time(one.made),
        "expires": utc_time(one.until),
    }


def _day(seconds: float) -> str:
    return utc_time(seconds)[:10] if seconds else "in the configuration"


def _until(one: StaticToken, now: float) -> str:
    if one.expires is None:
        return "no expiry"
    return utc_time(one.expires) + ("" if one.is_good(now) else " (expired)")
