"""The JSON Schema of truename.toml, made from the tables that the reader reads with: for editors, not for us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.config.credentials import AUTH
from truename.config.servers import ISOLATIONS, MAX_KEY, MAX_VERSION, STARTS, TYPES, URLS
from truename.config.settings import REFERENCE, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["json_schema", "settings_schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final = {"type": "string"}
_PLAIN: Final = {"type": ["string", "number", "boolean"]}
_WHOLE: Final = {"type": "integer", "minimum": 1}
_FILLED: Final = {"type": "string", "pattern": r"\S"}
_ADDRESS: Final = {"anyOf": [{"type": "string", "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^/\s]\S*$"}, REFERENCE]}
_NAME: Final = r"^[_-]*[A-Za-z0-9][A-Za-z0-9_-]*$"
_HEADER: Final = r"^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$"


def _any_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in word)


# As clients write them, in any case; editors offer the first kind.
_TYPE: Final = {
    "anyOf": [
        {"enum": sorted(set(TYPES.values()))},
        {"type": "string", "pattern": f"^(?:{'|'.join(map(_any_case, TYPES))})$"},
        REFERENCE,
    ]
}
_ENTRY: Final[Mapping[str, Mapping[str, Any]]] = {
    "command": {**_FILLED, "description": "The program to start: a server over standard input and output."},
    "args": {"type": "array", "items": _PLAIN, "description": "What the program is started with."},
    "env": {
        "type": "object",
        "additionalProperties": {"type": [*_PLAIN["type"], "null"]},
        "description": "Environment variables of the program; write secrets as ${NAME}.",
    },
    "cwd": {**_TEXT, "description": "The program's directory, relative to this file."},
    "url": {**_ADDRESS, "description": "The address of a server over HTTP."},
    **{
        name: {**_ADDRESS, "description": "As url, under the name that another client has for it."} for name in URLS[1:]
    },
    "headers": {
        "type": "object",
        "propertyNames": {"pattern": _HEADER},
        "additionalProperties": _PLAIN,
        "description": "What is sent with every request; write secrets as ${NAME}.",
    },
    "type": {**_TYPE, "description": "The transport, where the command or url does not say it."},
    "transport": {**_TYPE, "description": "As type."},
    "timeout": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Seconds that one call may take (above 3600: milliseconds).",
    },
    "tool_timeouts": {
        "type": "object",
        "additionalProperties": {"type": "number", "exclusiveMinimum": 0},
        "description": "Seconds that a call of one tool may take: by the server's own name, or a glob.",
    },
    "idempotent": {
        "type": "array",
        "items": _PLAIN,
        "description": "Tools whose calls may be sent again when a connection is lost: own names, or globs.",
    },
    "max_concurrent": {**_WHOLE, "description": "The most calls that run there at a time."},
    "max_waiting": {**_WHOLE, "description": "The most calls that wait for a place there."},
    "isolation": {
        "anyOf": [{"enum": list(ISOLATIONS)}, REFERENCE],
        "description": "Whether all clients share one connection to it, or each session or user has one of its own.",
    },
    "start": {
        "anyOf": [{"enum": list(STARTS)}, REFERENCE],
        "description": "eager: started with the gateway; lazy: at the first request to it.",
    },
    "idle_timeout": {
        "type": "number",
        "minimum": 0,
        "description": "Seconds without a request after which a lazy server is ended; 0: never.",
    },
    "auth": AUTH,
    "allow_redirects": {
        "type": "array",
        "items": _PLAIN,
        "description": "Other hosts, as host or host:port, to which its redirects are followed, without credentials.",
    },
    "integration": {
        "anyOf": [{"type": "string", "pattern": _NAME, "maxLength": 200}, REFERENCE],
        "description": "What the ids of its tools begin with, where its key does not say it: salesforce.",
    },
    "version": {
        # A text is a package's own version, which some clients note there; it says nothing here.
        "anyOf": [{**_WHOLE, "maximum": MAX_VERSION}, {"type": "string", "not": {"pattern": "^@?v?[0-9]+$"}}],
        "description": "The version of the integration in the ids of its tools: 2 gives salesforce@2.",
    },
    "versions": {
        "type": "object",
        "additionalProperties": {**_WHOLE, "maximum": MAX_VERSION},
        "description": "Versions of single tools, by the server's own names: create_lead = 3.",
    },
    "disabled": {
        "type": "boolean",
        "description": "Switched off: the server is not started, the entry not looked into.",
    },
    "enabled": {"type": "boolean", "description": "false switches the server off."},
}
_OFF: Final = {
    "anyOf": [
        {"properties": {"disabled": {"const": True}}, "required": ["disabled"]},
        {"properties": {"enabled": {"const": False}}, "required": ["enabled"]},
    ]
}
_ADDRESSED: Final = {"anyOf": [{"required": [name]} for name in URLS]}
_SERVER: Final = {
    "type": "object",
    "properties": {name: {"description": row["description"]} for name, row in _ENTRY.items()}
    | {name: _ENTRY[name] for name in ("disabled", "enabled")},
    # An entry that is switched off is not looked into, as the reader does not.
    "if": _OFF,
    "else": {"properties": dict(_ENTRY), "oneOf": [{"required": ["command"]}, _ADDRESSED]},
}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_LINT: Final = {
    "type": "object",
    "properties": {
        "sources": {**_TEXTS, "description": "What is linted where nothing is named."},
        "exclude": {**_TEXTS, "description": "What is left out."},
        "baseline": {**_TEXT, "description": "The file of findings that were there before."},
    },
    "description": "What truename lint reads.",
}
_MIGRATION: Final = {
    "type": "object",
    "properties": {
        "exclude": {**_TEXTS, "description": "Files that are history, as globs."},
        "control_plane": {**_TEXTS, "description": "Tools that perform upgrades."},
        "record": {**_TEXT, "description": "The directory of decision records."},
        "protocol": {
            "type": "object",
            "properties": {
                "file": {**_TEXT, "description": "The files that state the protocol version, a glob."},
                "pattern": {**_TEXT, "description": "How they state it: a text with {version}."},
            },
            "additionalProperties": False,
            "description": "Where the protocol version stands.",
        },
    },
    "additionalProperties": False,
    "description": "What truename rename reads.",
}
_SERVERS: Final = {
    "type": "object",
    "propertyNames": {"pattern": r"\S", "maxLength": MAX_KEY},
    "additionalProperties": {"$ref": "#/$defs/server"},
}


def settings_schema() -> dict[str, Any]:
    """Return the schema of the settings alone: the ``truename`` key of an mcpServers file."""
    properties = {name: {**setting.schema, "description": setting.what} for name, setting in SETTINGS.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a whole truename.toml.

    It refuses only what the reader refuses too. The reader knows more (which ids are tool ids, which variables are
    set), and takes null for absent, which TOML can't say and the schema does not offer.
    """
    settings = settings_schema()
    servers = {"mcpServers": "The servers, by key.", "servers": "As mcpServers, under the name that VS Code has."}
    return {
        "$schema": _DIALECT,
        "$id": "truename.schema.json",
        "title": "truename.toml",
        "type": "object",
        "properties": {
            **settings["properties"],
            "lint": _LINT,
            "migration": _MIGRATION,
            "truename": {"$ref": "#/$defs/settings", "description": "The settings, if not at the top."},
            **{name: {"$ref": "#/$defs/servers", "description": what} for name, what in servers.items()},
        },
        "additionalProperties": False,
        "$defs": {"settings": settings, "servers": _SERVERS, "server": _SERVER},
    }
