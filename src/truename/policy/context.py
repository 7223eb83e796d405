"""Where a session runs and on whose word: the platform, the app, and who wants the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NoReturn, get_args

from truename.errors import ConfigError, excerpt
from truename.identity import MAX_FOREIGN, lower_ascii

__all__ = ["ORIGINS", "CallOrigin", "Context"]

CallOrigin = Literal["llm", "replay", "internal"]
ORIGINS: Final[tuple[CallOrigin, ...]] = get_args(CallOrigin)
_WORDS: Final = ("platform", "app", "origin")
_LONGEST: Final = 4 * MAX_FOREIGN


def _refuse(key: str, problem: str, remedy: str) -> NoReturn:
    raise ConfigError(file="context", key=key, problem=problem, remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class Context:
    """The context of a session: ``platform`` and ``app`` ("" is unknown), and the ``origin`` of its calls.

    Origins are ``llm`` (a model asks), ``replay`` (a recording is run again) and ``internal`` (a program's own
    step). Texts are taken in any case and kept in lower case. Raises `ConfigError` for an origin that is not known:
    it must not count as one that may do more. Source: seed 003; rules D7 and D8 of its reading.

    >>> Context(platform="iOS", app="payments") == Context(platform="ios", app="Payments")
    True
    """

    platform: str = ""
    app: str = ""
    origin: CallOrigin = "llm"

    def __post_init__(self) -> None:
        for name in _WORDS:
            value = getattr(self, name)
            if not isinstance(value, str) or len(value) > MAX_FOREIGN:
                _refuse(name, f"it is no text of at most {MAX_FOREIGN:,} characters", "Write a platform, an app.")
            object.__setattr__(self, name, lower_ascii(value))
        if self.origin not in ORIGINS:
            _refuse("origin", f"{excerpt(self.origin)} is no origin", f"Use one of: {', '.join(ORIGINS)}.")

    @classmethod
    def parse(cls, text: str) -> Context:
        """Read ``platform=ios, app=payments``, strictly: what is not understood could be what limits the session.

        Raises `ConfigError` with the word that is wrong, unknown, empty or said twice.

        >>> Context.parse("Platform=IOS")
        Traceback (most recent call last):
            ...
        truename.errors.ConfigError: context: 'Platform': it is no word of a context. Use one of: platform, app, origin.
        >>> Context.parse("app = payments, platform=IOS").platform
        'ios'
        """
        if len(text) > _LONGEST:
            _refuse("", f"it is longer than {_LONGEST:,} characters", "Write platform=ios, app=payments.")
        said: dict[str, str] = {}
        for part in text.split(","):
            word, _, value = (piece.strip(" \t") for piece in part.partition("="))
            if word not in _WORDS:
                _refuse(excerpt(word), "it is no word of a context", f"Use one of: {', '.join(_WORDS)}.")
            if not value or not value.isprintable():
                _refuse(word, "it is empty, or can't be printed", f"Write {word}=VALUE, or leave it out.")
            if word in said:
                _refuse(word, "it stands twice", "Say it once.")
            said[word] = value
        return cls(**said)  # type: ignore[arg-type]
