"""JSON values with one place changed: for what must refuse the same as another implementation."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

# Not true: Python takes it for the number 1, and the SDK with it.
VALUES: list[Any] = [None, 5, "x", [], {}, {"a": 1}, ["a"], 1.5, "ref/resource", {"name": "x"}]


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*above, key)
        yield from places(one, (*above, key))


def changed(chance: random.Random, params: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(params)
    for _ in range(chance.randrange(3)):
        if not (there := list(places(found))):
            break
        *above, last = chance.choice(there)
        inside: Any = found
        for key in above:
            inside = inside[key]
        if isinstance(inside, dict) and chance.random() < 0.4:
            del inside[last]
        else:
            inside[last] = copy.deepcopy(chance.choice(VALUES))
    return found
