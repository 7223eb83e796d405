"""What is wrong with the tools that a team declares: sources read, rules run, findings weighed."""

from truename.lint.baseline import Baseline, read_baseline, written_baseline
from truename.lint.configured import Configured, LintSettings, configured_at
from truename.lint.declared import Declared, read_declared
from truename.lint.fixes import Fix
from truename.lint.registry import RULES, rule_named
from truename.lint.report import Report, Weighed, weigh
from truename.lint.upkeep import UPKEEP

__all__ = [
    "RULES",
    "UPKEEP",
    "Baseline",
    "Configured",
    "Declared",
    "Fix",
    "LintSettings",
    "Report",
    "Weighed",
    "configured_at",
    "read_baseline",
    "read_declared",
    "rule_named",
    "weigh",
    "written_baseline",
]
