"""Ops about renames: the plan, the files, what is left, protocol versions, the decision record (seeds 002 and 003)."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from unittest import mock

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.words import CONVENTION, SURFACES
from tests.acceptance.world import NotChecked
from truename.cli import main
from truename.conventions.convention import Convention
from truename.migration import (
    apply,
    bump,
    compare_versions,
    plan,
    propose_by_convention,
    propose_underscored,
    survey,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.migration import RenameProposal

# What is renamed where a row leaves that to the driver (seed 002's own example).
_RENAMED: Final = ("powershell.exec", "powershell_exec")


@op("rename_plan", needs="style names")
def rename_plan(given: Given) -> Facts:
    proposal = _proposal(given["style"], given["names"])
    made = plan(proposal.renames, known=given["names"])
    return {
        **made.renames,
        "planned": made.ok and bool(made.renames) and not proposal.unclear,
        "refused": not made.ok,
        "control_plane": list(made.control_plane),
    }


def _proposal(style: str, names: list[str]) -> RenameProposal:
    if style == "underscore":
        return propose_underscored(names)
    if style == "convention":
        return propose_by_convention(names, Convention.of(CONVENTION))
    raise NotChecked(f"no style of names is known as {style!r}")


@op("migrate_files", needs="file text map", takes="bump")
def migrate_files(given: Given) -> Facts:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "repository" / given["file"]
        _write(file, given["text"])
        found = survey(plan(given["map"]), [Path(directory) / "repository"], count_up="bump" in given)
        apply(found.changes, Path(directory) / "state")
        step = found.protocol
        return {
            "text": file.read_bytes().decode(),
            "bump": None if step is None else [step.old, step.new],
        }


@op("drift_check", needs="surface map")
def drift_check(given: Given) -> Facts:
    """A name is reported where it is left, and not where the new one stands."""
    left = _is_reported(given["surface"], given["map"], list(given["map"]))
    done = _is_reported(given["surface"], given["map"], list(given["map"].values()))
    return {"old_name_reported": left and not done}


def _is_reported(surface: str, renames: Mapping[str, str], names: list[str]) -> bool:
    if surface not in SURFACES:
        raise NotChecked(f"no surface is known as {surface!r}")
    file, template = SURFACES[surface]
    with TemporaryDirectory() as directory:
        _write(Path(directory) / file, "".join(template.format(name=name) for name in names))
        return not survey(plan(renames), [Path(directory)]).is_clean


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())


@op("bump", needs="version change")
def bumped(given: Given) -> Facts:
    return {"version": bump(given["version"], given["change"])}


@op("version_cmp", needs="a b")
def version_cmp(given: Given) -> Facts:
    order = compare_versions(given["a"], given["b"])
    return {"order": order, "equal": order == 0, "newer": given["a"] if order >= 0 else given["b"]}


@op("adr", needs="fields")
def adr(given: Given) -> Facts:
    """Rename by the real command, with a record, and look for what stands under each field."""
    old, new = _RENAMED
    with TemporaryDirectory() as directory:
        source = Path(directory, "src", "tools.py")
        _write(source, f'TOOL = "{old}"\n')
        records = Path(directory, "adr")
        words = ["rename", old, new, "--apply", str(source), "--record", str(records), "--because", "A client asks."]
        with redirect_stdout(io.StringIO()), mock.patch.dict(os.environ, {"XDG_STATE_HOME": directory}):
            main(words)
        texts = [path.read_text("utf-8") for path in records.iterdir()] if records.is_dir() else []
    said = _fields(texts[0]) if len(texts) == 1 else {}
    is_told = all(name in said.get("Decision Outcome", "") for name in _RENAMED)
    return {"generated": bool(given["fields"]) and is_told and all(said.get(field) for field in given["fields"])}


def _fields(text: str) -> dict[str, str]:
    """Return what stands under each heading of a record, and behind each word of its head."""
    head, *sections = text.split("\n## ")
    pairs = [line.removeprefix("- ").partition(": ") for line in head.splitlines() if line.startswith("- ")]
    pairs += [section.partition("\n") for section in sections]
    return {field: value.strip() for field, _, value in pairs}
