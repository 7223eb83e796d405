"""Reading which networks may be gone to in any case."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

from truename.errors import excerpt

if TYPE_CHECKING:
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["read_networks"]


def read_networks(fields: Fields, name: str, _: Path) -> tuple[str, ...] | None:
    """Return the networks, written in one way; each text that is none is a fault."""
    if name not in fields:
        return None
    found: list[str] = []
    for index, text in enumerate(fields.texts(name)):
        try:
            found.append(str(ip_network(text.strip())))
        except ValueError:
            where, problem = f"{fields.where(name)}[{index}]", f"{excerpt(text)} is no network"
            fields.faults.add(where, problem, "Write it as 10.1.0.0/16, without bits behind its length.")
    return tuple(found)
