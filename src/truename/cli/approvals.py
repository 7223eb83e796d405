"""`truename approvals`: list calls pending approval, and grant, deny or revoke them."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Self

from cyclopts import App, Parameter

from truename.cli import _completion
from truename.cli._audit import audited
from truename.cli._command_list import epilogue_of
from truename.cli._durations import seconds_of
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, print_table, printable, say, show, shown_time, styled
from truename.cli._sources import configuration
from truename.config import Config
from truename.errors import StoreError, excerpt
from truename.files.user import whoami
from truename.policy import Approvals, Grant, Scope, SqlApprovalStore
from truename.policy.approval_validity import Subject
from truename.storage import StateLocation
from truename.trust import PinStore
from truename.trust.approval_queue import (
    ApprovalQueue,
    PendingCall,
    about_grant,
    about_request,
    decided,
    stamp,
)

__all__ = ["approvals"]

_CHANGED = "the tool's definition has changed since"
_OFFERED = "it is suspended while the server offers another definition, pending review: `truename pins diff {id}`"
_COVERS = {"call": "one call", "arguments": "these arguments", "session": "its session", "always": "all calls"}
Key = Annotated[
    str, Parameter(completer=_completion.pending_calls, help="The key of a pending call, or of a decision.")
]
ConfigFile = Annotated[
    str | None,
    Parameter(
        name="--config", metavar="FILE", help="The configuration that holds the approvals; default: as for `serve`."
    ),
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


@dataclass(frozen=True, kw_only=True)
class ListedApproval:
    """A pending call or a decision; ``state`` is waiting, approved, rejected, used, expired or suspended."""

    key: str
    state: str
    principal: str
    subject: Subject
    at: str
    until: str = ""
    scope: str = ""
    by: str = ""
    message: str = ""
    reason: str = ""
    rule: str = ""
    arguments: str = ""
    wire_name: str = ""
    client: str = ""

    @property
    def waits(self) -> bool:
        """Whether the call is pending."""
        return not self.scope

    @property
    def tool(self) -> str:
        """The tool's id."""
        return str(self.subject.id)

    @property
    def covers(self) -> str:
        """The scope of a decision, in words."""
        return _COVERS.get(self.scope, "")


