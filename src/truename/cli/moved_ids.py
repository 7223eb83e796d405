"""`truename rename --ids`: the ids on record lead to those that the configuration declares now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from truename.cli.failure import EXIT_FINDINGS
from truename.cli.rendering import Cell, print_json, print_table, say, show, styled
from truename.cli.restyling import copied, ledger_path
from truename.cli.sources import configuration
from truename.config.mentions import mentions_changed
from truename.ledger import Ledger
from truename.migration import enter_identities, plan_identities
from truename.policy import FileStore
from truename.trust import PinStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.cli.rename_options import Fate
    from truename.config import Config
    from truename.identity import ToolId
    from truename.migration import IdentityPlan

__all__ = ["move_ids"]

_MOST = 50


@dataclass(frozen=True, kw_only=True)
class _Beside:
    """What goes by ids beside the ledger, and has to be seen to: by the texts of settings, pins and approvals."""

    settings: tuple[str, ...]
    pins: tuple[str, ...]
    approvals: tuple[str, ...]


def move_ids(source: str | None, ledger: str | None, fate: Fate, *, dry_run: bool, as_json: bool) -> int:
    """Plan the ids that change, show what else goes by them, and enter them in the ledger unless it is a dry run."""
    config = configuration(source)
    until = fate.until(datetime.now(UTC).date())
    path = ledger_path(source, ledger)
    plan = plan_identities(Ledger.open(path, readonly=True), config.identities)
    beside = _beside(config, plan)
    made = bool(plan.changes) and plan.ok and not dry_run
    if plan.changes and plan.ok:
        with copied(path) as rehearsal:
            enter_identities(rehearsal, plan, until=until)
    if made:
        enter_identities(Ledger.open(path), plan, until=until)
        _carry_pins(config, plan)
    if as_json:
        print_json(_document(plan, beside, until, made=made))
    else:
        _print(plan, beside, made=made)
    return 0 if plan.ok else EXIT_FINDINGS


def _beside(config: Config, plan: IdentityPlan) -> _Beside:
    old = {change.recorded for change in plan.changes}
    moves = ((change.recorded, change.declared) for change in plan.changes)
    return _Beside(
        settings=mentions_changed(config.settings, moves),
        pins=tuple(_pinned(config, old)),
        approvals=tuple(_decided(config, old)),
    )


def _carry_pins(config: Config, plan: IdentityPlan) -> None:
    """Carry pins, and what was rejected, over to the new ids: the tools are the same, and not new to the gateway."""
    path = config.pins_path()
    if path is not None and path.is_file():
        with PinStore(path) as book:
            book.follow((change.recorded, change.declared) for change in plan.changes)


def _pinned(config: Config, old: set[ToolId]) -> Iterator[str]:
    path = config.pins_path()
    if old and path is not None and path.is_file():
        with PinStore(path) as book:
            yield from sorted(one.key for one in book.pins().values() if one.id in old)


def _decided(config: Config, old: set[ToolId]) -> Iterator[str]:
    path = config.approvals_path()
    if old and path is not None and path.is_file():
        book = FileStore(path).read()
        yield from (f"{one.key} ({one.subject.id})" for one in book.grants() if one.subject.id in old)


def _print(plan: IdentityPlan, beside: _Beside, *, made: bool) -> None:
    if not plan.changes:
        show("All ids on record are those that the configuration declares.")
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
    _tell("Change these settings: they are about one of the ids only", beside.settings)
    _tell("These pins are carried over to the new ids", beside.pins)
    _tell("Look through these approvals: they count as long as the definition is the same", beside.approvals)
    count = f"{len(plan.changes):,} id{'' if len(plan.changes) == 1 else 's'}"
    if made:
        show(f"{count} changed; the old ids and all names of their tools go on working.")
        show("Restart gateways that run, or have them read their configuration anew.")
    elif plan.refusals:
        show("Nothing was changed: the configuration has to be mended first.")
    else:
        show(f"{count} would be changed; the old ids and all names of their tools would go on working.")


def _tell(what: str, found: tuple[str, ...]) -> None:
    if found:
        show(styled(f"{what}:", "bold"))
        for one in found[:_MOST]:
            show(f"  {one}")
        if len(found) > _MOST:
            show(f"  ... and {len(found) - _MOST:,} more; --json lists all.")
        show("")


def _document(plan: IdentityPlan, beside: _Beside, until: str, *, made: bool) -> dict[str, object]:
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
