"""Lint the configured sources under ``pytest --truename``, one test item for each file.

The plugin itself is the module ``pytest_truename`` beside the package, which imports this module on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename.conventions import Severity
from truename.editing import Document
from truename.errors import ConfigError
from truename.lint.baseline import read_baseline, relative_path
from truename.lint.declared import read_declared
from truename.lint.excerpts import render_findings
from truename.lint.report import weigh
from truename.lint.settings import load_lint_configuration
from truename.lint.source_files import relative_to_cwd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from truename.conventions import Finding

__all__ = ["LintFailure", "LintFile", "LintItem", "items"]

_NAME = "truename"
_NOT_READ = (".toml", ".md", ".mdc", ".markdown")
# Findings without a file concern the configuration.
_NOWHERE = "truename.toml"


def items(session: pytest.Session, sources: Sequence[str]) -> list[pytest.Item]:
    """Return an item for every file that declares tools or has findings.

    ``sources`` replace the configured ones, unless empty. No server is started.
    """
    made: list[pytest.Item] = []
    for file, findings in _linted(session.config.rootpath, sources).items():
        parent = LintFile.from_parent(session, path=session.config.rootpath / file)
        made.append(LintItem.from_parent(parent, name=_NAME, findings=findings))
    return made


class LintFailure(Exception):
    """A file has findings; the text shows them."""


class LintFile(pytest.File):
    """A linted file, with one item."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: the item was created with the file."""
        return []


class LintItem(pytest.Item):
    """The linting of one file, which fails for errors and warnings."""

    def __init__(self, *, findings: Sequence[Finding], **rest: Any) -> None:
        super().__init__(**rest)
        self.findings = findings

    def runtest(self) -> None:
        """Fail if there are errors or warnings."""
        if any(one.rule.severity is not Severity.NOTE for one in self.findings):
            raise LintFailure(render_findings(self.findings))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the findings without a traceback, which would only show the plugin."""
        if isinstance(excinfo.value, LintFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


def _linted(root: Path, named: Sequence[str]) -> dict[str, list[Finding]]:
    configured = load_lint_configuration(root)
    sources = [root / one for one in named] or [configured.base / one for one in configured.settings.sources] or [root]
    files = (relative_to_cwd(one) for one in sources if not _declares_nothing(one))
    declared = read_declared(files, exclude=configured.settings.exclude)
    try:
        baseline = read_baseline(configured.baseline) if configured.baseline.is_file() else None
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from error
    report = weigh(declared, configured, baseline=baseline)
    found: dict[str, list[Finding]] = {}
    for one in declared.declarations:
        if one.location is not None:
            found.setdefault(relative_path(one.location.file, root), [])
    for finding in report.findings:
        file = relative_path(finding.location.file, root) if finding.location else ""
        found.setdefault(file or _NOWHERE, []).append(finding)
    return found


def _declares_nothing(path: Path) -> bool:
    """Return whether a source is a URL or a configuration (a test run starts no server), or a skill or an agent."""
    if ":/" in str(path) or path.suffix in _NOT_READ:
        return True
    try:
        value = Document.read(path, "jsonc").value if path.suffix == ".json" else None
    except ConfigError:
        return False
    return isinstance(value, dict) and bool(value.keys() & {"mcpServers", "servers"})
