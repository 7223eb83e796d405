"""In which context a session is: what the configuration says, and what a path or a header may add to it.

A client can choose among the contexts that the operator wrote down, and say what the operator left open. It cannot
contradict, and it cannot make itself a replay or a program's own step: those may run tools that models may not
(docs/gateway/contexts.md).
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError, excerpt
from truename.policy import Context

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Self

    from truename.config import Settings

__all__ = ["CONTEXT_HEADER", "ContextRefused", "Contexts", "unknown_context"]

CONTEXT_HEADER: Final = "x-truename-context"
_PLACES: Final = ("platform", "app")


class ContextRefused(ValueError):
    """A header asks for a context that cannot be had; ``status`` is the HTTP status that says so."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


def unknown_context(name: str, known: Collection[str]) -> str:
    """Return what to say of a context that no configuration names."""
    close = get_close_matches(name, known, 3)
    listed = ", ".join(sorted(known)) or "none"
    hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else f"Known are: {listed}."
    return f"Unknown context {excerpt(name)}. {hint}"


class Contexts:
    """The contexts of a configuration: the default one, and those with names, which leave to it what they don't say."""

    def __init__(self, default: Context, named: Mapping[str, Context]) -> None:
        self.default = default
        self.named = {
            name: Context(platform=one.platform or default.platform, app=one.app or default.app, origin=one.origin)
            for name, one in named.items()
        }

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the contexts of these settings."""
        return cls(settings.context, settings.contexts)

    def asked(self, name: str | None, headers: Collection[str] = ()) -> Context:
        """Return the context of a request: ``name`` stands in its path, ``headers`` are its context headers.

        Raises `ContextRefused`.

        >>> Contexts(Context(platform="ios"), {}).asked(None, ["app=payments"])
        Context(platform='ios', app='payments', origin='llm')
        >>> Contexts(Context(platform="ios"), {}).asked(None, ["platform=android"])
        Traceback (most recent call last):
            ...
        truename.gateway.views.contexts.ContextRefused: x-truename-context sets platform=android, but this path ...
        """
        if not headers:
            return self._named(name)
        if len(headers) > 1:
            message = f"Send {CONTEXT_HEADER} once."
            raise ContextRefused(message)
        (said,) = headers
        if "=" in said:
            return _filled(self._named(name), said)
        if name not in {None, said}:
            message = f"{CONTEXT_HEADER} asks for {excerpt(said)}, and the path for {name!r}. Leave one of them out."
            raise ContextRefused(message)
        return self._named(said)

    def _named(self, name: str | None) -> Context:
        if name is None:
            return self.default
        if name not in self.named:
            raise ContextRefused(unknown_context(name, self.named), 404)
        return self.named[name]


def _says_origin(text: str) -> bool:
    return any(part.partition("=")[0].strip() == "origin" for part in text.split(","))


def _filled(here: Context, text: str) -> Context:
    try:
        said = Context.parse(text)
    except ConfigError as error:
        message = f"{CONTEXT_HEADER}: {excerpt(error.key)}: {error.problem}. {error.remedy}"
        raise ContextRefused(message) from error
    if said.origin != here.origin and _says_origin(text):
        message = f"{CONTEXT_HEADER} cannot set the origin. Use a context of the configuration that has it."
        raise ContextRefused(message)
    found: dict[str, str] = {}
    for place in _PLACES:
        set_here, wanted = getattr(here, place), getattr(said, place)
        if set_here and wanted not in {"", set_here}:
            text = f"{CONTEXT_HEADER} sets {place}={excerpt(wanted)[1:-1]}, but this path has {set_here}."
            message = f"{text} Leave it out, or ask for another context."
            raise ContextRefused(message)
        found[place] = set_here or wanted
    return Context(platform=found["platform"], app=found["app"], origin=here.origin)
