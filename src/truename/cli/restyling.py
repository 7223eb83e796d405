"""`truename rename --all`: other names from now on, while the old ones go on working."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from truename import dialects
from truename.cli.failure import EXIT_UPSTREAM, UsageFault
from truename.cli.remembered import differences, wanted
from truename.cli.rendering import Cell, print_json, print_table, say, show, styled
from truename.cli.scene import Scene, existing_ledger, set_up
from truename.cli.sources import configuration
from truename.files.user import at_home
from truename.ledger import Ledger, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.cli.options import Making
    from truename.identity import ToolId

__all__ = ["copied", "ledger_path", "restyle"]


class _Change(NamedTuple):
    id: ToolId
    old: str | None
    new: str


def restyle(source: str | None, making: Making, client: str, *, dry_run: bool, as_json: bool) -> int:
    """Change the style (or aliases, or server name) in which a ledger was begun. Old names go on resolving."""
    path = ledger_path(source, making.ledger)
    scene = set_up([source] if source else [], replace(making, ledger=str(path)))
    recorded = scene.ledger.settings if scene.ledger is not None else None
    if recorded is None:
        raise UsageFault(fact=f"{path} has no names yet", advice="`truename serve SOURCE --style STYLE` begins it.")
    other = wanted(scene.settings, recorded.style)
    with copied(path) as rehearsal:
        changes = _restyled(scene, rehearsal, other, client)
    if not dry_run:
        changes = _restyled(scene, Ledger.open(path), other, client)
    if as_json:
        _print_json(changes, recorded, other, dry_run=dry_run, failed=scene.failed)
    else:
        _print(changes, recorded, other, dry_run=dry_run)
    if scene.failed:
        say(f"Tools of servers that failed get their new names when they are back: {', '.join(scene.failed)}.")
    return EXIT_UPSTREAM if scene.failed else 0


def ledger_path(source: str | None, ledger: str | None) -> Path:
    """Return the ledger's file: the one given, or the configuration's own. Raises `UsageFault` where there is none."""
    if ledger is not None:
        return existing_ledger(at_home(ledger))
    config = configuration(source)
    path = config.ledger_path()
    if path is None:
        raise UsageFault(fact=f"{config.path} keeps its names in memory only", advice="Give a file: --ledger PATH.")
    return existing_ledger(path)


@contextmanager
def copied(path: Path) -> Iterator[Ledger]:
    """Open a copy: what can't be recorded whole must be found out before anything is."""
    with TemporaryDirectory() as directory:
        yield Ledger.open(shutil.copy(path, directory))


def _restyled(scene: Scene, memory: Ledger, other: Settings, client: str) -> list[_Change]:
    """Record how names are to be made, make them anew, and return those that are other ones now."""
    with memory.transaction():
        before = dict(memory.held(dialects.get(client).name))
        if memory.settings is None or not memory.settings.same(other):
            memory.restyle(other)
        new = replace(scene, ledger=memory, settings=replace(scene.settings, style=other.style)).table(client)
    return [_Change(id, before.get(id), name) for id, name in new.items() if before.get(id) != name]


def _print(changes: list[_Change], recorded: Settings, other: Settings, *, dry_run: bool) -> None:
    made_otherwise = differences(recorded, other)
    if not changes and not made_otherwise:
        show(f"Nothing is renamed: all names are of style {other.style} already.")
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
    show(f"{count} {done}; the old ones go on working." if changes else "No name changes by it.")
    if not dry_run:
        show("Running gateways take it over at the next call; one whose configuration sets the old value must be")
        show("restarted once that is changed too.")


def _print_json(
    changes: list[_Change], recorded: Settings, other: Settings, *, dry_run: bool, failed: tuple[str, ...]
) -> None:
    print_json(
        {
            "dry_run": dry_run,
            "from": {"style": recorded.style, "server_name": recorded.server_name, "aliases": dict(recorded.aliases)},
            "to": {"style": other.style, "server_name": other.server_name, "aliases": dict(other.aliases)},
            "renamed": [{"id": str(change.id), "old": change.old, "new": change.new} for change in changes],
            "failed": list(failed),
        }
    )
