"""Rename all tools of a ledger: change its style, or the ids of servers."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from truename import dialects
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, UsageError
from truename.cli._rendering import Cell, print_json, print_table, say, show, styled
from truename.cli._sources import configuration
from truename.cli._workspace import differences, existing_state, ledger_settings, open_workspace
from truename.config.unmatched import mentions_changed
from truename.ledger import open_ledger
from truename.migration import plan_identities, record_identities
from truename.policy import SqlApprovalStore
from truename.storage import StateLocation
from truename.trust import PinStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.cli._options import NamingOptions
    from truename.config import Config
    from truename.identity import ToolId
    from truename.ledger import Ledger, LedgerSettings
    from truename.migration import IdentityPlan

__all__ = ["ledger_location", "move_ids", "restyle"]

_MOST = 50


class _Change(NamedTuple):
    id: ToolId
    old: str | None
    new: str


def restyle(source: str | None, making: NamingOptions, client: str, *, dry_run: bool, as_json: bool) -> int:
    """Change the style, aliases or server name of a ledger. Old names keep resolving."""
    location = ledger_location(source, making.state)
    path = location.name
    workspace = open_workspace([source] if source else [], replace(making, state=location.address))
    recorded = workspace.ledger.settings if workspace.ledger is not None else None
    if recorded is None:
        raise UsageError(fact=f"{path} has no names yet", advice="`truename serve SOURCE --style STYLE` creates it.")
    other = ledger_settings(workspace.settings, recorded.style)
    with _changing(location, dry_run=dry_run) as ledger:
        before = dict(ledger.held(dialects.get(client).name))
        if ledger.settings is None or not ledger.settings.same(other):
            ledger.restyle(other)
        renewed = replace(workspace, ledger=ledger, settings=replace(workspace.settings, style=other.style))
        names = renewed.table(client)
        changes = [_Change(id, before.get(id), name) for id, name in names.items() if before.get(id) != name]
    if as_json:
        was, now = (
            {"style": one.style, "server_name": one.server_name, "aliases": dict(one.aliases)}
            for one in (recorded, other)
        )
        renamed = [{"id": str(change.id), "old": change.old, "new": change.new} for change in changes]
        failed = list(workspace.failed)
        print_json({"dry_run": dry_run, "from": was, "to": now, "renamed": renamed, "failed": failed})
    else:
        _print(changes, recorded, other, dry_run=dry_run)
    if workspace.failed:
        say(f"Servers that failed get their new names when they are back: {', '.join(workspace.failed)}.")
    return EXIT_UPSTREAM if workspace.failed else 0


def ledger_location(source: str | None, state: str | None) -> StateLocation:
    """Return the state database given, or the configuration's own. Raises `UsageError` if it has no ledger."""
    if state is not None:
        return existing_state(StateLocation.of(state))
    config = configuration(source)
    location = config.state_location()
    if location.is_memory:
        raise UsageError(fact=f"{config.path} keeps its names in memory only", advice="Give a file: --state PATH.")
    return existing_state(location)


class _DryRunEnds(Exception):
    """Rolls back the transaction of a dry run."""


@contextmanager
def _changing(location: StateLocation, *, dry_run: bool) -> Iterator[Ledger]:
    """Open a ledger in one transaction, which a dry run or an error rolls back."""
    ledger = open_ledger(location)
    try:
        with suppress(_DryRunEnds), ledger.transaction():
            yield ledger
            if dry_run:
                raise _DryRunEnds
    finally:
        ledger.close()


def _print(changes: list[_Change], recorded: LedgerSettings, other: LedgerSettings, *, dry_run: bool) -> None:
    made_otherwise = differences(recorded, other)
    if not changes and not made_otherwise:
        show(f"Nothing to rename: all names have style {other.style} already.")
        return
    if changes:
        rows: list[list[Cell]] = [
            [change.id.short, change.old or "(none)", styled(change.new, "bold cyan")] for change in changes
        ]
        print_table(["tool", "old name", "new name"], rows, whole=2)
        show("")
    for word, was, now in made_otherwise:
        verb = "would be" if dry_run else "are now" if word == "aliases" else "is now"
        show(f"{word} {verb} {now} (before: {was}).")
    count = f"{len(changes):,} name{'' if len(changes) == 1 else 's'}"
    done = "would be changed" if dry_run else "changed"
    show(f"{count} {done}; the old ones keep working." if changes else "No name changes.")
    if not dry_run:
        show("Running gateways apply it at the next call. If a gateway's configuration sets the old value, change it")
        show("there too, and restart that gateway.")


