"""A pytest plugin: ``pytest --truename`` lints the configured sources, one item a file.

It imports nothing of the linter before it is asked to: a test run without the option pays for nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.policy import Finding

__all__ = ["Failure", "LintFile", "LintItem", "pytest_addoption", "pytest_collection_modifyitems"]

_OPTION = "--truename"
_SOURCES = "truename_sources"
_NAME = "truename"
# Findings that have no file concern what is configured.
_NOWHERE = "truename.toml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option, and the setting that names other sources than the configured ones."""
    group = parser.getgroup("truename")
    group.addoption(_OPTION, action="store_true", help="lint the tools that are declared here, as truename lint does")
    parser.addini(_SOURCES, "what --truename lints, in place of lint.sources", type="args", default=[])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add an item for every file that declares tools, or about which there is something to say."""
    if not config.getoption(_OPTION):
        return
    for file, findings in _linted(config).items():
        parent = LintFile.from_parent(session, path=config.rootpath / file)
        items.append(LintItem.from_parent(parent, name=_NAME, findings=findings))


class Failure(Exception):
    """A file has findings; the text is what people read."""


class LintFile(pytest.File):
    """A file that was linted; it has one item."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: the item was made with the file."""
        return []


class LintItem(pytest.Item):
    """The linting of one file: it fails for errors and warnings."""

    def __init__(self, *, findings: Sequence[Finding], **rest: Any) -> None:
        super().__init__(**rest)
        self.findings = findings

    def runtest(self) -> None:
        """Fail if there is anything but notes."""
        from truename.lint.text import told  # noqa: PLC0415 - only where the option is given
        from truename.policy import Severity  # noqa: PLC0415 - as above

        if any(one.rule.severity is not Severity.NOTE for one in self.findings):
            raise Failure(told(self.findings))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the findings alone: where in the plugin they were raised concerns nobody."""
        if isinstance(excinfo.value, Failure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


def _linted(config: pytest.Config) -> dict[str, list[Finding]]:
    from truename.lint.baseline import DEFAULT_NAME, read_baseline  # noqa: PLC0415 - only where the option is given
    from truename.lint.configured import configured_at  # noqa: PLC0415 - as above
    from truename.lint.declared import read_declared  # noqa: PLC0415 - as above
    from truename.lint.fingerprints import relative  # noqa: PLC0415 - as above
    from truename.lint.report import weigh  # noqa: PLC0415 - as above

    configured = configured_at(config.rootpath)
    named: list[str] = config.getini(_SOURCES)
    sources = [config.rootpath / one for one in named] or [
        configured.base / one for one in configured.settings.sources if not _is_servers(configured.base / one)
    ]
    declared = read_declared(map(_short, sources or [config.rootpath]), exclude=configured.settings.exclude)
    path = configured.base / (configured.settings.baseline or configured.convention.baseline or DEFAULT_NAME)
    report = weigh(declared, configured, baseline=read_baseline(path) if path.is_file() else None)
    found: dict[str, list[Finding]] = {}
    for one in declared.declarations:
        if one.location is not None:
            found.setdefault(relative(one.location.file, config.rootpath), [])
    for finding in report.findings:
        file = relative(finding.location.file, config.rootpath) if finding.location else ""
        found.setdefault(file or _NOWHERE, []).append(finding)
    return found


def _is_servers(path: Path) -> bool:
    """Tell whether a source is an address or a configuration: no server is started by a test run."""
    from truename.documents import Document  # noqa: PLC0415 - only where the option is given
    from truename.errors import ConfigError  # noqa: PLC0415 - as above

    if ":/" in str(path) or path.suffix == ".toml":
        return True
    try:
        value = Document.read(path, "jsonc").value if path.suffix == ".json" else None
    except ConfigError:
        return False
    return isinstance(value, dict) and bool(value.keys() & {"mcpServers", "servers"})


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
