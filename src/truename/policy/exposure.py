"""Decide for whom a tool is, and where: one rule for listing and for refusing (seed 003)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.catalog import Tool, unfolded
from truename.catalog.globs import ById, glob_error
from truename.conventions.classification import classify
from truename.conventions.metadata import FIELDS, NO_PATCH, MetadataPatch, read_fields, said_of, strictest
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

__all__ = ["Exposure", "read_metadata"]

_MOST: Final = 10_000
_REMEDY: Final = "Correct it; invalid metadata is not used."


def read_metadata(table: object, file: str = "metadata") -> Mapping[str, Mapping[str, Any]]:
    """Read the ``metadata`` table of a configuration: ``[metadata."phone/ios_*"]`` with fields of `Metadata`.

    What is returned can be read again, to the same. Raises `ConfigError` with the file and the key, or an
    `ExceptionGroup` of them, for a field that is not known, a value that is none, a glob that could fit no tool.

    >>> read_metadata({"phone/ios_*": {"platforms": ["IOS"]}})["phone/ios_*"]
    mappingproxy({'platforms': ('ios',)})
    >>> read_metadata({"phone/tap": {"is_for_lm": False}})
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: metadata: metadata.'phone/tap'.is_for_lm: it is no field of a tool's metadata. ...
    """
    if not isinstance(table, Mapping) or len(table) > _MOST:
        raise config_error(file, "metadata", f"it is no table of at most {_MOST:,}", _REMEDY)
    faults = ConfigErrors(file, _REMEDY)
    read = {glob: found for glob, entry in table.items() if (found := _entry(glob, entry, faults)) is not None}
    faults.raise_any()
    return MappingProxyType(read)


class Overrides:
    """The operator's word on tools' metadata, by what it is about."""

    def __init__(self, table: Mapping[str, Mapping[str, Any]]) -> None:
        self._table = ById({glob: MetadataPatch(values=values) for glob, values in table.items()})

    def __bool__(self) -> bool:
        return bool(self._table)

    def about(self, id: ToolId | Unfolded) -> MetadataPatch:
        """Return what is said of a tool: an exact id goes before globs, of several the strictest counts."""
        exact, globbed = (strictest(said for _, said in entries) for entries in self._table.about(id))
        return exact.over(globbed)


def _entry(glob: object, entry: object, faults: ConfigErrors) -> Mapping[str, Any] | None:
    where = f"metadata.{excerpt(str(glob))}"
    if problem := glob_error(glob) if isinstance(glob, str) else "it is no text":
        faults.add(where, f"it fits no tool: {problem}")
    if not isinstance(entry, Mapping) or len(entry) > len(FIELDS) * 8:
        faults.add(where, "it is no table of fields")
        return None
    said = read_fields(entry)
    for name, problem in said.faults.items():
        close = [] if name in FIELDS else get_close_matches(name, FIELDS, 1)
        faults.add(f"{where}.{name}", problem, f"Did you mean {close[0]!r}?" if close else "")
    return MappingProxyType(dict(said.values))


_PLACES: Final = ("platform", "app")


class _Subject(NamedTuple):
    id: ToolId
    origin: Origin
    said: MetadataPatch
    formerly: tuple[ToolId, ...]


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What is for which session: tools that are not for models, of another platform or of another app are not.

    ``metadata`` is the operator's word, fields of `Metadata` by id or glob on ids, and goes before the author's
    (`metadata_of`): an exact id before globs, of several globs the strictest. Under an id that was redirected to
    another, it limits the new one too. ``convention`` says what a name tells of platform and app where nobody says
    it; without one no name is taken apart.

    ``required`` is what a session has to say of itself: where it does not, tools bound to a platform (or an app)
    are not for it. Leave out what nobody tells in your setup. Raises `ConfigError`, or an `ExceptionGroup` of them.

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
        if strange := set(self.required) - set(_PLACES):
            remedy = f"Use of: {', '.join(_PLACES)}."
            raise ConfigError(file="exposure", key="required", problem=f"it has {sorted(strange)}", remedy=remedy)

    @classmethod
    def within(
        cls,
        contexts: Iterable[Context],
        *,
        convention: Convention | None = None,
        metadata: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> Exposure:
        """Return the exposure of a setup with these contexts: required is what at least one of them says."""
        known = tuple(contexts)
        required = tuple(name for name in _PLACES if any(getattr(one, name) for one in known))
        return cls(convention=convention, metadata=metadata, required=required)

    def metadata_of(self, tool: Tool | Call, formerly: tuple[ToolId, ...] = ()) -> Metadata:
        """Return the metadata that counts: the operator's word, the author's, then what the name tells."""
        return self._said(_subject(tool, formerly)).metadata

    def faults(self, tool: Tool | Call, formerly: tuple[ToolId, ...] = ()) -> Mapping[str, str]:
        """Return what can't be read of a tool's metadata, by field; those in what limits it hide the tool."""
        return self._said(_subject(tool, formerly)).faults

    def visible(self, tool: Tool | Call, context: Context, formerly: tuple[ToolId, ...] = ()) -> bool:
        """Tell whether a tool is for this context: to be listed, and to be run."""
        return self.refusal(tool, context, formerly) is None

    def check(self, tool: Tool | Call, context: Context, formerly: tuple[ToolId, ...] = ()) -> None:
        """Raise `NotAllowed` (``unsupported``) for a tool that is not for this context.

        The rule is ``platform``, ``app``, ``not_for_llm``, or ``metadata`` for what can't be read.
        """
        refusal = self.refusal(tool, context, formerly)
        if refusal is not None:
            raise NotAllowed(id=tool.id, rule=refusal.rule, decision=refusal.reason)

    def refusal(self, tool: Tool | Call, context: Context, formerly: tuple[ToolId, ...] = ()) -> Decision | None:
        """Return why a tool is not for this context, or None if it is.

        What is not for models is for replays and a program's own calls; another platform or app is for none.
        """
        said = self._said(_subject(tool, formerly))
        found = said.metadata
        if said.doubt:
            return _refused("metadata", f"its metadata can't be read ({said.doubt})")
        if context.platform not in found.platforms and self._counts("platform", context) and found.platforms:
            return _refused("platform", f"it works on {' and '.join(found.platforms)}, {_but(context.platform, 'on')}")
        if context.app != found.app and self._counts("app", context) and found.app:
            return _refused("app", f"it is for the app {found.app}, {_but(context.app, 'for')}")
        if not found.is_for_llm and context.origin == "llm":
            return _refused("not_for_llm", "it is not for models, but for replays and programs")
        return None

    def _counts(self, name: str, context: Context) -> bool:
        return bool(getattr(context, name)) or name in self.required

    def _said(self, subject: _Subject) -> MetadataPatch:
        if not self._overrides and self.convention is None:
            return subject.said
        said = self._overrides.about(subject.id).over(subject.said).over(self._named(subject.origin.name))
        # What was kept from somebody stays so under another id; what was opened was another tool.
        former: tuple[ToolId | Unfolded, ...] = (*subject.formerly, *unfolded(subject.id, subject.origin))
        before = [self._overrides.about(old) for old in former]
        return self._known(strictest([said, *before]) if before else said)

    def _named(self, name: str) -> MetadataPatch:
        if self.convention is None:
            return NO_PATCH
        found = classify(name, self.convention)
        told = {"platforms": (found.platform,) if found.platform else (), "app": lower_ascii(found.app)}
        return MetadataPatch(values={word: value for word, value in told.items() if value})

    def _known(self, said: MetadataPatch) -> MetadataPatch:
        """Return it with a fault for each platform and app that the convention does not know."""
        if self.convention is None:
            return said
        found, platforms, apps = said.metadata, self.convention.platforms, self.convention.apps
        strange = [word for word in found.platforms if platforms and word not in platforms]
        faults = {"platforms": f"{excerpt(strange[0])} is no platform of the convention"} if strange else {}
        if found.app and apps is not None and found.app not in map(lower_ascii, apps):
            faults["app"] = f"{excerpt(found.app)} is no app of the convention"
        return MetadataPatch(values=said.values, faults={**faults, **said.faults}) if faults else said


def _subject(tool: Tool | Call, formerly: tuple[ToolId, ...]) -> _Subject:
    if isinstance(tool, Tool):
        return _Subject(tool.id, tool.origin, said_of(tool), formerly)
    return _Subject(tool.id, tool.origin, tool.said, tool.formerly)


def _refused(rule: str, reason: str) -> Decision:
    return Decision(outcome="deny", rule=rule, reason=reason)


def _but(known: str, word: str) -> str:
    return f"and this session is {word} {known}" if known else "and this session does not say where it runs"
