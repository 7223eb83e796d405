"""The configuration: ``mcpServers`` files and ``truename.toml`` are read into frozen settings."""

from truename.config.access import Access, Issuer, KnownToken, SignIn
from truename.config.conventions import FoundConvention, convention_in, find_convention
from truename.config.interpolate import literal
from truename.config.load import load, parse
from truename.config.model import Config, state_path, verify
from truename.config.render import render
from truename.config.schema import json_schema
from truename.config.servers import ServerConfig
from truename.config.settings import Settings

__all__ = [
    "Access",
    "Config",
    "FoundConvention",
    "Issuer",
    "KnownToken",
    "ServerConfig",
    "Settings",
    "SignIn",
    "convention_in",
    "find_convention",
    "json_schema",
    "literal",
    "load",
    "parse",
    "render",
    "state_path",
    "verify",
]
