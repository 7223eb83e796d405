"""Read a project's lint settings: its convention, its sources, and the location of each setting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from truename.config import find_convention
from truename.config.files import decode, read_text
from truename.conventions import Convention, Location
from truename.editing import ABSENT, Document, value_at
from truename.errors import ConfigError, ConfigErrors, config_error, excerpt, spelling_remedy
from truename.lint.baseline import DEFAULT_NAME
from truename.lint.dumps import unreadable_file_finding
from truename.lint.source_files import relative_to_cwd
from truename.policy import read_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.conventions import Finding
    from truename.editing import KeyPath

__all__ = ["LintConfiguration", "LintSettings", "load_lint_configuration"]

Metadata = Mapping[str, Mapping[str, object]]
_T = TypeVar("_T")

# The tables of each file; files and tables in the order in which they are searched.
_FILES: Final[Mapping[str, tuple[KeyPath, ...]]] = MappingProxyType(
    {"truename.toml": ((), ("truename",)), "pyproject.toml": (("tool", "truename"),)}
)
_CONVENTION: Final = "convention"
_SECTION: Final = "lint"
_METADATA: Final = "metadata"
_NOTHING: Final[Metadata] = MappingProxyType({})
_STEP: Final = re.compile(r"\[(\d{1,6})\]|'([^']{1,200})'|([^.\[\]']{1,200})")
_TOML: Final = "toml"


@dataclass(frozen=True, kw_only=True)
class LintSettings:
    """The ``lint`` table: the default sources, those beside them, the excluded globs, and the path of the baseline."""

    sources: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    baseline: str = ""


_KEYS: Final = tuple(one.name for one in fields(LintSettings))


@dataclass(frozen=True, kw_only=True)
class LintConfiguration:
    """The convention, the lint settings, their files, and the findings about those files.

    ``metadata`` is the operator's metadata of tools, by id or glob of ids, as a gateway reads it. ``settings_file`` is
    the file of the settings, if there is one. ``base`` is the directory to which paths are relative: that of the file,
    or the working directory.
    """

    convention: Convention = field(default_factory=Convention)
    settings: LintSettings = field(default_factory=LintSettings)
    metadata: Metadata = field(default_factory=lambda: _NOTHING, hash=False)
    file: Path | None = None
    settings_file: Path | None = None
    base: Path = field(default_factory=Path.cwd)
    findings: tuple[Finding, ...] = ()

    @property
    def baseline(self) -> Path:
        """The path of the baseline, which may not exist."""
        return self.base / (self.settings.baseline or self.convention.baseline or DEFAULT_NAME)

    def is_in(self, file: str) -> bool:
        """Return whether a location is in the file of the convention."""
        return self.file is not None and Path(file).absolute() == self.file

    def place(self, key: str) -> Location:
        """Return the location of a key such as ``convention.apps[0]``; without a file, the key alone."""
        return Location(file="", key=key) if self.file is None else _place(self.file, self._document, key)

    @cached_property
    def _document(self) -> Document | None:
        return None if self.file is None else _document(self.file)


def load_lint_configuration(start: Path) -> LintConfiguration:
    """Read the lint settings in the nearest truename.toml or pyproject.toml, from a directory upwards.

    It raises nothing: a broken file becomes a finding, and the default convention is used.
    """
    start = start.absolute()
    findings: dict[tuple[str, Location | None], Finding] = {}
    tried = partial(_tried, findings)
    found = tried(partial(find_convention, start), None)
    place = tried(partial(_settings_file, start), None)
    file = None if found is None else found.file.absolute()
    return LintConfiguration(
        convention=Convention() if found is None else found.convention,
        settings=LintSettings() if place is None else tried(partial(_read_settings, place), LintSettings()),
        metadata=_NOTHING if place is None else tried(partial(_read_metadata, place), _NOTHING),
        file=file,
        settings_file=place,
        base=next((one.parent for one in (place, file) if one is not None), start),
        findings=tuple(findings.values()),
    )


def _tried(findings: dict[tuple[str, Location | None], Finding], read: Callable[[], _T], usual: _T) -> _T:
    """Return the result of reading; after an error add findings, and return the default."""
    try:
        return read()
    except (ConfigError, ExceptionGroup) as error:
        findings |= {(one.fact, one.location): one for one in map(_finding, _leaves(error))}
        return usual


def _settings_file(start: Path) -> Path | None:
    """Return the nearest file with a table for Truename, with lint settings or without."""
    for directory in (start, *start.parents):
        for name, sections in _FILES.items():
            file = directory / name
            if file.is_file() and any(_table(file, section) is not None for section in sections):
                return file
    return None


def _table(file: Path, where: KeyPath) -> object:
    value: object = decode(read_text(file), str(file), toml=True)
    for step in where:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _own_table(file: Path, name: str) -> object:
    tables = (_table(file, (*section, name)) for section in _FILES[file.name])
    return next((one for one in tables if one is not None), {})


def _read_metadata(file: Path) -> Metadata:
    return read_metadata(_own_table(file, _METADATA), str(file))


def _read_settings(file: Path) -> LintSettings:
    table = _own_table(file, _SECTION)
    if not isinstance(table, dict):
        raise config_error(str(file), _SECTION, "it is not a table", f"Write [{_SECTION}] with {', '.join(_KEYS)}.")
    errors = ConfigErrors(str(file))
    told: dict[str, Any] = {}
    for key, value in table.items():
        if key == "baseline" and isinstance(value, str):
            told[key] = value
        elif (
            key in {"sources", "beside", "exclude"}
            and isinstance(value, list)
            and all(isinstance(one, str) for one in value)
        ):
            told[key] = tuple(value)
        elif key in _KEYS:
            errors.add(
                f"{_SECTION}.{key}",
                f"it is not a {'string' if key == 'baseline' else 'list of strings'}",
                "Correct it.",
            )
        else:
            errors.add(f"{_SECTION}.{excerpt(key)[1:-1]}", "it is not a setting", spelling_remedy(key, _KEYS))
    errors.raise_any()
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
    """Return the finding for an error, at the line of its key if the file is readable."""
    finding = unreadable_file_finding(error, str(relative_to_cwd(Path(error.file))))
    if finding.location is None or finding.location.line:
        return finding
    file = Path(error.file)
    return replace(finding, location=_place(file, _document(file), error.key))


def _document(file: Path) -> Document | None:
    try:
        return Document.read(file, _TOML)
    except ConfigError:
        return None


def _place(file: Path, document: Document | None, key: str) -> Location:
    if document is None:
        return Location(file=str(relative_to_cwd(file)), key=key)
    steps = _STEP.finditer(key[:2000])
    where: KeyPath = tuple(int(found[1]) if found[1] else found[2] or found[3] for found in steps)
    if where[:1] in {(_CONVENTION,), (_SECTION,), (_METADATA,)}:
        sections = _FILES.get(file.name, ((),))
        there = (one for one in sections if value_at(document.value, (*one, where[0])) is not ABSENT)
        where = (*next(there, ()), *where)
    line, column = document.position(where)
    return Location(file=str(relative_to_cwd(file)), line=line, column=column, key=key)