class ApprovalDecisions:
    """The pending calls and the decisions of a configuration. All methods raise `StoreError`.

    Decisions are recorded in the audit log of the configuration.
    """

    def __init__(self, location: StateLocation, config: Config) -> None:
        self._config = config
        self._settings = config.settings.approvals
        self._store = SqlApprovalStore(location)
        self._approvals = Approvals(self._store)
        self._digests = _offered(config)
        # A command that only reads creates no file.
        self._queue = ApprovalQueue(location if location.has("pending_call") else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.close()
        self._store.close()

    def waiting(self) -> Sequence[ListedApproval]:
        """Return the pending calls, oldest first."""
        return [self._of_request(one) for one in self._queue.all() if one.is_open]

    def all(self) -> Sequence[ListedApproval]:
        """Return the pending calls, then all decisions."""
        return [*self.waiting(), *map(self._of_grant, self._approvals.grants())]

    def find(self, key: str) -> ListedApproval | None:
        """Return the pending call or decision with a key."""
        return next((one for one in self.all() if one.key == key), None)

    def decision_on(self, key: str) -> ListedApproval | None:
        """Return the decision with a key, or the last decision on the call with that key."""
        known = [one for one in self._approvals.grants() if key in {one.key, one.call_id}]
        return self._of_grant(known[-1]) if known else None

    def pending(self, key: str) -> PendingCall | None:
        """Return the call with a key if it is still pending."""
        found = self._queue.find(key)
        return found if found is not None and found.is_open else None

    def decide(
        self, one: PendingCall, scope: Scope, *, approved: bool, by: str, message: str, lasts: float | None
    ) -> ListedApproval:
        """Grant or deny a pending call."""
        what, about = "granted" if approved else "denied", {**about_request(one), "covers": scope}
        with audited(self._config, "approval", what, [about]) as (record,):
            made = decided(
                one,
                scope,
                self._approvals,
                self._queue,
                approved=approved,
                by=by,
                message=message,
                lasts=self._settings.expiry,
                grant_lasts=self._settings.grant_expiry if lasts is None else lasts,
            )
            record.update(about_grant(made))
        return self._of_grant(made)

    def revoke(self, key: str) -> ListedApproval | None:
        """Revoke a decision; return None if there is none with this key."""
        known = next((one for one in self._approvals.grants() if one.key == key), None)
        if known is None:
            return None
        with audited(self._config, "approval", "revoked", [about_grant(known)]) as records:
            gone = self._approvals.revoke(key)
            if gone is None:
                # Another process revoked it first, and recorded that.
                records.clear()
            if known.scope == "call":
                self._queue.drop(known.call_id)
        return None if gone is None else self._of_grant(gone)

    def _of_grant(self, grant: Grant) -> ListedApproval:
        state, reason = self._state(grant)
        return ListedApproval(
            key=grant.key,
            state=state,
            reason=reason,
            principal=grant.principal,
            subject=grant.subject,
            at=grant.at,
            until=grant.until,
            scope=grant.scope,
            by=grant.by,
            message=grant.message,
            wire_name=grant.wire_name,
        )

    def _state(self, grant: Grant) -> tuple[str, str]:
        if grant.is_over(stamp(time.time())):
            return "expired", ""
        if grant.scope == "call" and self._approvals.state_of(grant) not in {"", "seen"}:
            return "used", ""
        reason = self._changed(grant.subject)
        return ("suspended" if reason else "approved" if grant.approved else "rejected"), reason

    def _changed(self, subject: Subject) -> str:
        """Return why a decision is suspended; "" if it applies to the definition that the server offers."""
        now, is_trusted = self._digests.get(str(subject.id), (subject.digest, True))
        if now == subject.digest:
            return ""
        return _CHANGED if is_trusted else _OFFERED.format(id=subject.id)

    def _of_request(self, one: PendingCall) -> ListedApproval:
        reason = self._changed(one.subject)
        return ListedApproval(
            key=one.key,
            state="suspended" if reason else "waiting",
            principal=one.principal,
            subject=one.subject,
            at=stamp(one.at),
            until=stamp(one.until),
            reason=reason or one.reason,
            rule=one.rule,
            arguments=one.arguments,
            wire_name=one.wire_name,
            client=one.client,
        )


def _offered(config: Config) -> dict[str, tuple[str, bool]]:
    """Return, by tool, the digest of the last offered definition and whether it is trusted; empty without pins."""
    location = config.pins_location()
    if not location.has("pin"):
        return {}
    try:
        with PinStore(location) as pins:
            found = {key: (pin.digest, True) for key, pin in pins.pins().items()}
            # A pending definition is the one that the server offers now, instead of the pinned one.
            return found | {one.key: (one.digest, False) for one in pins.seen().values() if one.word == "waiting"}
    except StoreError:
        # Errors in the pins are reported by `truename pins`.
        return {}


def row(one: ListedApproval) -> list[str]:
    """Return the row of a table for a pending call or decision."""
    return [one.key, one.state, printable(one.principal), one.tool, one.covers, shown_time(one.at)]


def plain(one: ListedApproval) -> dict[str, object]:
    """Return an entry of JSON output."""
    values = {name: value for name, value in vars(one).items() if name != "subject" and value}
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
    source: Configuration | None = None,
    /,
    *,
    waiting: Waiting = False,
    watch: Watch = False,
    as_json: JsonOutput = False,
) -> int:
    """List pending calls and decisions. Exit status 1: a call is pending."""
    with _decisions(source) as decisions:
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
def show_(key: Key, /, *, config: ConfigFile = None, as_json: JsonOutput = False) -> int:
    """Show a pending call with its arguments, or a decision and its state."""
    with _decisions(config) as decisions:
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
    key: Key, /, *, config: ConfigFile = None, scope: Covers = "call", span: Span = None, as_json: JsonOutput = False
) -> int:
    """Grant a pending call: by default this call, once."""
    return _decided(key, config, scope, approved=True, span=span, as_json=as_json)


@approvals.command
def deny(
    key: Key,
    /,
    *,
    config: ConfigFile = None,
    scope: Covers = "call",
    message: Message = "",
    as_json: JsonOutput = False,
) -> int:
    """Deny a pending call: by default this call only."""
    return _decided(key, config, scope, approved=False, message=message, as_json=as_json)


@approvals.command
def revoke(key: Key, /, *, config: ConfigFile = None, as_json: JsonOutput = False) -> int:
    """Revoke a decision: the next such call needs approval again."""
    with _decisions(config) as decisions:
        found = decisions.find(key)
        if found is not None and found.waits:
            raise UsageError(
                fact=f"{key} is pending, not decided",
                advice="`truename approvals deny` refuses the call.",
            )
        gone = decisions.revoke(key)
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
    with _decisions(config) as decisions:
        waiting = decisions.pending(key)
        if waiting is None:
            return _nothing(decisions, key, as_json=as_json)
        if scope not in waiting.scopes:
            advice = f"Use --scope with one of: {', '.join(waiting.scopes)}."
            raise UsageError(fact="the client of this call has no session", advice=advice)
        made = decisions.decide(waiting, scope, approved=approved, by=whoami(), message=message, lasts=lasts)
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
def _decisions(source: str | None) -> Iterator[ApprovalDecisions]:
    config = configuration(source)
    location = config.state_location()
    if location.is_memory:
        raise UsageError(
            fact=f"{config.path} keeps its approvals in memory only", advice="Set state to a file or a URL."
        )
    with ApprovalDecisions(location, config) as decisions:
        yield decisions
