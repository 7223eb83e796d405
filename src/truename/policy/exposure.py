"""Decide in which contexts a tool is listed and may be called, by the same rules for both.

The rules are those of docs/gateway/contexts.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.catalog import Tool, unfolded
from truename.catalog.globs import ById, glob_error
from truename.conventions.classification import classify
from truename.conventions.metadata import FIELDS, NO_PATCH, MetadataPatch, declared_metadata, read_fields, strictest
from truename.errors import ConfigError, ConfigErrors, NotAllowed, config_error, excerpt
from truename.identity import lower_ascii
from truename.policy.rules import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.catalog import Origin, Unfolded
    from truename.conventions.convention import Convention
    from truename.conventions.metadata import Metadata
    from truename.identity import ToolId
    from truename.policy.call import Call, Context

__all__ = ["Availability", "Exposure", "read_metadata"]

_MOST: Final = 10_000
_REMEDY: Final = "Correct it; invalid metadata is not used."


def read_metadata(table: object, file: str = "metadata") -> Mapping[str, Mapping[str, object]]:
    """Read the ``metadata`` table of a configuration: ``[metadata."phone/ios_*"]`` with fields of `Metadata`.

    Reading the result again returns an equal table. Raises `ConfigError` with the file and the key, or an
    `ExceptionGroup` of them, for an unknown field, an invalid value, or a glob that cannot match any tool.

    >>> read_metadata({"phone/ios_*": {"platforms": ["IOS"]}})["phone/ios_*"]
    mappingproxy({'platforms': ('ios',)})
    >>> read_metadata({"phone/tap": {"is_for_lm": False}})
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: metadata: metadata.'phone/tap'.is_for_lm: it is not a field of a tool's metadata. ...
    """
    if not isinstance(table, Mapping) or len(table) > _MOST:
        raise config_error(file, "metadata", f"it is not a table of at most {_MOST:,} entries", _REMEDY)
    errors = ConfigErrors(file, _REMEDY)
    read = {glob: found for glob, entry in table.items() if (found := _entry(glob, entry, errors)) is not None}
    errors.raise_any()
    return MappingProxyType(read)


class Overrides:
    """The metadata that the operator declares, indexed by tool id and glob."""

    def __init__(self, table: Mapping[str, Mapping[str, object]]) -> None:
        self._table = ById({glob: MetadataPatch(values=values) for glob, values in table.items()})

    def __bool__(self) -> bool:
        return bool(self._table)

    def about(self, id: ToolId | Unfolded) -> MetadataPatch:
        """Return the operator's metadata of a tool: an exact id overrides globs, the strictest glob counts."""
        exact, globbed = (strictest(patch for _, patch in entries) for entries in self._table.about(id))
        return exact.over(globbed)


def _entry(glob: object, entry: object, errors: ConfigErrors) -> Mapping[str, object] | None:
    where = f"metadata.{excerpt(str(glob))}"
    if problem := glob_error(glob) if isinstance(glob, str) else "it is not a text":
        errors.add(where, f"it cannot match any tool: {problem}")
    if not isinstance(entry, Mapping) or len(entry) > len(FIELDS) * 8:
        errors.add(where, "it is not a table of fields")
        return None
    patch = read_fields(entry)
    for name, problem in patch.errors.items():
        close = [] if name in FIELDS else get_close_matches(name, FIELDS, 1)
        errors.add(f"{where}.{name}", problem, f"Did you mean {close[0]!r}?" if close else "")
    return MappingProxyType(dict(patch.values))


_PLACES: Final = ("platform", "app")


class Availability(NamedTuple):
    """In which contexts a tool is available; ``doubt`` says why its metadata cannot be read."""

    platforms: frozenset[str]
    app: str
    is_for_llm: bool
    doubt: str


