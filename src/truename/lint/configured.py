"""What a project has configured for linting: its convention, its sources, and where each of it is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.config import find_convention
from truename.config.faults import Faults, nearest
from truename.config.text import decode, read_text
from truename.documents import Document
from truename.errors import ConfigError, excerpt
from truename.lint.dumps import fault_of
from truename.policy import Convention, Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.documents import Where
    from truename.policy import Finding

__all__ = ["Configured", "LintSettings", "configured_at"]

_FILES: Final = (("truename.toml", ()), ("pyproject.toml", ("tool", "truename")))
_SECTION: Final = "lint"
_STEP: Final = re.compile(r"\[(\d{1,6})\]|'([^']{1,200})'|([^.\[\]']{1,200})")
_TOML: Final = "toml"


@dataclass(frozen=True, kw_only=True)
class LintSettings:
    """The ``lint`` table: what is linted when nothing is named, what is left out, and where the baseline is."""

    sources: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    baseline: str = ""


@dataclass(frozen=True, kw_only=True)
class Configured:
    """The convention to lint by, where it is written, the settings, and what is wrong with the files of both.

    ``base`` is the directory that paths are named from: that of the file, or where the command runs.
    """

    convention: Convention = field(default_factory=Convention)
    settings: LintSettings = field(default_factory=LintSettings)
    file: Path | None = None
    base: Path = field(default_factory=Path.cwd)
    findings: tuple[Finding, ...] = ()

    def is_in(self, file: str) -> bool:
        """Tell whether a location names the file of the convention."""
        return self.file is not None and Path(file).absolute() == self.file

    def place(self, key: str) -> Location:
        """Return where a key such as ``convention.apps[0]`` stands; without a file, the key alone."""
        return Location(file="", key=key) if self.file is None else _place(self.file, key)


def configured_at(start: Path) -> Configured:
    """Find what the nearest truename.toml or pyproject.toml from a directory upwards says about linting.

    It raises nothing: a file that is broken is a finding, and the plain convention is used.
    """
    start = start.absolute()
    findings: dict[tuple[str, Location | None], Finding] = {}
    convention, file, base, settings = Convention(), None, start, LintSettings()
    try:
        found = find_convention(start)
        if found is not None:
            convention, file, base = found.convention, found.file.absolute(), found.file.absolute().parent
    except (ConfigError, ExceptionGroup) as error:
        findings |= {(one.fact, one.location): one for one in map(_finding, _leaves(error))}
    try:
        place = _settings_file(start)
        if place is not None:
            base, settings = place[0].parent, _read_settings(*place)
    except (ConfigError, ExceptionGroup) as error:
        findings |= {(one.fact, one.location): one for one in map(_finding, _leaves(error))}
    return Configured(convention=convention, settings=settings, file=file, base=base, findings=tuple(findings.values()))


def _settings_file(start: Path) -> tuple[Path, Where] | None:
    for directory in (start.absolute(), *start.absolute().parents):
        for name, section in _FILES:
            file = directory / name
            if file.is_file() and (not section or _table(file, section)):
                return file, section
    return None


def _table(file: Path, section: Where) -> Mapping[str, Any]:
    value: Any = decode(read_text(file), str(file), toml=True)
    for step in section:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _read_settings(file: Path, section: Where) -> LintSettings:
    table = _table(file, (*section, _SECTION))
    faults = Faults(str(file))
    known = [one.name for one in fields(LintSettings)]
    told: dict[str, Any] = {}
    for key, value in table.items():
        if key == "baseline" and isinstance(value, str):
            told[key] = value
        elif key in {"sources", "exclude"} and isinstance(value, list) and all(isinstance(one, str) for one in value):
            told[key] = tuple(value)
        elif key in known:
            faults.add(f"{_SECTION}.{key}", f"it is no {'text' if key == 'baseline' else 'list of texts'}", "Mend it.")
        else:
            faults.add(f"{_SECTION}.{excerpt(key)[1:-1]}", "it is not a setting", nearest(key, known))
    faults.raise_any()
    return LintSettings(**told)


def _leaves(error: Exception) -> Iterator[ConfigError]:
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    elif isinstance(error, ConfigError):
        yield error
    else:
        raise error


def _finding(error: ConfigError) -> Finding:
    """Return the finding of a fault, at the line where its key stands if the file can be read at all."""
    finding = fault_of(error, _short(Path(error.file)))
    if finding.location is None or finding.location.line:
        return finding
    return replace(finding, location=_place(Path(error.file), error.key))


def _steps(key: str) -> Iterator[str | int]:
    for found in _STEP.finditer(key[:2000]):
        yield int(found[1]) if found[1] else found[2] or found[3]


def _place(file: Path, key: str) -> Location:
    section = next((section for name, section in _FILES if name == file.name), ())
    where = tuple(_steps(key))
    if where[:1] in {("convention",), (_SECTION,)}:
        where = (*section, *where)
    try:
        line, column = Document.read(file, _TOML).position(where)
    except ConfigError:
        line = column = 0
    return Location(file=_short(file), line=line, column=column, key=key)


def _short(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)
