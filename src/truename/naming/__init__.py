"""Map identities to names and back: styles, `project`, `resolve`, and explanations of names."""

from truename.naming.listing import ListedName, listing, renamed, utc_today
from truename.naming.project import DEFAULT_SERVER_NAME, project, reproject
from truename.naming.resolve import resolve
from truename.naming.style import STYLES, Style
from truename.naming.table import Explanation, NameTable, Passthrough, Resolution, WireName

__all__ = [
    "DEFAULT_SERVER_NAME",
    "STYLES",
    "Explanation",
    "ListedName",
    "NameTable",
    "Passthrough",
    "Resolution",
    "Style",
    "WireName",
    "listing",
    "project",
    "renamed",
    "reproject",
    "resolve",
    "utc_today",
]
