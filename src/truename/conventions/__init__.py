"""Define a team's naming conventions: declarations, classification of names, rules and their findings."""

from truename.conventions.classification import Classification, classify
from truename.conventions.convention import Convention, Suppression, plain_convention, read_convention
from truename.conventions.declarations import Declaration, catalog_of, declared, implementations, tool
from truename.conventions.findings import Finding, Location, Rule, Severity
from truename.conventions.linting import Linted, Suppressed, lint
from truename.conventions.metadata import Metadata, metadata_of

__all__ = [
    "Classification",
    "Convention",
    "Declaration",
    "Finding",
    "Linted",
    "Location",
    "Metadata",
    "Rule",
    "Severity",
    "Suppressed",
    "Suppression",
    "catalog_of",
    "classify",
    "declared",
    "implementations",
    "lint",
    "metadata_of",
    "plain_convention",
    "read_convention",
    "tool",
]
