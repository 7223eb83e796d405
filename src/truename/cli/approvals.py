"""`truename approvals`: list calls pending approval, and grant, deny or revoke them."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import App, Parameter

from truename.cli import _completion
from truename.cli._audit import audited
from truename.cli._command_list import epilogue_of
from truename.cli._durations import seconds_of
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import GatewayConfig, JsonOutput
from truename.cli._rendering import print_json, print_table, printable, say, show, shown_time, styled
from truename.cli._sources import configuration
from truename.config import Config
from truename.errors import excerpt
from truename.files.user import whoami
from truename.policy import Scope
from truename.trust.approval_decisions import ApprovalDecisions, ListedApproval
from truename.trust.approval_queue import (
    about_grant,
    about_request,
)

__all__ = ["approvals"]

Key = Annotated[
    str, Parameter(completer=_completion.pending_calls, help="The key of a pending call, or of a decision.")
]
Waiting = Annotated[bool, Parameter(name="--waiting", show_default=False, help="Only pending calls.")]
Watch = Annotated[
    bool, Parameter(name="--watch", show_default=False, help="Keep running, and show each new pending call.")
]
Covers = Annotated[
    Scope,
    Parameter(
        name="--scope",
        help="The decision covers this call, these arguments, its session, or always all calls of the tool.",
    ),
]
Span = Annotated[
    str | None,
    Parameter(name="--for", metavar="TIME", help="How long it is valid: 30m, 12h, 90d; default: as configured."),
]
Message = Annotated[
    str, Parameter(name="--message", metavar="TEXT", show_default=False, help="A message for the model.")
]
_PAUSE = 0.5
_MOST_NEAR = 5
_UNDONE = "`truename approvals revoke {key}` revokes it."
approvals = App(
    name="approvals",
    help="Show calls pending approval, decide on them, and revoke decisions.",
    help_format="plaintext",
    help_epilogue=epilogue_of("approvals"),
    default_parameter=Parameter(negative=()),
)


def row(one: ListedApproval) -> list[str]:
    """Return the row of a table for a pending call or decision."""
    return [one.key, one.state, printable(one.principal), one.tool, one.covers, shown_time(one.at)]


def plain(one: ListedApproval) -> dict[str, object]:
    """Return an entry of JSON output."""
    values = {name: value for name, value in vars(one).items() if name not in {"subject", "scopes"} and value}
    about = one.subject
    return {**values, "tool": one.tool, "digest": about.digest, "server": about.server, "name": about.name}


def lines_of(one: ListedApproval) -> Iterator[str]:
    """Yield the lines that describe a pending call or decision."""
    about = one.subject
    yield f"{one.key} ({one.state}): {one.tool}"
    yield f"  server: {printable(about.server)}, its name there: {printable(about.name)}"
    yield f"  called as {printable(one.wire_name)} by {printable(one.principal)}"
    said = {"rule": one.rule, "why": one.reason, "covers": one.covers, "by": one.by, "message": one.message}
    for word, text in {**said, "since": one.at, "until": one.until}.items():
        if text:
            yield f"  {word}: {printable(text)}"
    if one.arguments:
        yield "  arguments:"
        for line in one.arguments.splitlines():
            yield f"    {printable(line)}"


@approvals.command(name="list")
def list_(
    config: GatewayConfig = None,
    *,
    waiting: Waiting = False,
    watch: Watch = False,
    as_json: JsonOutput = False,
) -> int:
    """List pending calls and decisions. Exit status 1: a call is pending."""
    with _decisions(config) as (_, decisions):
        if watch:
            return _watched(decisions, as_json=as_json)
        found = [one for one in decisions.all() if one.waits or not waiting]
    if as_json:
        print_json({"approvals": [plain(one) for one in found]})
    elif found:
        print_table(["key", "", "who", "tool", "covers", "since"], [row(one) for one in found])
    else:
        show("No call is pending." if waiting else "No call is pending, and there are no decisions.")
    open_ones = sum(one.waits for one in found)
    if open_ones and not as_json:
        say("")
        them = "1 call is pending" if open_ones == 1 else f"{open_ones:,} calls are pending"
        say(f"{them}: `truename approvals show KEY`, then `grant` or `deny` it.")
    return EXIT_FINDINGS if open_ones else 0


def _watched(decisions: ApprovalDecisions, *, as_json: bool) -> int:
    """Show each request once, until the command is interrupted."""
    seen: set[str] = set()
    say("Showing each new pending call; Ctrl+C ends this.")
    try:
        while True:
            for one in decisions.waiting():
                if one.key not in seen:
                    seen.add(one.key)
                    _told(one, as_json=as_json)
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        return 0


def _told(one: ListedApproval, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(f"{json.dumps(plain(one))}\n")
    else:
        for line in lines_of(one):
            show(line)
        show("")
    sys.stdout.flush()


@approvals.command(name="show")
def show_(key: Key, /, *, config: GatewayConfig = None, as_json: JsonOutput = False) -> int:
    """Show a pending call with its arguments, or a decision and its state."""
    with _decisions(config) as (_, decisions):
        found = decisions.find(key)
        if found is None:
            return _nothing(decisions, key, as_json=as_json)
    if as_json:
        print_json(plain(found))
    else:
        for line in lines_of(found):
            show(line)
    return 0


@approvals.command
def grant(
    key: Key, /, *, config: GatewayConfig = None, scope: Covers = "call", span: Span = None, as_json: JsonOutput = False
) -> int:
    """Grant a pending call: by default this call, once."""
    return _decided(key, config, scope, approved=True, span=span, as_json=as_json)


@approvals.command
def deny(
    key: Key,
    /,
    *,
    config: GatewayConfig = None,
    scope: Covers = "call",
    message: Message = "",
    as_json: JsonOutput = False,
) -> int:
    """Deny a pending call: by default this call only."""
    return _decided(key, config, scope, approved=False, message=message, as_json=as_json)


@approvals.command
def revoke(key: Key, /, *, config: GatewayConfig = None, as_json: JsonOutput = False) -> int:
    """Revoke a decision: the next such call needs approval again."""
    with _decisions(config) as (loaded, decisions):
        found = decisions.find(key)
        if found is not None and found.waits:
            raise UsageError(
                fact=f"{key} is pending, not decided",
                advice="`truename approvals deny` refuses the call.",
            )
        known, gone = decisions.grant(key), None
        if known is not None:
            with audited(loaded, "approval", "revoked", [about_grant(known)]) as records:
                gone = decisions.revoke(key)
                if gone is None:
                    # Another process revoked it first, and recorded that.
                    records.clear()
        if gone is None:
            return _nothing(decisions, key, as_json=as_json)
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
    with _decisions(config) as (loaded, decisions):
        waiting = decisions.pending(key)
        if waiting is None:
            return _nothing(decisions, key, as_json=as_json)
        if scope not in waiting.scopes:
            advice = f"Use --scope with one of: {', '.join(waiting.scopes)}."
            raise UsageError(fact="the client of this call has no session", advice=advice)
        what, about = "granted" if approved else "denied", {**about_request(waiting), "covers": scope}
        with audited(loaded, "approval", what, [about]) as records:
            grant = decisions.decide(waiting, scope, approved=approved, by=whoami(), message=message, lasts=lasts)
            if grant is None:
                # Somebody decided on it first, and that is recorded.
                records.clear()
            else:
                records[0].update(about_grant(grant))
        if grant is None:
            return _nothing(decisions, key, as_json=as_json)
        made = decisions.listed(grant)
    if as_json:
        print_json({"granted" if approved else "denied": plain(made)})
    else:
        word = "Granted" if approved else "Denied"
        show(styled(word, "bold"), f" {made.tool} for {made.principal} ({made.covers}).")
        show(_UNDONE.format(key=made.key))
    return 0


def _nothing(decisions: ApprovalDecisions, key: str, *, as_json: bool) -> int:
    """Report that no pending call has this key: show the decision on it, or similar keys."""
    decision = decisions.decision_on(key)
    near = [one.key for one in decisions.all() if key and one.key.startswith(key)][:_MOST_NEAR]
    if as_json:
        print_json({"unknown": key} if decision is None else {"unknown": key, "decision": plain(decision)})
    elif decision is not None:
        what = "is a decision" if decision.key == key else f"was decided on by {decision.key}"
        show(f"{key} {what} ({decision.state}); it is not pending.")
        show(_UNDONE.format(key=decision.key))
    else:
        advice = f"Did you mean {', '.join(near)}?" if near else "`truename approvals list` shows all."
        show(f"No pending call or decision has the key {excerpt(key[:40])}. {advice}")
    return EXIT_FINDINGS


@contextmanager
def _decisions(source: str | None) -> Iterator[tuple[Config, ApprovalDecisions]]:
    config = configuration(source)
    if config.state_location().is_memory:
        raise UsageError(
            fact=f"{config.path} keeps its approvals in memory only", advice="Set state to a file or a URL."
        )
    with ApprovalDecisions(config) as decisions:
        yield config, decisions
