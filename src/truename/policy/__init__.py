"""What may happen, and what is wrong: rules and their findings."""

from truename.policy.finding import Finding, Location, Rule, Severity

__all__ = ["Finding", "Location", "Rule", "Severity"]
