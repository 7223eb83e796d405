"""The only reader of configuration: ``mcpServers`` files and ``truename.toml`` become frozen settings."""

from truename.config.access import Access, Issuer, KnownToken, SignIn
from truename.config.conventions import FoundConvention, convention_in, find_convention
from truename.config.interpolate import literal
from truename.config.load import load, parse
from truename.config.model import Config, ServerConfig, Settings, state_path
from truename.config.render import render
from truename.config.schema import json_schema
from truename.config.settings import verify

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
