"""Edit configuration files in place: read tolerantly, change only what differs, replace whole or not.

Nothing here knows a client. `Document` reads JSON with comments, TOML and YAML and edits them in place; `replace_file`
puts the result into the file's place, after a backup.
"""

from truename.editing.document import Document, Quirk, edited, edits, left_alone, replayed
from truename.editing.merge import ABSENT, merge, reached, same
from truename.editing.replacement import Backup, backups, check_file, digest, remove_file, replace_file
from truename.editing.syntax import KeyPath

__all__ = [
    "ABSENT",
    "Backup",
    "Document",
    "KeyPath",
    "Quirk",
    "backups",
    "check_file",
    "digest",
    "edited",
    "edits",
    "left_alone",
    "merge",
    "reached",
    "remove_file",
    "replace_file",
    "replayed",
    "same",
]