class _Subject(NamedTuple):
    id: ToolId
    origin: Origin
    declared: MetadataPatch
    formerly: tuple[ToolId, ...]


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """The rules for which tools a session may see and call, by platform, app and whether they are for models.

    ``metadata`` is the operator's: fields of `Metadata` by id or glob on ids. It overrides the author's
    (`metadata_of`); an exact id overrides globs, and of several globs the strictest counts. Restrictions of an id that
    was redirected also apply to its successor. With ``convention``, platform and app are derived from a tool's name if
    nobody declares them; without one, names are not parsed.

    ``required`` lists the fields that a session must provide: without a platform (or app) it gets no tools that are
    bound to one. Omit a field that no session of your setup provides. Raises `ConfigError`, or an `ExceptionGroup`.

    >>> from truename import Catalog
    >>> from truename.policy import Context
    >>> tools = Catalog.from_mcp({"phone": [{"name": "tap"}, {"name": "clear", "_meta": {"truename": {"app": "pay"}}}]})
    >>> exposure = Exposure(metadata={"phone/tap": {"is_for_llm": False}})
    >>> [exposure.visible(tool, Context(app="pay")) for tool in tools.values()]
    [False, True]
    >>> exposure.visible(tools["phone@1/tap@1"], Context(origin="replay"))
    True
    """

    convention: Convention | None = None
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    required: tuple[str, ...] = _PLACES
    _overrides: Overrides = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", read_metadata(self.metadata))
        object.__setattr__(self, "_overrides", Overrides(self.metadata))
        object.__setattr__(self, "required", tuple(self.required))
        if unknown := set(self.required) - set(_PLACES):
            remedy = f"Use only: {', '.join(_PLACES)}."
            raise ConfigError(file="exposure", key="required", problem=f"it has {sorted(unknown)}", remedy=remedy)

    @classmethod
    def within(
        cls,
        contexts: Iterable[Context],
        *,
        convention: Convention | None = None,
        metadata: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
    ) -> Exposure:
        """Build the exposure for a setup with these contexts: a field is required if at least one of them has it."""
        known = tuple(contexts)
        required = tuple(name for name in _PLACES if any(getattr(one, name) for one in known))
        return cls(convention=convention, metadata=metadata, required=required)

    def metadata_of(self, tool: Tool | Call, formerly: tuple[ToolId, ...] = ()) -> Metadata:
        """Return the effective metadata: the operator's, else the author's, else the one derived from the name."""
        return self._effective(_subject(tool, formerly)).metadata

    def errors(self, tool: Tool | Call, formerly: tuple[ToolId, ...] = ()) -> Mapping[str, str]:
        """Return the errors in a tool's metadata by field; an error in a field that restricts the tool hides it."""
        return self._effective(_subject(tool, formerly)).errors

    def availability(self, tool: Tool | Call, formerly: tuple[ToolId, ...] = ()) -> Availability:
        """Return all that `visible` and `refusal` depend on, but the context: equal tools are available in the same."""
        effective = self._effective(_subject(tool, formerly))
        found = effective.metadata
        return Availability(frozenset(found.platforms), found.app, found.is_for_llm, effective.doubt)

    def visible(self, tool: Tool | Call, context: Context, formerly: tuple[ToolId, ...] = ()) -> bool:
        """Return whether a tool may be listed and called in this context."""
        return self.refusal(tool, context, formerly) is None

    def check(self, tool: Tool | Call, context: Context, formerly: tuple[ToolId, ...] = ()) -> None:
        """Raise `NotAllowed` (``unsupported``) for a tool that is not available in this context.

        The rule is ``platform``, ``app``, ``not_for_llm``, or ``metadata`` for metadata that cannot be read.
        """
        refusal = self.refusal(tool, context, formerly)
        if refusal is not None:
            raise NotAllowed(id=tool.id, rule=refusal.rule, decision=refusal.reason)

    def refusal(self, tool: Tool | Call, context: Context, formerly: tuple[ToolId, ...] = ()) -> Decision | None:
        """Return why a tool is not available in this context; None if it is.

        A tool that is not for models is still available to replays and a program's own calls. A tool for another
        platform or app is available to nobody.
        """
        effective = self._effective(_subject(tool, formerly))
        found = effective.metadata
        if effective.doubt:
            return _refused("metadata", f"its metadata cannot be read ({effective.doubt})")
        if context.platform not in found.platforms and self._counts("platform", context) and found.platforms:
            return _refused(
                "platform", f"it works on {' and '.join(found.platforms)}, {_but('platform', context.platform, 'on')}"
            )
        if context.app != found.app and self._counts("app", context) and found.app:
            return _refused("app", f"it is for the app {found.app}, {_but('app', context.app, 'for')}")
        if not found.is_for_llm and context.origin == "llm":
            return _refused("not_for_llm", "it is not for models, but for replays and programs")
        return None

    def _counts(self, name: str, context: Context) -> bool:
        return bool(getattr(context, name)) or name in self.required

    def _effective(self, subject: _Subject) -> MetadataPatch:
        if not self._overrides and self.convention is None:
            return subject.declared
        present = self._overrides.about(subject.id).over(subject.declared).over(self._named(subject.origin.name))
        # Restrictions also apply under former ids; permissions do not, since they were given to another tool.
        former: tuple[ToolId | Unfolded, ...] = (*subject.formerly, *unfolded(subject.id, subject.origin))
        before = [self._overrides.about(old) for old in former]
        return self._known(strictest([present, *before]) if before else present)

    def _named(self, name: str) -> MetadataPatch:
        if self.convention is None:
            return NO_PATCH
        found = classify(name, self.convention)
        derived = {"platforms": (found.platform,) if found.platform else (), "app": lower_ascii(found.app)}
        return MetadataPatch(values={name: value for name, value in derived.items() if value})

    def _known(self, patch: MetadataPatch) -> MetadataPatch:
        """Add an error for each platform and app that the convention does not define."""
        if self.convention is None:
            return patch
        found, platforms, apps = patch.metadata, self.convention.platforms, self.convention.apps
        unknown = [name for name in found.platforms if platforms and name not in platforms]
        errors = {"platforms": f"{excerpt(unknown[0])} is not a platform of the convention"} if unknown else {}
        if found.app and apps is not None and found.app not in map(lower_ascii, apps):
            errors["app"] = f"{excerpt(found.app)} is not an app of the convention"
        return MetadataPatch(values=patch.values, errors={**errors, **patch.errors}) if errors else patch


def _subject(tool: Tool | Call, formerly: tuple[ToolId, ...]) -> _Subject:
    if isinstance(tool, Tool):
        return _Subject(tool.id, tool.origin, declared_metadata(tool), formerly)
    return _Subject(tool.id, tool.origin, tool.declared, tool.formerly)


def _refused(rule: str, reason: str) -> Decision:
    return Decision(outcome="deny", rule=rule, reason=reason)


def _but(field: str, known: str, word: str) -> str:
    return f"and this session is {word} {known}" if known else f"and this session has no {field}"
