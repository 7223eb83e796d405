"""Lint the tools that a team declares: read sources, run rules, weigh findings."""

from truename.lint.baseline import Baseline, read_baseline, render_baseline
from truename.lint.declared import DeclaredTools, read_declared
from truename.lint.fixes import Fix
from truename.lint.report import LintReport, WeighedFindings, weigh
from truename.lint.rules import RULES, UPKEEP, find_rule
from truename.lint.settings import LintConfiguration, LintSettings, load_lint_configuration

__all__ = [
    "RULES",
    "UPKEEP",
    "Baseline",
    "DeclaredTools",
    "Fix",
    "LintConfiguration",
    "LintReport",
    "LintSettings",
    "WeighedFindings",
    "find_rule",
    "load_lint_configuration",
    "read_baseline",
    "read_declared",
    "render_baseline",
    "weigh",
]
