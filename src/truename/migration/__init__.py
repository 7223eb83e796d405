"""Change names: compare lists of tools, plan renames, apply them everywhere at once, and undo them."""

from truename.errors import MigrationError
from truename.migration.decision_records import FIELDS, OldNamesDecision, decision_record, next_number, record_file_name
from truename.migration.definitions import compare_schemas
from truename.migration.diff import Certainty, ChangeKind, ToolChange, ToolChanges, diff, renames_table
from truename.migration.lock import LOCK_FILE, MAX_LOCK, Lock, Pin, is_lock, pins_of
from truename.migration.plan import PlanRemark, RenamePlan, client_spellings, is_control_plane, plan
from truename.migration.protocol_versions import (
    DEFAULT_PATTERN,
    ProtocolStatement,
    bump,
    compare_versions,
    stated_versions,
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
from truename.migration.redirects import (
    IdentityPlan,
    LedgerEntry,
    plan_entries,
    plan_identities,
    record_entries,
    record_identities,
)
from truename.migration.rename_apply import AppliedRename, Originals, apply, recover, undo
from truename.migration.rename_maps import MAX_MAP, RenameProposal, propose_by_convention, propose_underscored, read_map
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
from truename.migration.search_patterns import Lexicon
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
    "client_spellings",
    "compare_schemas",
    "compare_versions",
    "decision_record",
    "diff",
    "is_control_plane",
    "is_lock",
    "next_number",
    "pins_of",
    "plan",
    "plan_entries",
    "plan_identities",
    "propose_by_convention",
    "propose_underscored",
    "read_map",
    "read_migration",
    "read_recording",
    "record_entries",
    "record_file_name",
    "record_identities",
    "recover",
    "rehearse",
    "renames_table",
    "replay",
    "rewrite",
    "stated_versions",
    "survey",
    "undo",
    "version_parts",
]
