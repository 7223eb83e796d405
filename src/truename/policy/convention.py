"""A naming convention: what a team's tool names have to be, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from truename.errors import excerpt
from truename.naming.suggest import Suggester
from truename.policy.clauses import CLAUSES, Suppression, step
from truename.policy.coherence import contradictions
from truename.policy.formats import CASINGS, SEPARATORS, characters_of, format_of
from truename.policy.gathering import Faults, fault, nearest
from truename.policy.globs import Globs, fits
from truename.policy.presets import PRESETS

if TYPE_CHECKING:
    from truename.policy.clauses import Note
    from truename.policy.finding import Rule, Severity
    from truename.policy.formats import Format

__all__ = ["Convention", "Suppression", "preset_table"]

_WHERE: Final = "convention"
_REMEDY: Final = "Mend it; a convention that can't be read whole is not used."
_MERGED: Final = ("categories", "owners", "families", "severities")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Convention:
    """What names have to be. The defaults ask for nothing but what every server must keep to (the preset ``mcp``).

    ``clients`` are the dialects that have to accept every name; ``characters`` (``A-Za-z0-9_``) and ``max_length``
    hold whatever the clients. ``categories`` maps a category to its format (``{app}_{platform}_{verbNoun}``), whose
    parts are joined by ``separator``; without categories ``casing`` says how a whole name is written. ``apps`` are the
    known ones (None: any word in lower case). ``owners`` maps names, apps, globs or formats to teams, and ``team`` is
    the one whose tools these are; ``reserved`` are globs on names that only their owner may declare, and formats of
    categories, which reserve their names from a ``team`` that ``owners`` doesn't name. ``unique`` says
    whether a name is given once on each server, or everywhere. ``families`` maps a family to globs on names (seed
    002): no name is split for it. ``severities`` says how bad a rule's findings are here (None: the rule is off).
    Rules are meant by code or name. ``file`` is where it was read, for messages.

    Raises `ConfigError` with the key for what is not understood, or an `ExceptionGroup` where there are several.

    >>> Convention.of("trailblaze", apps=["myapp"], platforms=["IOS"]).platforms
    ('ios',)
    >>> Convention(categories={"org": "org_{verb}"}, separator="_")
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: convention: convention.categories.org: '{verb}' is none of {app}, {platform}, ...
    """

    preset: str = "mcp"
    clients: tuple[str, ...] = ()
    characters: str = str(PRESETS["mcp"]["characters"])
    max_length: int = int(PRESETS["mcp"]["max_length"])
    separator: str = ""
    casing: str = ""
    categories: Mapping[str, str] = field(default_factory=_nothing)
    apps: tuple[str, ...] | None = None
    platforms: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=_nothing)
    team: str = ""
    reserved: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    version_suffix: str = ""
    device_words: tuple[str, ...] = ()
    unique: Literal["server", "everywhere"] = "server"
    families: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    severities: Mapping[str, Severity | None] = field(default_factory=_nothing)
    suppressions: tuple[Suppression, ...] = ()
    baseline: str = ""
    file: str = field(default="", compare=False)

    @classmethod
    def of(cls, preset: str, **changes: Any) -> Self:
        """Return a preset with changes: lists and texts take the preset's place, tables are joined with its own.

        Raises as the class does, and `ConfigError` for a preset that is not known.

        >>> sorted(Convention.of("trailblaze", categories={"mobile": "mobile_{verbNoun}", "org": False}).categories)
        ['app', 'app_platform', 'mobile', 'org_platform', 'platform', 'universal']
        """
        return cls(**preset_table(preset, changes), preset=preset)

    def __post_init__(self) -> None:
        faults, separator = Faults(self.file or _WHERE, _REMEDY), self.separator
        for one in fields(self):
            if one.name in CLAUSES:
                value = CLAUSES[one.name].read(getattr(self, one.name), _below(one.name, faults))
                # What can't be read counts as not said, so that the rest can be looked at too.
                plain = _nothing() if one.default is MISSING else one.default
                object.__setattr__(self, one.name, plain if value is None else value)
        # Without the separator that was meant, every format would seem to be wrong.
        for key, problem, remedy in contradictions(self) if self.separator == separator else ():
            faults.add(f"{_WHERE}.{key}", problem, remedy)
        faults.raise_any()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Kept, for it is asked for each name where what names say is remembered.
        return hash((self.preset, self.clients, self.apps, self.platforms, self.separator, *self.categories.items()))

    @cached_property
    def formats(self) -> tuple[Format, ...]:
        """The formats of the categories, the one that asks for most first."""
        found = (format_of(name, text, self.separator) for name, text in self.categories.items())
        return tuple(sorted(found, key=lambda one: (one.precision, one.category), reverse=True))

    @cached_property
    def word_casing(self) -> str:
        """How a tool's own words are written; "" if any casing will do."""
        return self.formats[0].casing if self.formats else self.casing

    @cached_property
    def taken(self) -> frozenset[str]:
        """Words that can't be an app, for they are something else at the beginning of a name."""
        literals = {part.word.lower() for one in self.formats for part in one.parts if part.kind == "literal"}
        return frozenset({*self.platforms, *literals})

    @cached_property
    def known_apps(self) -> Mapping[str, str]:
        """The apps by their ids in lower case, without those that can't be one."""
        return {app.lower(): app for app in self.apps or () if app.lower() not in self.taken}

    @cached_property
    def alphabet(self) -> frozenset[str] | None:
        """The characters that a name may have, None for any; where a casing is asked for, it judges capitals."""
        if not self.characters:
            return None
        found = characters_of(self.characters)
        letters = "".join(char for char in found if char.isalpha())
        return found.union(letters.upper(), letters.lower()) if self.word_casing else found

    @cached_property
    def near_parts(self) -> Suggester:
        """What finds the known app, platform or other prefix that somebody could have meant."""
        return Suggester({*(self.apps or ()), *self.taken})

    @cached_property
    def foreign(self) -> frozenset[str]:
        """The separators that have no place in a name: neither between its parts nor inside of its words."""
        inside = CASINGS[self.word_casing].inside if self.word_casing else ""
        return frozenset(SEPARATORS).difference(self.separator, inside) if self.separator else frozenset()

    def is_part(self, word: str) -> bool:
        """Tell whether a word can be a part of a name: no separator in it would end that part.

        >>> Convention.of("trailblaze").is_part("my_app"), Convention(separator=".").is_part("myapp")
        (False, True)
        """
        return self.foreign.union(self.separator).isdisjoint(word)

    def owner(self, name: str, category: str = "") -> str:
        """Return the team that owns a name of this category, "" if no entry fits.

        An entry is a name, or what stands before the first separator of it (``payments``); a glob (``ios_*``, the
        longest that fits); or a category's format, which is all names of that category. They are asked in this order.
        """
        front = name.partition(self.separator)[0] if self.separator else name
        plain = (self.owners.get(key, "") for key in (name, front))
        return next(filter(None, plain), "") or self._owner_by_pattern(name, category)

    def _owner_by_pattern(self, name: str, category: str) -> str:
        found = self._patterns.first(name)
        return self.owners.get(found, "") or self.owners.get(self.categories.get(category, ""), "")

    @cached_property
    def _patterns(self) -> Globs:
        return Globs(sorted(self.owners, key=lambda key: (-len(key), key)))

    def is_reserved(self, name: str, category: str = "", app: str = "") -> bool:
        """Tell whether only its owner may declare a name of this category and app.

        A format reserves its category only where a ``team`` is named, and the prefix of an app only if the convention
        lists the app and it isn't the team's own.
        """
        if self._reserving.first(name):
            return True
        if not self.team or not category or self.categories.get(category) not in self.reserved:
            return False
        return not app or (app.lower() in self.known_apps and app.lower() != self.team.lower())

    @cached_property
    def _reserving(self) -> Globs:
        return Globs(entry for entry in self.reserved if "{" not in entry)

    def family(self, name: str) -> str:
        """Return the family of a name, by the first glob that fits; "" if there is none."""
        return next((family for family, globs in self.families.items() if any(fits(one, name) for one in globs)), "")

    def severity(self, rule: Rule) -> Severity | None:
        """Return how bad the findings of a rule are here; None if it is off."""
        for word in (rule.code, rule.name):
            if word in self.severities:
                return self.severities[word]
        return rule.severity

    @property
    def named_rules(self) -> tuple[tuple[str, str], ...]:
        """Every rule that it names, each with the key where it does: some may not exist."""
        severities = ((f"{_WHERE}.severities{step(word)}", word) for word in self.severities)
        entries = ((f"{_WHERE}.suppressions[{i}].rule", one.rule) for i, one in enumerate(self.suppressions))
        return (*severities, *entries)


def _below(clause: str, faults: Faults) -> Note:
    def note(where: str, problem: str, remedy: str) -> None:
        faults.add(f"{_WHERE}.{clause}{where}", problem, remedy)

    return note


def preset_table(name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a preset's table with changes laid over it. Raises `ConfigError` for a preset that is not known."""
    if name not in PRESETS:
        raise fault(_WHERE, f"{_WHERE}.preset", f"{excerpt(str(name))} is no preset", nearest(name, PRESETS))
    table = {**PRESETS[name], **changes}
    for key in _MERGED:
        given, own = changes.get(key), PRESETS[name].get(key)
        if isinstance(given, Mapping) and isinstance(own, Mapping):
            table[key] = {**own, **given}
    if isinstance(table.get("categories"), Mapping):
        table["categories"] = {key: text for key, text in table["categories"].items() if text is not False}
        if "reserved" in PRESETS[name] and "reserved" not in changes:
            # A category stays reserved where its format is changed, and is not where it is left out.
            own = PRESETS[name]["categories"]
            table["reserved"] = [text for key, text in table["categories"].items() if key in own]
    return table
