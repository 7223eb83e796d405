"""Edit configuration files in place: parse them tolerantly, change single values, replace the file atomically.

This package knows formats, not clients. `Document` reads JSON with comments, TOML and YAML and edits their text;
`replace_file` saves a backup and then replaces the file.
"""

from truename.editing.document import Document, Quirk, apply_edits, cannot_edit, edit, find_edits
from truename.editing.lines import SourceLines
from truename.editing.merge import ABSENT, is_same_value, merge, value_at
from truename.editing.replacement import (
    Backup,
    backups,
    check_file,
    digest,
    remove_file,
    replace_file,
    unread_backups,
)
from truename.editing.syntax import KeyPath

__all__ = [
    "ABSENT",
    "Backup",
    "Document",
    "KeyPath",
    "Quirk",
    "SourceLines",
    "apply_edits",
    "backups",
    "cannot_edit",
    "check_file",
    "digest",
    "edit",
    "find_edits",
    "is_same_value",
    "merge",
    "remove_file",
    "replace_file",
    "unread_backups",
    "value_at",
]
