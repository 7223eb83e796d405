"""How names change: what differs, a plan, its application everywhere at once, and the way back."""

from truename.errors import MigrationError
from truename.migration.apply import Applied, apply, recover, undo
from truename.migration.changes import Certainty, Changes, Kind, ToolChange
from truename.migration.control import is_control_plane
from truename.migration.diff import diff
from truename.migration.effects import INPUT, OUTPUT, Detail, Effect
from truename.migration.functions import FunctionTool, Gap
from truename.migration.identities import IdentityPlan, enter_identities, plan_identities
from truename.migration.lexicon import Lexicon
from truename.migration.lock import LOCK_FILE, MAX_LOCK, Lock, is_lock
from truename.migration.look import Change, Left
from truename.migration.maps import MAX_MAP, read_map
from truename.migration.originals import Originals
from truename.migration.pins import Pin, pinned
from truename.migration.plan import Plan, Remark, plan
from truename.migration.promises import Promise, enter, promises
from truename.migration.protocol import DEFAULT_PATTERN, Protocol, stated
from truename.migration.record import FIELDS, Decision, decision_record, file_name, next_number
from truename.migration.recording import MAX_RECORDING, BrokenLine, RecordedCall, Recorder, read_recording
from truename.migration.renames import renames_table
from truename.migration.replay import Replayed, rehearse, replay
from truename.migration.restyle import Proposal, conventional, underscored
from truename.migration.rewrite import REASONS, Edit, Leftover, Rewritten, rewrite
from truename.migration.schemas import compare_schemas
from truename.migration.settings import MigrationSettings, read_migration
from truename.migration.spellings import spellings
from truename.migration.survey import Survey, survey
from truename.migration.tree import HISTORY
from truename.migration.versions import bump, compare_versions, version_parts

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
    "Applied",
    "BrokenLine",
    "Certainty",
    "Change",
    "Changes",
    "Decision",
    "Detail",
    "Edit",
    "Effect",
    "FunctionTool",
    "Gap",
    "IdentityPlan",
    "Kind",
    "Left",
    "Leftover",
    "Lexicon",
    "Lock",
    "MigrationError",
    "MigrationSettings",
    "Originals",
    "Pin",
    "Plan",
    "Promise",
    "Proposal",
    "Protocol",
    "RecordedCall",
    "Recorder",
    "Remark",
    "Replayed",
    "Rewritten",
    "Survey",
    "ToolChange",
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
