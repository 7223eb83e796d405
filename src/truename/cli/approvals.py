"""`truename approvals`: the calls that wait for a word, and the decisions that were made."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import App, Parameter

from truename.cli.deciding import Desk, Found, lines_of, plain, row
from truename.cli.failure import EXIT_FINDINGS, UsageFault
from truename.cli.options import Configuration, JsonOutput
from truename.cli.rendering import print_json, print_table, say, show, styled
from truename.cli.sources import configuration
from truename.cli.spans import seconds_of
from truename.errors import excerpt
from truename.files.user import whoami
from truename.policy import Scope

__all__ = ["approvals"]

Key = Annotated[str, Parameter(help="The key of a call that waits, or of a decision.")]
Config = Annotated[
    str | None, Parameter(name="--config", help="The configuration whose approvals are meant; else as for `serve`.")
]
Waiting = Annotated[bool, Parameter(name="--waiting", show_default=False, help="Only what waits for a word.")]
Watch = Annotated[
    bool, Parameter(name="--watch", show_default=False, help="Go on, and show each call that begins to wait.")
]
Covers = Annotated[
    Scope, Parameter(name="--scope", help="This one call, these arguments, its session, or always: all such calls.")
]
Span = Annotated[str | None, Parameter(name="--for", help="How long it counts: 30m, 12h, 90d; else as configured.")]
Message = Annotated[str, Parameter(name="--message", show_default=False, help="What the model is told.")]

_PAUSE = 0.5
_MOST_NEAR = 5
_UNDONE = "`truename approvals revoke {key}` takes it back."

approvals = App(
    name="approvals",
    help="Show the calls that wait for your word, decide on them, and take decisions back.",
    help_format="plaintext",
    help_epilogue="A decision is about one caller, one tool as it was defined then, and its server. Running gateways "
    "follow at once; a call that was granted has to be made again, unless the gateway lets calls wait.",
    default_parameter=Parameter(negative=()),
)


@approvals.command(name="list")
def list_(
    source: Configuration | None = None,
    /,
    *,
    waiting: Waiting = False,
    watch: Watch = False,
    as_json: JsonOutput = False,
) -> int:
    """List what waits for a word, and what was decided. Exit status 1: something waits."""
    with _desk(source) as desk:
        if watch:
            return _watched(desk, as_json=as_json)
        found = [one for one in desk.all() if one.waits or not waiting]
    if as_json:
        print_json({"approvals": [plain(one) for one in found]})
    elif found:
        print_table(["key", "", "who", "tool", "covers", "since"], [row(one) for one in found])
    else:
        show("Nothing waits for a word." if waiting else "Nothing waits, and nothing was decided yet.")
    open_ones = sum(one.waits for one in found)
    if open_ones and not as_json:
        say("")
        them = "1 of them waits" if open_ones == 1 else f"{open_ones:,} of them wait"
        say(f"{them}: `truename approvals show KEY`, then `grant` or `deny` it.")
    return EXIT_FINDINGS if open_ones else 0


def _watched(desk: Desk, *, as_json: bool) -> int:
    """Show each request once, until the command is interrupted."""
    seen: set[str] = set()
    say("Each call that waits is shown here; Ctrl+C ends this.")
    try:
        while True:
            for one in desk.waiting():
                if one.key not in seen:
                    seen.add(one.key)
                    _told(one, as_json=as_json)
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        return 0


def _told(one: Found, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(f"{json.dumps(plain(one))}\n")
    else:
        for line in lines_of(one):
            show(line)
        show("")
    sys.stdout.flush()


@approvals.command(name="show")
def show_(key: Key, /, *, config: Config = None, as_json: JsonOutput = False) -> int:
    """Show a call that waits with its arguments, or a decision and whether it counts."""
    with _desk(config) as desk:
        found = desk.find(key)
        if found is None:
            return _nothing(desk, key, as_json=as_json)
    if as_json:
        print_json(plain(found))
    else:
        for line in lines_of(found):
            show(line)
    return 0


@approvals.command
def grant(
    key: Key, /, *, config: Config = None, scope: Covers = "call", span: Span = None, as_json: JsonOutput = False
) -> int:
    """Allow a call that waits: by default this one, once."""
    return _decided(key, config, scope, approved=True, span=span, as_json=as_json)


@approvals.command
def deny(
    key: Key, /, *, config: Config = None, scope: Covers = "call", message: Message = "", as_json: JsonOutput = False
) -> int:
    """Refuse a call that waits: by default this one."""
    return _decided(key, config, scope, approved=False, message=message, as_json=as_json)


@approvals.command
def revoke(key: Key, /, *, config: Config = None, as_json: JsonOutput = False) -> int:
    """Take a decision back: the next such call is asked about again."""
    with _desk(config) as desk:
        found = desk.find(key)
        if found is not None and found.waits:
            raise UsageFault(fact=f"{key} is no decision yet", advice="`truename approvals deny` refuses the call.")
        gone = desk.revoke(key)
        if gone is None:
            return _nothing(desk, key, as_json=as_json)
    if as_json:
        print_json({"revoked": plain(gone)})
    else:
        show(styled("Revoked", "bold"), f" {gone.key}: {gone.tool} of {gone.principal}")
    return 0


def _decided(
    key: str,
    config: str | None,
    scope: Scope,
    *,
    approved: bool,
    span: str | None = None,
    message: str = "",
    as_json: bool,
) -> int:
    lasts = None if span is None else seconds_of(span)
    with _desk(config) as desk:
        waiting = desk.pending(key)
        if waiting is None:
            return _nothing(desk, key, as_json=as_json)
        if scope not in waiting.scopes:
            advice = f"Use --scope with one of: {', '.join(waiting.scopes)}."
            raise UsageFault(fact="the client of this call has no session", advice=advice)
        made = desk.decide(waiting, scope, approved=approved, by=whoami(), message=message, lasts=lasts)
    if as_json:
        print_json({"granted" if approved else "denied": plain(made)})
    else:
        word = "Granted" if approved else "Denied"
        show(styled(word, "bold"), f" {made.tool} for {made.principal} ({made.covers}).")
        show(_UNDONE.format(key=made.key))
    return 0


def _nothing(desk: Desk, key: str, *, as_json: bool) -> int:
    """Say that this is no call that waits: what was decided on it, or which key may be meant."""
    decision = desk.decision_on(key)
    near = [one.key for one in desk.all() if key and one.key.startswith(key)][:_MOST_NEAR]
    if as_json:
        print_json({"unknown": key} if decision is None else {"unknown": key, "decision": plain(decision)})
    elif decision is not None:
        what = "is a decision" if decision.key == key else f"was decided on by {decision.key}"
        show(f"{key} {what} ({decision.state}), and waits no more.")
        show(_UNDONE.format(key=decision.key))
    else:
        advice = f"Did you mean {', '.join(near)}?" if near else "`truename approvals list` shows what there is."
        show(f"Nothing is known as {excerpt(key[:40])}. {advice}")
    return EXIT_FINDINGS


@contextmanager
def _desk(source: str | None) -> Iterator[Desk]:
    config = configuration(source)
    path = config.approvals_path()
    if path is None:
        raise UsageFault(
            fact=f"{config.path} keeps its approvals in memory only", advice="Set approvals.path to a file."
        )
    with Desk(path, config) as desk:
        yield desk
