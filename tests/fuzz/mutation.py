"""Mutations of texts, bytes and JSON values, all drawn from one seeded source of chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.chance import Fed

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["changed", "mutated", "mutated_bytes", "text", "value"]

_SEEDS: Final = (
    "salesforce@1/get_leads@1",
    "Data-Grout@v1/prism.refract@latest",
    "data-grout%401~prism.refract%401",
    "sf_create_lead_2",
    "mcp__truename__get_data",
    "functions.get_data",
    "Weather:get_data",
    "createConfluencePageFromMarkdownTemplateInSpaceWithLabels",
    "天気取得",
    "21st_magic_component_builder",
    "__get_instructions__",
    "a/b",
    "fs.list",
    "",
)
_ODD: Final[tuple[str, ...]] = (
    *"@/%~._-:# \0\x1b\x7f\x85\n\r\t\u00a0\u00ad\u200b\u202e\u2028\ufeff\ud800\U0001f4a5İıſKßé٣²Ⅷ",
    "%25",
    "%2F",
    "%zz",
    "%C3%28",
    "@latest",
    "@v1",
    "@0",
    "@01",
    "@99999999999999999999",
    "__",
    "..",
    "//",
    "\r\n",
    "[red]",
    "{server}",
    "\u0301",
    "e\u0301",
)


def text(chance: Random) -> str:
    """Return a text: a known one mutated a few times, now and then a very long one."""
    found = chance.choice(_SEEDS)
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        found = mutated(chance, found)
    if chance.random() < 0.002:
        found = (found or "x") * (chance.choice((10_000, 1_000_000, 10_000_000)) // max(1, len(found)))
    return found


def mutated(chance: Random, given: str) -> str:
    """Return the text with one change."""
    return chance.choice(_CHANGES)(chance, given)


def _place(chance: Random, given: str | bytes) -> tuple[int, int]:
    start = chance.randrange(len(given) + 1)
    return start, min(len(given), start + chance.choice((0, 1, 1, 2, 5, 20)))


def _insert(chance: Random, given: str) -> str:
    start, _ = _place(chance, given)
    return given[:start] + chance.choice(_ODD) + given[start:]


def _replace(chance: Random, given: str) -> str:
    start, end = _place(chance, given)
    return given[:start] + chance.choice(_ODD) + given[end:]


def _delete(chance: Random, given: str) -> str:
    start, end = _place(chance, given)
    return given[:start] + given[end:]


def _repeat(chance: Random, given: str) -> str:
    start, end = _place(chance, given)
    return given[:end] + given[start:end] * chance.choice((1, 2, 30)) + given[end:]


def _swap_case(_: Random, given: str) -> str:
    return given.swapcase()


def _splice(chance: Random, given: str) -> str:
    other = chance.choice(_SEEDS)
    return given[: _place(chance, given)[0]] + other[_place(chance, other)[0] :]


def _any_character(chance: Random, given: str) -> str:
    start, end = _place(chance, given)
    return given[:start] + chr(chance.randrange(0x11_0000)) + given[end:]


_CHANGES: Final[tuple[Callable[[Random, str], str], ...]] = (
    _insert,
    _replace,
    _delete,
    _repeat,
    _swap_case,
    _splice,
    _any_character,
)


def mutated_bytes(chance: Random, given: bytes) -> bytes:
    """Return the bytes with a few of them changed, removed, doubled or cut off; or any others, of who is guided."""
    if isinstance(chance, Fed) and chance.random() < 0.25 and (whole := chance.rest()):
        return whole
    found = bytearray(given)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        start, end = _place(chance, bytes(found))
        match chance.randrange(5):
            case 0:
                found[start:end] = chance.randbytes(end - start)
            case 1:
                del found[start:end]
            case 2:
                found[start:start] = found[start:end]
            case 3:
                del found[start:]
            case _:
                found[start:start] = chance.choice(_ODD).encode("utf-8", "surrogatepass")
    return bytes(found)


def value(chance: Random, depth: int = 3) -> Any:
    """Return something that JSON can hold."""
    kind = chance.randrange(9 if depth else 6)
    if kind < 3:
        return text(chance)
    if kind < 6:
        return chance.choice((None, True, False, 0, -1, 2**70, 1.5, 1e308, ""))
    if kind < 8:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {text(chance)[:100]: value(chance, depth - 1) for _ in range(chance.randrange(4))}


def changed(chance: Random, given: Any) -> Any:
    """Return a JSON value with one thing in it that is another, away, or there besides."""
    if not isinstance(given, dict | list) or not given or chance.random() < 0.1:
        return mutated(chance, given) if isinstance(given, str) and chance.random() < 0.6 else value(chance)
    if isinstance(given, list):
        place = chance.randrange(len(given))
        return [*given[:place], changed(chance, given[place]), *given[place + 1 :]]
    key = chance.choice(list(given))
    match chance.randrange(6):
        case 0:
            return {name: one for name, one in given.items() if name != key}
        case 1:
            return {**given, text(chance)[:100]: value(chance)}
        case 2:
            return {mutated(chance, name) if name == key else name: one for name, one in given.items()}
        case _:
            return {**given, key: changed(chance, given[key])}
