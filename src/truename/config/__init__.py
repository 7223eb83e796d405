"""The only reader of configuration: ``mcpServers`` files and ``truename.toml`` become frozen settings."""

from truename.config.checks import verify
from truename.config.load import load, parse
from truename.config.model import Config, ServerConfig, Settings, state_path

__all__ = ["Config", "ServerConfig", "Settings", "load", "parse", "state_path", "verify"]
