"""What there is: `Tool`, `Origin`, `Catalog`, and the reading of dumps."""

from truename.catalog.aliases import BUILT_IN_ALIASES, usable_aliases
from truename.catalog.catalog import Catalog
from truename.catalog.tool import Notice, Origin, Tool

__all__ = ["BUILT_IN_ALIASES", "Catalog", "Notice", "Origin", "Tool", "usable_aliases"]
