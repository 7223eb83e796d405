"""Which keys a server's entry may have: those that mean something here, and those that only clients understand."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["KNOWN", "OF_CLIENTS", "misspelt", "strange"]

KNOWN: Final = frozenset(
    {
        *("command", "args", "env", "cwd", "url", "httpUrl", "serverUrl", "headers", "type", "transport"),
        *("timeout", "tool_timeouts", "idempotent", "max_concurrent", "max_waiting", "isolation", "start"),
        *("idle_timeout", "auth", "allow_redirects", "integration", "version", "versions", "disabled", "enabled"),
    }
)
# Read in the documents and sources of clients: what they write into an entry, and who starts the server need not know.
OF_CLIENTS: Final = frozenset(
    {
        *("alwaysAllow", "autoApprove", "available_tools", "disabledAutoApproveTools", "disabledTools"),
        *("disabled_tools", "enabled_tools", "excludeTools", "includeTools", "tools", "toolFilter", "trust"),
        *("name", "title", "display_name", "description", "icon", "iconUrl", "logoUrl", "tags", "key", "id", "gallery"),
        *("cmd", "uri", "baseUrl", "working_directory", "isActive", "bundled", "source", "settings", "dev", "sandbox"),
        *("environment", "env_vars", "envs", "env_keys", "envFile", "inputs", "apiKey", "requestOptions"),
        *("http_headers", "env_http_headers", "bearer_token_env_var", "headersHelper", "requiresOAuth"),
        *("oauth", "oauth_client_id", "oauth_resource", "scopes", "authProviderType", "targetAudience"),
        *("targetServiceAccount", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "toolTimeoutMs"),
        *("initTimeout", "networkTimeout", "longRunning", "required", "supports_parallel_tool_calls", "alwaysLoad"),
        *("default_tools_approval_mode", "serverInstructions", "chatMenu", "provider", "providerUrl", "registryUrl"),
        *("note", "notes", "comment", "comments", "metadata", "_meta"),
    }
)
_COMMENTS: Final = ("_", "$", "/", "#", "x-")
_LONGEST: Final = 64
# Of short words, many are alike by chance.
_LIKE: Final = 0.75


def strange(words: Iterable[str]) -> Iterator[str]:
    """Yield the keys of an entry that nobody is known to understand; those that are comments are left out.

    >>> list(strange(["command", "timeuot", "alwaysAllow", "_comment"]))
    ['timeuot']
    """
    yield from (word for word in words if word not in KNOWN | OF_CLIENTS and not word.startswith(_COMMENTS))


def misspelt(word: str) -> str:
    """Return the key that somebody may have meant, "" where none is near.

    >>> misspelt("timeuot"), misspelt("comand"), misspelt("colour")
    ('timeout', 'command', '')
    """
    return next(iter(get_close_matches(word[:_LONGEST], sorted(KNOWN | OF_CLIENTS), 1, _LIKE)), "")
