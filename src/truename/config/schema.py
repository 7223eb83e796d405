"""The JSON Schema of truename.toml, for editors: derived from the fields that the reader reads."""

from __future__ import annotations

from typing import Any, Final

from truename.config.fields import field_schema, table_schema
from truename.config.servers import MAX_KEY, SERVER, URLS
from truename.config.settings import SETTINGS

__all__ = ["LINT", "MIGRATION", "json_schema", "settings_schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final = {"type": "string"}
_OFF: Final = {
    "anyOf": [
        {"properties": {"disabled": {"const": True}}, "required": ["disabled"]},
        {"properties": {"enabled": {"const": False}}, "required": ["enabled"]},
    ]
}
_ADDRESSED: Final = {"anyOf": [{"required": [name]} for name in URLS]}
_SERVER: Final = {
    "type": "object",
    "properties": {key: {"description": row.meaning} for key, row in SERVER.items()}
    | {key: field_schema(SERVER[key]) for key in ("disabled", "enabled")},
    # The reader does not read an entry that is switched off.
    "if": _OFF,
    "else": {
        "properties": {key: field_schema(row) for key, row in SERVER.items()},
        "oneOf": [{"required": ["command"]}, _ADDRESSED],
    },
}
_TEXTS: Final = {"type": "array", "items": _TEXT}
LINT: Final = {
    "type": "object",
    "properties": {
        "sources": {**_TEXTS, "description": "Files and directories that are linted by default."},
        "beside": {
            **_TEXTS,
            "description": "Tools that run together with these: dumps, sources, locks, configurations.",
        },
        "exclude": {**_TEXTS, "description": "Files and directories that are not linted, as globs."},
        "baseline": {**_TEXT, "description": "File of findings that are accepted."},
    },
    "description": "Settings of `truename lint`.",
}
MIGRATION: Final = {
    "type": "object",
    "properties": {
        "exclude": {**_TEXTS, "description": "Files that a rename leaves alone, as globs."},
        "control_plane": {**_TEXTS, "description": "Tools that perform upgrades."},
        "record": {**_TEXT, "description": "Directory of decision records."},
        "protocol": {
            "type": "object",
            "properties": {
                "file": {**_TEXT, "description": "Files that state the protocol version, as a glob."},
                "pattern": {**_TEXT, "description": "Text by which they state it, with {version}."},
            },
            "additionalProperties": False,
            "description": "Where the protocol version is stated.",
        },
    },
    "additionalProperties": False,
    "description": "Settings of `truename rename`.",
}
_SERVERS: Final = {
    "type": "object",
    "propertyNames": {"pattern": r"\S", "maxLength": MAX_KEY},
    "additionalProperties": {"$ref": "#/$defs/server"},
}


def settings_schema() -> dict[str, Any]:
    """Return the schema of the settings alone: the ``truename`` key of an mcpServers file."""
    return table_schema(SETTINGS)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a whole truename.toml.

    It refuses only what the reader refuses too. The reader knows more (which ids are tool ids, which variables are
    set), and takes null for absent, which TOML cannot say and the schema does not offer.
    """
    settings = settings_schema()
    servers = {"mcpServers": "The servers, by key.", "servers": "The same as mcpServers, as VS Code calls it."}
    return {
        "$schema": _DIALECT,
        "$id": "truename.schema.json",
        "title": "truename.toml",
        "type": "object",
        "properties": {
            **settings["properties"],
            "lint": LINT,
            "migration": MIGRATION,
            "truename": {"$ref": "#/$defs/settings", "description": "The settings, if they are not at the top."},
            **{name: {"$ref": "#/$defs/servers", "description": what} for name, what in servers.items()},
        },
        "additionalProperties": False,
        "$defs": {"settings": settings, "servers": _SERVERS, "server": _SERVER},
    }
