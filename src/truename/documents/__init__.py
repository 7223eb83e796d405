"""The text of a configuration file: read tolerantly, edited where it says something else, and replaced whole or not.

Nothing here knows a client. `Document` reads JSON with comments, TOML and YAML and edits them in place; `replace_file`
puts the result into the file's place, after a backup.
"""

from truename.documents.backup import Backup, backups, digest
from truename.documents.document import Document, Quirk, left_alone
from truename.documents.editing import edited, edits, replayed
from truename.documents.merging import ABSENT, merge, reached, same
from truename.documents.spans import Where
from truename.documents.writing import check_file, remove_file, replace_file

__all__ = [
    "ABSENT",
    "Backup",
    "Document",
    "Quirk",
    "Where",
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
