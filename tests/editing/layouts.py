"""Texts as people and programs lay them out: one value in many forms, for the laws of editing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml
from hypothesis import strategies as st

from truename.editing.toml import dotted, inline

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KEYS", "SAYABLE", "TEXTS", "VALUES", "containers", "edited_plainly"]

Where = tuple[str | int, ...]

KEYS: Final = st.sampled_from(
    ["a", "b", "mcpServers", "my server", "é😀", "x.y", 'q"uote', "on", "12", "-", "#", "a: b"]
)
_AWKWARD: Final = ["", "yes", "12:30", "0o17", "null", "~", "- x", "a: b", "# c", "//c", "{", "é\u2028", "\x7f", "\n\t"]
_SCALARS: Final = st.one_of(
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.sampled_from(_AWKWARD),
    st.text(st.characters(codec="utf-8"), max_size=8),
)


def _values(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
        max_leaves=8,
    )


# TOML cannot say null.
SAYABLE: Final = _values(_SCALARS)
VALUES: Final = _values(st.one_of(st.none(), _SCALARS))
_ENDS: Final = st.sampled_from(["\n", "\r\n"])


def containers(value: Any, where: Where = ()) -> Iterator[tuple[Where, Any]]:
    """Go through all objects and lists of a value."""
    yield where, value
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, dict | list):
            yield from containers(one, (*where, key))


def edited_plainly(value: Any, where: Where, *new: Any) -> Any:
    """Do an edit to the value, without any care for a text; without something new, remove."""
    changed = json.loads(json.dumps(value))
    holder = changed
    for step in where[:-1]:
        holder = holder[step]
    if not new:
        del holder[where[-1]]
    elif isinstance(holder, list) and where[-1] == len(holder):
        holder.append(new[0])
    else:
        holder[where[-1]] = new[0]
    return changed


@st.composite
def _strict_json(draw: st.DrawFn) -> bytes:
    """As programs write it."""
    value = draw(st.dictionaries(KEYS, VALUES, max_size=4))
    text = json.dumps(value, indent=draw(st.sampled_from([None, 1, 2, 4, "\t"])), ensure_ascii=draw(st.booleans()))
    return (text + draw(st.sampled_from(["", "\n", "\n\n"]))).replace("\n", draw(_ENDS)).encode()


@st.composite
def _loose_json(draw: st.DrawFn) -> bytes:
    """With comments, trailing commas, a byte order mark, and blanks of any kind between the tokens."""
    end = draw(_ENDS)
    blanks = ["", " ", end, f"{end}\t", f"{end}  ", f" {end}    "]
    if draw(st.booleans()):
        blanks += [f" // c{end}", "/* c */", f" /* c{end} */ ", f"// a{end} // b{end}  "]
    gap = st.sampled_from(blanks)
    comma = st.sampled_from(["", ","]) if draw(st.booleans()) else st.just("")

    def write(one: Any) -> str:
        if isinstance(one, dict):
            return joined("{", [f"{json.dumps(key)}{draw(gap)}:{draw(gap)}{write(item)}" for key, item in one.items()])
        return joined("[", [write(item) for item in one]) if isinstance(one, list) else json.dumps(one)

    def joined(opening: str, parts: list[str]) -> str:
        inside = f"{draw(gap)},".join(f"{draw(gap)}{part}" for part in parts)
        tail = draw(gap) + draw(comma) if parts else ""
        return f"{opening}{inside}{tail}{draw(gap)}{chr(ord(opening) + 2)}"

    text = f"{draw(gap)}{write(draw(st.dictionaries(KEYS, VALUES, max_size=4)))}{draw(gap)}"
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


class _Indented(yaml.SafeDumper):
    """Indents lists under their key, as half of the world does."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - asked for
        super().increase_indent(flow, False)


@st.composite
def _yaml(draw: st.DrawFn) -> bytes:
    """In block and flow style, with comments and blank lines anywhere."""
    text = yaml.dump(
        draw(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)),
        Dumper=draw(st.sampled_from([yaml.SafeDumper, _Indented])),
        default_flow_style=draw(st.sampled_from([False, False, False, None, True])),
        indent=draw(st.sampled_from([2, 4])),
        width=draw(st.sampled_from([20, 1000])),
        allow_unicode=True,
        sort_keys=False,
    )
    lines: list[str] = []
    for line in text.split("\n")[:-1]:
        indent = line[: len(line) - len(line.lstrip())]
        above, after = draw(st.sampled_from([("", "")] * 5 + [("# own", ""), (f"{indent}# mine", ""), ("", " # end")]))
        lines += [*filter(None, [above]), line + after]
        lines += [""] * draw(st.sampled_from([0, 0, 0, 0, 1]))
    end = draw(_ENDS)
    return (end.join(lines) + draw(st.sampled_from([end, "", f"{end}# tail", end * 2]))).encode()


class _TomlWriter:
    """Writes tables under headers, with dots and inline, arrays over lines, and comments."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []

    def put(self, line: str) -> None:
        self.lines.extend(self.draw(st.sampled_from([[]] * 4 + [["# own"], [""]])))
        self.lines.append(line + self.draw(st.sampled_from([""] * 4 + ["  # end"])))

    def pair(self, key: Where, value: Any) -> None:
        if isinstance(value, list) and value and self.draw(st.booleans()):
            self.put(f"{dotted(key)} = [")
            self.lines.extend(f"    {inline(item)}," for item in value)
            self.lines.append("]")
        else:
            self.put(f"{dotted(key)} = {inline(value)}")

    def table(self, path: Where, value: dict[str, Any], header: str) -> None:
        forms = {key: self.draw(st.sampled_from(["header", "header", "inline", "dots"])) for key in value}
        below = {key: one for key, one in value.items() if one and forms[key] == "header" and _is_table(one)}
        pairs = {key: one for key, one in value.items() if key not in below}
        if header and (pairs or not value or self.draw(st.booleans())):
            self.put(header)
        for key, one in pairs.items():
            spread = one.items() if isinstance(one, dict) and forms[key] == "dots" else ()
            for inner, item in spread:
                self.pair((key, inner), item)
            if not spread:
                self.pair((key,), one)
        for key, one in below.items():
            self.below((*path, key), one)

    def below(self, path: Where, value: Any) -> None:
        if isinstance(value, dict):
            self.table(path, value, f"[{dotted(path)}]")
            return
        for item in value:
            self.put(f"[[{dotted(path)}]]")
            self.table(path, item, "")


@st.composite
def _toml(draw: st.DrawFn) -> bytes:
    objects = st.dictionaries(KEYS, SAYABLE, max_size=3)
    nested = st.one_of(SAYABLE, st.dictionaries(KEYS, objects, max_size=3), st.lists(objects, min_size=1, max_size=2))
    writer = _TomlWriter(draw)
    writer.table((), draw(st.dictionaries(KEYS, nested, max_size=4)), "")
    end = draw(_ENDS)
    return (end.join(writer.lines) + draw(st.sampled_from([end, "", f"{end}# tail", end * 2]))).encode()


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and all(isinstance(item, dict) for item in value))


TEXTS: Final = {"json": _strict_json(), "jsonc": _loose_json(), "yaml": _yaml(), "toml": _toml()}
