"""Made-up homes for the doctor: files of clients, written as people have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from truename.clients import Machine, find
from truename.clients.doctor import DoctorReport, cases_of, examine, find_startable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.conventions import Finding

__all__ = ["examined", "machine", "of_rule", "written"]


def machine(home: Path, project: Path | None = None) -> Machine:
    """A machine that is nothing but this home."""
    root = home / "root"
    return Machine(system="linux", home=home, environ={}, project=project or home / "project", root=root)


def written(home: Path, files: Mapping[str, Any]) -> Machine:
    """Write files below a home: texts and bytes as they are, everything else as JSON."""
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), "utf-8")
    return machine(home)


def examined(here: Machine, lists: Mapping[str, list[str]] | None = None) -> DoctorReport:
    """Examine a machine whose servers list these tools, by key; the others were not asked."""
    found = find(here)
    known = lists or {}
    answers = {key: known[one.server.key] for key, one in find_startable(found).items() if one.server.key in known}
    return examine(cases_of(found, answers, str(here.project)))


def of_rule(report: DoctorReport, name: str) -> list[Finding]:
    """Return the findings of one rule."""
    return [one for one in report.findings if one.rule.name == name]
