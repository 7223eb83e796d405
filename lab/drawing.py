"""Catalogues drawn from the collection of real ones: another for each seed, the same for the same seed.

Most real catalogues are harmless to every client. So of seven servers two have a name in common, one has a name with
a character that some client changes, one a long name; the other three are any.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from lab import places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["drawn"]

_ANY: Final = 3
_MOST: Final = 15
_EVEN: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*([_-][a-zA-Z0-9]+)*")
_LONG: Final = 40


class _Catalogue(NamedTuple):
    server: str
    names: tuple[str, ...]


def drawn(seed: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the servers of this seed, (key, names) each. Raises `LookupError` without the collection."""
    chance, all_of_them = Random(seed), _catalogues()
    shared = chance.choice(_shared(all_of_them))
    chosen = chance.sample([one for one in all_of_them if shared in one.names], 2)
    for telling in (_odd, _long):
        chosen += chance.sample([one for one in all_of_them if any(map(telling, one.names))], 1)
    chosen += chance.sample(all_of_them, _ANY)
    # A client's configuration has a key once.
    by_key = {one.server: one for one in reversed(chosen)}
    picked = [(one.server, _some(chance, one.names, shared)) for one in by_key.values()]
    chance.shuffle(picked)
    return tuple(picked)


def _some(chance: Random, names: Sequence[str], shared: str) -> tuple[str, ...]:
    """Return some of a server's names in their order: those that make the draw telling, then any."""
    places_of = range(len(names))
    telling = [place for place, name in enumerate(names) if name == shared or _odd(name) or _long(name)]
    kept = chance.sample(telling, min(_MOST, len(telling)))
    others = sorted(set(places_of) - set(kept))
    kept += chance.sample(others, min(_MOST - len(kept), len(others)))
    return tuple(names[place] for place in sorted(kept))


def _odd(name: str) -> bool:
    return not _EVEN.fullmatch(name)


def _long(name: str) -> bool:
    return len(name) > _LONG


def _shared(catalogues: Iterable[_Catalogue]) -> list[str]:
    servers: dict[str, set[str]] = {}
    for one in catalogues:
        for name in one.names:
            servers.setdefault(name, set()).add(one.server)
    return sorted(name for name, keys in servers.items() if len(keys) > 1)


@cache
def _catalogues() -> tuple[_Catalogue, ...]:
    path = places.shared() / "corpus" / "open.jsonl.gz"
    if not path.is_file():
        raise LookupError(f"There is no {path}. TRUENAME_SHARED says where the collection of real catalogues is.")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows: list[Mapping[str, object]] = [json.loads(line) for line in lines]
    return tuple(one for row in rows if (one := _catalogue(row)).names)


def _catalogue(row: Mapping[str, object]) -> _Catalogue:
    tools = row["tools"]
    names = [tool["name"] for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return _Catalogue(str(row["server"]), tuple(name for name in names if isinstance(name, str) and name))
