"""Reading which tools stay listed where the others are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.errors import excerpt
from truename.policy.globs import fault_in

if TYPE_CHECKING:
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["read_pinned"]


def read_pinned(fields: Fields, name: str, _: Path) -> tuple[str, ...] | None:
    """Return the globs on ids; each one that could fit no tool is a fault."""
    if name not in fields:
        return None
    globs = fields.texts(name)
    for index, glob in enumerate(globs):
        if fault := fault_in(glob):
            where, problem = f"{fields.where(name)}[{index}]", f"{excerpt(glob)} is no glob on ids: {fault}"
            fields.faults.add(where, problem, "Write integration/tool, as github/create_*.")
    return globs
