"""Keep state in one database, whose tables belong to their owners."""

from truename.storage.check import StateReport, accept_state, check_state, known_revision, present_revision
from truename.storage.database import Database, Transaction
from truename.storage.former import FORMER_REMEDY, import_tables
from truename.storage.later_tables import refuse_later_tables
from truename.storage.location import StateLocation, is_server_url
from truename.storage.opening import open_database
from truename.storage.patience import PATIENCE
from truename.storage.revision_file import Revision
from truename.storage.schema import Schema
from truename.storage.shared_store import SharedStore
from truename.storage.statements import AT_ONCE, in_parts, insert, select, select_among, upsert
from truename.storage.transfer import CopiedState, compare_states, copy_state

__all__ = [
    "AT_ONCE",
    "FORMER_REMEDY",
    "PATIENCE",
    "CopiedState",
    "Database",
    "Revision",
    "Schema",
    "SharedStore",
    "StateLocation",
    "StateReport",
    "Transaction",
    "accept_state",
    "check_state",
    "compare_states",
    "copy_state",
    "import_tables",
    "in_parts",
    "insert",
    "is_server_url",
    "known_revision",
    "open_database",
    "present_revision",
    "refuse_later_tables",
    "select",
    "select_among",
    "upsert",
]