@dataclass(frozen=True, kw_only=True)
class AffectedState:
    """The settings, pins and approvals outside of the ledger that refer to the old ids."""

    settings: tuple[str, ...]
    pins: tuple[str, ...]
    approvals: tuple[str, ...]


def move_ids(source: str | None, state: str | None, until: str, *, dry_run: bool, as_json: bool) -> int:
    """Plan the changes of ids, show what else refers to them, and record them in the ledger unless it is a dry run."""
    config = configuration(source)
    location = ledger_location(source, state)
    plan = plan_identities(open_ledger(location, readonly=True), config.identities)
    beside = _beside(config, plan)
    made = bool(plan.changes) and plan.ok and not dry_run
    if plan.changes and plan.ok:
        with _changing(location, dry_run=dry_run) as memory:
            record_identities(memory, plan, until=until)
    if made and (pins_location := config.pins_location()).has("pin"):
        # The tools are the same, so pins and rejections move to the new ids.
        with PinStore(pins_location) as pins:
            pins.follow((change.recorded, change.declared) for change in plan.changes)
    if as_json:
        print_json(_document(plan, beside, until, made=made))
    else:
        _print_moves(plan, beside, made=made)
    return 0 if plan.ok else EXIT_FINDINGS


def _beside(config: Config, plan: IdentityPlan) -> AffectedState:
    old = {change.recorded for change in plan.changes}
    moves = ((change.recorded, change.declared) for change in plan.changes)
    return AffectedState(
        settings=mentions_changed(config.settings, moves),
        pins=tuple(_pinned(config, old)),
        approvals=tuple(_decided(config, old)),
    )


def _pinned(config: Config, old: set[ToolId]) -> Iterator[str]:
    location = config.pins_location()
    if old and location.exists:
        with PinStore(location, readonly=True) as pins:
            yield from sorted(one.key for one in pins.pins().values() if one.id in old)


def _decided(config: Config, old: set[ToolId]) -> Iterator[str]:
    location = config.state_location()
    if old and location.has("approval"):
        with closing(SqlApprovalStore(location, readonly=True)) as store:
            yield from (f"{one.key} ({one.subject.id})" for one in store.read().grants() if one.subject.id in old)


def _print_moves(plan: IdentityPlan, beside: AffectedState, *, made: bool) -> None:
    if not plan.changes:
        show("All ids on record are as the configuration declares them.")
        return
    rows: list[list[Cell]] = [
        [change.server, str(change.recorded), styled(str(change.declared), "bold cyan")] for change in plan.changes
    ]
    print_table(["server", "old id", "new id"], rows[:_MOST], whole=2)
    if len(rows) > _MOST:
        show(f"... and {len(rows) - _MOST:,} more; --json lists all.")
    show("")
    for refusal in plan.refusals:
        say(styled("refused: ", "bold red"), styled(str(refusal)))
    _tell("Change these settings: they refer to an old id", beside.settings)
    _tell("These pins move to the new ids", beside.pins)
    _tell("Check these approvals: they stay valid as long as the definition is the same", beside.approvals)
    count = f"{len(plan.changes):,} id{'' if len(plan.changes) == 1 else 's'}"
    if made:
        show(f"{count} changed; the old ids and all names of their tools keep working.")
        show("Restart running gateways, or reload their configuration.")
    elif plan.refusals:
        show("Nothing was changed: fix the configuration first.")
    else:
        show(f"{count} would be changed; the old ids and all names of their tools would keep working.")


def _tell(what: str, found: tuple[str, ...]) -> None:
    if found:
        show(styled(f"{what}:", "bold"))
        for one in found[:_MOST]:
            show(f"  {one}")
        if len(found) > _MOST:
            show(f"  ... and {len(found) - _MOST:,} more; --json lists all.")
        show("")


def _document(plan: IdentityPlan, beside: AffectedState, until: str, *, made: bool) -> dict[str, object]:
    return {
        "made": made,
        "until": until,
        "ids": [
            {"server": change.server, "name": change.name, "old": str(change.recorded), "new": str(change.declared)}
            for change in plan.changes
        ],
        "refusals": [{"kind": one.kind, "names": list(one.names), "text": str(one)} for one in plan.refusals],
        "settings": list(beside.settings),
        "pins": list(beside.pins),
        "approvals": list(beside.approvals),
    }
