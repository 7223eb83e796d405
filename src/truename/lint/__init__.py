"""Lint the tools that a team declares: read sources, run rules, weigh findings."""

from truename.lint.baseline import Baseline, read_baseline, written_baseline
from truename.lint.declared import DeclaredTools, read_declared
from truename.lint.fixes import Fix
from truename.lint.report import LintReport, WeighedFindings, weigh
from truename.lint.rules import RULES, UPKEEP, rule_named
from truename.lint.settings import LintConfiguration, LintSettings, configured_at

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
    "configured_at",
    "read_baseline",
    "read_declared",
    "rule_named",
    "weigh",
    "written_baseline",
]
