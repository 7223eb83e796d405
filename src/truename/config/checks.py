"""What a setting may be, wherever it comes from: a file or an option of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.errors import ConfigErrors, excerpt

if TYPE_CHECKING:
    from truename.config.model import Config

__all__ = ["verify", "wrong"]

_LONGEST: Final = 64


def wrong(setting: str, text: str) -> tuple[str, str] | None:
    """Say what is wrong with a text for this setting and what to do, or None.

    >>> wrong("token", "a b")
    ("it can't be sent as a bearer token", 'Use printable ASCII without spaces.')
    """
    if setting == "token":
        good = text and text.isascii() and text.isprintable() and " " not in text
        return None if good else ("it can't be sent as a bearer token", "Use printable ASCII without spaces.")
    if text.strip() and text.isprintable() and len(text) <= _LONGEST:
        return None
    what = "a server's name" if setting == "server_name" else "an alias"
    return f"{excerpt(text)} can't be {what}", "Write a short word."


def verify(config: Config) -> None:
    """Raise `ConfigError`, or a group of them, for settings that options made what no file may have."""
    settings = config.settings
    faults = ConfigErrors(str(config.path or "settings"))
    given = [("server_name", "server_name", settings.server_name)]
    given += [("aliases", f"aliases.{excerpt(key)[1:-1]}", alias) for key, alias in (settings.aliases or {}).items()]
    if settings.token is not None:
        given.append(("token", "token", settings.token))
    for setting, where, text in given:
        if found := wrong(setting, text):
            faults.add(where, *found)
    faults.raise_any()
