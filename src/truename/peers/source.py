"""The text of another gateway's configuration as plain values: JSON or YAML, bounded, nothing in it evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from truename.config.text import decode, read_text
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_plain"]

# The pure Python reader of YAML takes about a second for each of these.
_MAX_YAML: Final = 2 * 1024 * 1024
_MAX_MERGED: Final = 10_000
_MAX_DEPTH: Final = 100
_MOST_VALUES: Final = 500_000


class _Loader(yaml.SafeLoader):
    """Plain values only, as the safe loader; no key twice, and no merges that grow without bound."""

    merged = 0
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise yaml.YAMLError("it is nested too deeply")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        self.merged += len(node.value)
        if self.merged > _MAX_MERGED * 10:
            raise yaml.YAMLError("its << keys merge too much")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    mark = key.start_mark
                    what = f"{excerpt(key.value)} stands there twice (line {mark.line + 1})"
                    raise yaml.YAMLError(what)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_plain(path: Path) -> dict[str, Any]:
    """Return the one object that the file holds. Raises `ConfigError` for what is no JSON or YAML object."""
    text = read_text(path)
    if text.lstrip().startswith(("{", "//", "/*")):
        return decode(text, str(path), toml=False)
    if len(text) > _MAX_YAML:
        raise _fault(path, f"it is larger than {_MAX_YAML:,} characters", "Give a configuration file.")
    try:
        found = yaml.load(text, _Loader)  # noqa: S506 - a safe loader, made stricter
        _measure(found, {})
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _fault(path, f"it is not YAML ({_said(error)})", "Mend the file there.") from None
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise _fault(path, "it is not an object with named keys", "Give a gateway's configuration file.")
    return found


def _measure(value: Any, known: dict[int, int]) -> int:
    """Return how large a value is with its aliases written out; one that contains itself never ends."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        # Until it is known, its own size: what meets it inside meets itself.
        known[id(value)] = _MOST_VALUES
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_measure(item, known) for item in items)
    if known[id(value)] >= _MOST_VALUES:
        raise yaml.YAMLError("its aliases make it too large")
    return known[id(value)]


def _said(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or error) if not isinstance(error, RecursionError) else "too deep"
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{excerpt(what)[1:-1]}{place}"


def _fault(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy=remedy)
