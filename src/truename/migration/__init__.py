"""Change names: compare lists of tools, plan renames, apply them everywhere at once, and undo them."""

from truename.errors import MigrationError
from truename.migration.adr import FIELDS, OldNamesDecision, decision_record, file_name, next_number
from truename.migration.definitions import compare_schemas
from truename.migration.diff import Certainty, ChangeKind, ToolChange, ToolChanges, diff, renames_table
from truename.migration.lexicon import Lexicon
from truename.migration.lock import LOCK_FILE, MAX_LOCK, Lock, Pin, is_lock, pinned
from truename.migration.plan import PlanRemark, RenamePlan, is_control_plane, plan, spellings
from truename.migration.protocol_versions import (
    DEFAULT_PATTERN,
    ProtocolStatement,
    bump,
    compare_versions,
    stated,
    version_parts,
)
from truename.migration.recordings import (
    MAX_RECORDING,
    BrokenLine,
    CallRecorder,
    RecordedCall,
    ReplayedCall,
    read_recording,
    rehearse,
    replay,
)
from truename.migration.redirects import IdentityPlan, LedgerEntry, enter, enter_identities, plan_identities, promises
from truename.migration.rename_apply import AppliedRename, Originals, apply, recover, undo
from truename.migration.rename_maps import MAX_MAP, RenameProposal, conventional, read_map, underscored
from truename.migration.rename_survey import HISTORY, FileRewrite, LeftMention, Survey, survey
from truename.migration.rewrite import (
    REASONS,
    FunctionNameSlot,
    FunctionTool,
    Leftover,
    RewrittenText,
    TextEdit,
    rewrite,
)
from truename.migration.schema_changes import INPUT, OUTPUT, ChangeDetail, ChangeEffect
from truename.migration.settings import MigrationSettings, read_migration

__all__ = [
    "DEFAULT_PATTERN",
    "FIELDS",
    "HISTORY",
    "INPUT",
    "LOCK_FILE",
    "MAX_LOCK",
    "MAX_MAP",
    "MAX_RECORDING",
    "OUTPUT",
    "REASONS",
    "AppliedRename",
    "BrokenLine",
    "CallRecorder",
    "Certainty",
    "ChangeDetail",
    "ChangeEffect",
    "ChangeKind",
    "FileRewrite",
    "FunctionNameSlot",
    "FunctionTool",
    "IdentityPlan",
    "LedgerEntry",
    "LeftMention",
    "Leftover",
    "Lexicon",
    "Lock",
    "MigrationError",
    "MigrationSettings",
    "OldNamesDecision",
    "Originals",
    "Pin",
    "PlanRemark",
    "ProtocolStatement",
    "RecordedCall",
    "RenamePlan",
    "RenameProposal",
    "ReplayedCall",
    "RewrittenText",
    "Survey",
    "TextEdit",
    "ToolChange",
    "ToolChanges",
    "apply",
    "bump",
    "compare_schemas",
    "compare_versions",
    "conventional",
    "decision_record",
    "diff",
    "enter",
    "enter_identities",
    "file_name",
    "is_control_plane",
    "is_lock",
    "next_number",
    "pinned",
    "plan",
    "plan_identities",
    "promises",
    "read_map",
    "read_migration",
    "read_recording",
    "recover",
    "rehearse",
    "renames_table",
    "replay",
    "rewrite",
    "spellings",
    "stated",
    "survey",
    "underscored",
    "undo",
    "version_parts",
]
