"""A table in which a client has rules of older versions: made up, so that tests do not depend on what was run."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from truename.dialects import detection, registry
from truename.naming import client_prefixes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

__all__ = ["FORMER", "changed_table", "forget"]

# Two former conventions of opencode, whose newest one was run with 1.18.33: a prefix, and none before.
FORMER: Final[list[dict[str, Any]]] = [
    {"key": "0.1.0", "runs": {"0.1.0": "2026-11-01", "0.2.0": "2026-11-02"}, "join": "{tool}"},
    {"key": "0.5.0", "runs": {"0.5.0": "2026-11-03", "0.9.0": "2026-11-04"}, "join": "mcp__{server}__{tool}"},
]
_CACHES: Final = (
    registry.index,
    registry.versions,
    registry._by_alias,
    registry._of_version,
    registry._former_rules,
    registry.own,
    detection._patterns,
    client_prefixes._client_affixes,
    client_prefixes._folded_affixes,
    client_prefixes._by_length,
    client_prefixes._outermost,
)


def forget() -> None:
    """Forget what was derived from the table."""
    for cached in _CACHES:
        cached.cache_clear()


@contextmanager
def changed_table(patch: pytest.MonkeyPatch, client: str = "opencode", **fields: Any) -> Iterator[None]:
    """Replace fields of one row; a field that is None is removed."""
    content = copy.deepcopy(registry._content())
    (row,) = (one for one in content["rows"] if one["name"] == client)
    row.update(fields)
    for name in [name for name, value in fields.items() if value is None]:
        del row[name]
    with patch.context() as patched:
        patched.setattr(registry, "_content", lambda: content)
        forget()
        try:
            yield
        finally:
            forget()
