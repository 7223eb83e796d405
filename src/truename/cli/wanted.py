"""Which tools are to be renamed to what: from two words, a file, a style or a convention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.cli.failure import UsageFault
from truename.config import find_convention
from truename.conventions.convention import Convention
from truename.files.user import at_home
from truename.migration import MAX_MAP, RenameProposal, conventional, read_map, underscored
from truename.naming import STYLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Wanted", "wanted"]

_UNDERSCORE: Final = "underscore"
_CONVENTION: Final = "convention"
_PRESETS: Final = ("trailblaze", "provider-safe", "canonical", "mcp")
_SAY: Final = (
    "Say `truename rename OLD NEW`, `truename rename --map FILE`, or `truename rename SOURCE --style underscore`."
)
_FOUND: Final = 2


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The renames asked for, those that need a person (name -> why), and what is known of the tools and servers."""

    renames: Mapping[str, str]
    unclear: Mapping[str, str]
    known: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()


def wanted(words: Sequence[str], map_file: str | None, style: str | None, sources: Sequence[str]) -> Wanted:
    """Return what is asked for. ``sources`` are where the names there are can be found, besides.

    Raises `UsageFault` for words that say nothing or two things, `ConfigError` for files.
    """
    if map_file is not None and style is not None:
        raise UsageFault(fact="--map and --style both say what the names become", advice="Give one of them.")
    if map_file is not None:
        return _among(_mapped(map_file), [*words, *sources])
    if style is not None:
        return _styled(style, [*words, *sources])
    if len(words) != _FOUND:
        told = f"a rename takes two names, an old one and a new one, and {len(words) or 'none'} was given"
        raise UsageFault(fact=told.replace("was", "were") if len(words) > 1 else told, advice=_SAY)
    return _among({words[0]: words[1]}, sources)


def _mapped(map_file: str) -> Mapping[str, str]:
    path = at_home(map_file)
    try:
        with path.open("rb") as stream:
            return read_map(stream.read(MAX_MAP + 1), str(path))
    except OSError as error:
        raise UsageFault(fact=f"{path} can't be read ({error.strerror or error})", advice="Check the path.") from error


def _among(renames: Mapping[str, str], sources: Sequence[str]) -> Wanted:
    if not sources:
        return Wanted(renames=renames, unclear={})
    found = _declared(sources)
    return replace(found, renames=renames)


def _styled(style: str, sources: Sequence[str]) -> Wanted:
    propose = _proposer(style)
    if not sources:
        advice = f"Give a dump, a configuration or Python files: `truename rename SOURCE --style {style}`."
        raise UsageFault(fact="nothing says which tools there are", advice=advice)
    found = _declared(sources)
    if not found.known:
        raise UsageFault(
            fact=f"no tool was found in {', '.join(sources)}",
            advice="Give a dump, a configuration, or the Python files that declare the tools.",
        )
    proposal = propose(found.known)
    return replace(found, renames=proposal.renames, unclear=proposal.unclear)


def _proposer(style: str) -> Callable[[Iterable[str]], RenameProposal]:
    if style == _UNDERSCORE:
        return underscored
    if style == _CONVENTION:
        return _by(_own_convention())
    if style in _PRESETS:
        return _by(Convention.of(style))
    choice = ", ".join((_UNDERSCORE, _CONVENTION, *_PRESETS))
    if style in STYLES:
        raise UsageFault(
            fact=f"{style} is a style of making names: with it only all tools together can be renamed",
            advice=f"Say `truename rename SOURCE --all --style {style}`; for names in files use {choice}.",
        )
    raise UsageFault(fact=f"{style!r} is no style that names in files can have", advice=f"Use one of {choice}.")


def _by(convention: Convention) -> Callable[[Iterable[str]], RenameProposal]:
    return lambda names: conventional(names, convention)


def _own_convention() -> Convention:
    found = find_convention(Path())
    if found is None:
        raise UsageFault(
            fact="there is no convention here",
            advice=f"Write [convention] in truename.toml, or use a preset: --style {' or '.join(_PRESETS)}.",
        )
    return found.convention


def _declared(sources: Sequence[str]) -> Wanted:
    # It reads sources of Python and starts servers, which two plain words need not wait for.
    from truename.cli.declaring import take  # noqa: PLC0415 - see above

    taken = take(sources, ()).declared.declarations
    return Wanted(
        renames={},
        unclear={},
        known=tuple(dict.fromkeys(each.name for each in taken)),
        servers=tuple(dict.fromkeys(each.server for each in taken if each.server)),
    )
