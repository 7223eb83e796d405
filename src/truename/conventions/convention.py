"""Represent a team's naming convention as a value, and read it strictly from a configuration: all errors at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property
from string import digits
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

from truename.catalog.globs import Globs, fits
from truename.conventions.clauses import CASINGS, CLAUSES, SEPARATORS, Suppression, characters_of, format_of, step
from truename.errors import ConfigError, ConfigErrors, config_error, excerpt, spelling_remedy
from truename.naming.suggest import NameSuggester

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.conventions.clauses import Format, Note
    from truename.conventions.findings import Rule, Severity

__all__ = ["CONVENTION", "PRESETS", "Convention", "Suppression", "plain_convention", "read_convention"]

_TRAILBLAZE: Final = {
    "universal": "{verbNoun}",
    "platform": "{platform}_{verbNoun}",
    "org": "org_{verbNoun}",
    "org_platform": "org_{platform}_{verbNoun}",
    "app": "{app}_{verbNoun}",
    "app_platform": "{app}_{platform}_{verbNoun}",
}

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        # The default: the rules of the MCP specification (SEP-986; specification of 2025-11-25, "Tool Names").
        "mcp": {
            "characters": "A-Za-z0-9_.-",
            "max_length": 128,
        },
        # Trailblaze: several teams, one catalogue, names with owner and platform. The maximum leaves a margin
        # below the providers' 64 characters.
        "trailblaze": {
            "clients": ["openai"],
            "characters": "A-Za-z0-9_",
            "separator": "_",
            "categories": _TRAILBLAZE,
            # "Reserved Names": primitives, platforms, the organisation and app prefixes are owned centrally.
            "reserved": [*_TRAILBLAZE.values()],
            "platforms": ["ios", "android"],
            "version_suffix": "_v{n}",
            "device_words": ["phone", "tablet"],
            "max_length": 60,
            "unique": "everywhere",
        },
        # One name for every layer, which every provider accepts unchanged; no dots.
        "provider-safe": {
            "clients": [
                "anthropic",
                "openai",
                "azure-openai",
                "google-gemini",
                "google-vertex",
                "bedrock-converse",
                "mistral",
                "groq",
            ],
            "characters": "a-z0-9_",
            "separator": "_",
            "casing": "snake",
            "max_length": 64,
        },
        # Names that become tool and suite of a canonical id unchanged (specification of identity, section 1).
        "canonical": {
            "characters": "a-z0-9_.-",
            "casing": "canonical",
            "max_length": 128,
        },
    }
)


class Contradiction(NamedTuple):
    """A clause that contradicts others: its key, the problem, and the remedy ("" for the default)."""

    key: str
    problem: str
    remedy: str = ""


def contradictions(convention: Convention) -> Iterator[Contradiction]:
    """Yield the contradictions between the clauses of a convention."""
    found = [*_of_owners(convention), *_of_formats(convention)]
    yield from found
    # The other checks depend on the formats, so they need a convention without errors in these.
    for look in () if found else (_of_version, _of_characters, _of_platforms):
        yield from look(convention)


def _of_owners(convention: Convention) -> Iterator[Contradiction]:
    for key in convention.owners:
        if "{" in key and key not in convention.categories.values():
            yield Contradiction(f"owners{step(key)}", "no category has this format", "Copy one of the formats.")
    for number, entry in enumerate(convention.reserved):
        if "{" in entry and entry not in convention.categories.values():
            yield Contradiction(f"reserved[{number}]", "no category has this format", "Copy one of the formats.")


def _of_formats(convention: Convention) -> Iterator[Contradiction]:
    casings = {convention.casing} - {""}
    for name, text in convention.categories.items():
        try:
            casings.add(format_of(name, text, convention.separator).casing)
        except ValueError as error:
            yield Contradiction(f"categories{step(name)}", str(error))
    if len(casings) > 1:
        yield Contradiction("casing", "the formats of the categories have another casing", "Use one casing.")


def _of_version(convention: Convention) -> Iterator[Contradiction]:
    if others := convention.foreign.intersection(convention.version_suffix):
        problem = f"{''.join(others)!r} is not allowed elsewhere in names"
        yield Contradiction("version_suffix", problem, f"Begin it with {convention.separator!r}.")


def _of_characters(convention: Convention) -> Iterator[Contradiction]:
    try:
        characters_of(convention.characters)
    except ValueError as error:
        yield Contradiction("characters", str(error))
        return
    if lacking := _lacking(convention):
        problem = f"{excerpt(convention.characters)} lacks {lacking}, which names need under this convention"
        yield Contradiction("characters", problem, "Add it, or change separator, casing or version_suffix.")


def _lacking(convention: Convention) -> str:
    """Return the characters that names need and the convention does not allow, as text; "" if none."""
    if convention.alphabet is None:
        return ""
    head, _, _ = convention.version_suffix.partition("{")
    inside = CASINGS[convention.word_casing].inside if convention.word_casing else ""
    # If several separators are legal inside words, none of them is required.
    needed = {*convention.separator, *head, *(inside if len(inside) == 1 else "")}
    lacking = [repr(char) for char in sorted(needed - convention.alphabet)]
    return " and ".join(lacking) or ("digits" if head and not convention.alphabet.issuperset(digits) else "")


def _of_platforms(convention: Convention) -> Iterator[Contradiction]:
    if not any(part.kind == "platform" for one in convention.formats for part in one.parts):
        return
    for number, word in enumerate(convention.platforms):
        if not convention.is_part(word):
            problem = f"{excerpt(word)} cannot be a part of a name, because it contains a separator"
            yield Contradiction(
                f"platforms[{number}]", problem, "Write it as one word, here and in the tools' metadata."
            )


_WHERE: Final = "convention"
_REMEDY: Final = "Correct it; an invalid convention is not used."
_MERGED: Final = ("categories", "owners", "families", "severities")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Convention:
    """A naming convention. The defaults are the rules of the MCP specification only (the preset ``mcp``).

    ``clients`` are the dialects that must accept every name; ``characters`` (``A-Za-z0-9_``) and ``max_length`` apply
    in addition. ``categories`` maps a category to its format (``{app}_{platform}_{verbNoun}``), whose parts are joined
    by ``separator``; without categories, ``casing`` is the casing of whole names. ``apps`` are the known apps (None:
    any word in lower case). ``owners`` maps names, apps, globs or formats to teams; ``team`` is the default owner of
    the tools. ``reserved`` are globs on names that only their owner may declare, and formats of categories whose names
    a ``team`` may declare only if ``owners`` assigns them to it. ``unique`` says whether names must be unique on each
    server or everywhere. ``families`` maps a family to globs on names. ``severities`` sets the severity of
    rules (None: off). Rules are identified by code or name. ``file`` is the source, for messages.

    Raises `ConfigError` with the key for an invalid value, or an `ExceptionGroup` for several.

    >>> Convention.of("trailblaze", apps=["myapp"], platforms=["IOS"]).platforms
    ('ios',)
    >>> Convention(categories={"org": "org_{verb}"}, separator="_")
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: convention: convention.categories.org: '{verb}' is not one of {app}, {platform}, ...
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
    def of(cls, preset: str, **changes: object) -> Self:
        """Return a preset with changes: lists and texts replace the preset's, tables are merged with the preset's.

        Raises the errors of the class, and `ConfigError` for an unknown preset.

        >>> sorted(Convention.of("trailblaze", categories={"mobile": "mobile_{verbNoun}", "org": False}).categories)
        ['app', 'app_platform', 'mobile', 'org_platform', 'platform', 'universal']
        """
        return cls(**preset_table(preset, changes), preset=preset)

    def __post_init__(self) -> None:
        errors, separator = ConfigErrors(self.file or _WHERE, _REMEDY), self.separator
        for one in fields(self):
            if one.name in CLAUSES:
                value = CLAUSES[one.name].read(getattr(self, one.name), _below(one.name, errors))
                # An invalid value counts as omitted, so that the other clauses are checked too.
                plain = _nothing() if one.default is MISSING else one.default
                object.__setattr__(self, one.name, plain if value is None else value)
        # If the separator itself is invalid, every format would be reported as wrong.
        for key, problem, remedy in contradictions(self) if self.separator == separator else ():
            errors.add(f"{_WHERE}.{key}", problem, remedy)
        errors.raise_any()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Cached, because the cache of classified names needs the hash for each name.
        return hash((self.preset, self.clients, self.apps, self.platforms, self.separator, *self.categories.items()))

    @cached_property
    def formats(self) -> tuple[Format, ...]:
        """The formats of the categories, the most specific first."""
        found = (format_of(name, text, self.separator) for name, text in self.categories.items())
        return tuple(sorted(found, key=lambda one: (one.precision, one.category), reverse=True))

    @cached_property
    def word_casing(self) -> str:
        """The casing of a tool's own words; "" if any casing is allowed."""
        return self.formats[0].casing if self.formats else self.casing

    @cached_property
    def taken(self) -> frozenset[str]:
        """The words that cannot be an app, because they mean something else at the start of a name."""
        literals = {part.word.lower() for one in self.formats for part in one.parts if part.kind == "literal"}
        return frozenset({*self.platforms, *literals})

    @cached_property
    def known_apps(self) -> Mapping[str, str]:
        """The apps by their ids in lower case, without those whose id is taken."""
        return {app.lower(): app for app in self.apps or () if app.lower() not in self.taken}

    @cached_property
    def alphabet(self) -> frozenset[str] | None:
        """The legal characters of names (None: any), in both cases if the casing rule checks capitals."""
        if not self.characters:
            return None
        found = characters_of(self.characters)
        letters = "".join(char for char in found if char.isalpha())
        return found.union(letters.upper(), letters.lower()) if self.word_casing else found

    @cached_property
    def near_parts(self) -> NameSuggester:
        """The search for known apps, platforms and other prefixes that are similar to a misspelt one."""
        return NameSuggester({*(self.apps or ()), *self.taken})

    @cached_property
    def foreign(self) -> frozenset[str]:
        """The separators that are not allowed in names, neither between parts nor inside words."""
        inside = CASINGS[self.word_casing].inside if self.word_casing else ""
        return frozenset(SEPARATORS).difference(self.separator, inside) if self.separator else frozenset()

    def is_part(self, word: str) -> bool:
        """Return whether a word can be a part of a name, because it contains no separator.

        >>> Convention.of("trailblaze").is_part("my_app"), Convention(separator=".").is_part("myapp")
        (False, True)
        """
        return self.foreign.union(self.separator).isdisjoint(word)

    def owner(self, name: str, category: str = "") -> str:
        """Return the team that owns a name of this category; "" if no entry matches.

        Entries are tried in this order: the name; its first part (``payments``); the longest matching glob (``ios_*``);
        the format of the category, which means all its names.
        """
        front = name.partition(self.separator)[0] if self.separator else name
        plain = (self.owners.get(key, "") for key in (name, front))
        found = self._patterns.first(name)
        return next(filter(None, plain), "") or (
            self.owners.get(found, "") or self.owners.get(self.categories.get(category, ""), "")
        )

    @cached_property
    def _patterns(self) -> Globs:
        return Globs(sorted(self.owners, key=lambda key: (-len(key), key)))

    def is_reserved(self, name: str, category: str = "", app: str = "") -> bool:
        """Return whether only the owner may declare a name of this category and app.

        A format reserves its category only if a ``team`` is set, and an app's prefix only if the convention lists the
        app and it is not the team's own.
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
        """Return the family of a name by the first matching glob; "" if none matches."""
        return next((family for family, globs in self.families.items() if any(fits(one, name) for one in globs)), "")

    def severity(self, rule: Rule) -> Severity | None:
        """Return the severity of a rule under this convention; None if it is off."""
        for word in (rule.code, rule.name):
            if word in self.severities:
                return self.severities[word]
        return rule.severity

    @property
    def named_rules(self) -> tuple[tuple[str, str], ...]:
        """All rules that the convention names, each with its key in the configuration; some may not exist."""
        severities = ((f"{_WHERE}.severities{step(word)}", word) for word in self.severities)
        entries = ((f"{_WHERE}.suppressions[{i}].rule", one.rule) for i, one in enumerate(self.suppressions))
        return (*severities, *entries)


def _below(clause: str, errors: ConfigErrors) -> Note:
    def note(where: str, problem: str, remedy: str) -> None:
        errors.add(f"{_WHERE}.{clause}{where}", problem, remedy)

    return note


def preset_table(name: str, changes: Mapping[str, object]) -> dict[str, Any]:
    """Merge changes into a preset's table. Raises `ConfigError` for an unknown preset."""
    if name not in PRESETS:
        raise config_error(
            _WHERE, f"{_WHERE}.preset", f"{excerpt(str(name))} is not a preset", spelling_remedy(name, PRESETS)
        )
    table = {**PRESETS[name], **changes}
    for key in _MERGED:
        given, own = changes.get(key), PRESETS[name].get(key)
        if isinstance(given, Mapping) and isinstance(own, Mapping):
            table[key] = {**own, **given}
    if isinstance(table.get("categories"), Mapping):
        table["categories"] = {key: text for key, text in table["categories"].items() if text is not False}
        if "reserved" in PRESETS[name] and "reserved" not in changes:
            # A category stays reserved if its format changes, but not if the category is removed.
            own = PRESETS[name]["categories"]
            table["reserved"] = [text for key, text in table["categories"].items() if key in own]
    return table


_PRESET: Final = "preset"
_KEYS: Final = (_PRESET, *CLAUSES)
# The JSON Schema of the table; it accepts everything that the reader accepts.
CONVENTION: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        _PRESET: {"enum": list(PRESETS), "description": "The preset that the convention is based on; default: mcp."},
        **{name: {**clause.schema, "description": clause.what} for name, clause in CLAUSES.items()},
    },
    "additionalProperties": False,
}


def read_convention(table: object, file: str = _WHERE) -> Convention:
    """Read the ``convention`` table of a configuration, based on its ``preset`` (default: ``mcp``).

    Lists and texts replace the preset's; ``categories``, ``owners``, ``families`` and ``severities`` are merged with
    the preset's. Raises `ConfigError` with the file and the key, or an `ExceptionGroup` of them. Unknown rules are not
    reported here, since this module does not know the rules (see `Convention.named_rules`).

    >>> read_convention({"preset": "trailblaze", "apps": ["payments"]}).apps
    ('payments',)
    >>> read_convention({"prest": "trailblaze"}, "truename.toml")
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: truename.toml: convention.prest: it is not a key of a convention. Did you mean ...
    """
    if not isinstance(table, Mapping):
        raise config_error(file, _WHERE, "it is not a table", "Write [convention].")
    errors = ConfigErrors(file)
    for key in table:
        if key not in _KEYS:
            errors.add(_WHERE + step(key), "it is not a key of a convention", spelling_remedy(key, _KEYS))
    given: dict[str, object] = {key: value for key, value in table.items() if key in CLAUSES}
    preset = table.get(_PRESET, "mcp")
    if not isinstance(preset, str) or preset not in PRESETS:
        errors.add(f"{_WHERE}.{_PRESET}", f"{excerpt(str(preset))} is not a preset", spelling_remedy(preset, PRESETS))
        # Use the nearest preset, so that errors that only follow from the wrong name are not reported.
        preset = next(iter(get_close_matches(str(preset)[:100], PRESETS, 1)), "mcp")
    try:
        found = Convention(**preset_table(preset, given), preset=preset, file=file)
    except (ConfigError, ExceptionGroup) as error:
        errors.adopt(error)
    errors.raise_any()
    return found


def plain_convention(convention: Convention) -> dict[str, Any]:
    """Return a convention as a table of a configuration: its preset, and the differences from it.

    >>> plain_convention(Convention.of("trailblaze", apps=["pay"], severities={"casing": "off"}))
    {'preset': 'trailblaze', 'apps': ('pay',), 'severities': {'casing': 'off'}}
    """
    preset = Convention.of(convention.preset)
    found: dict[str, Any] = {_PRESET: convention.preset}
    for name in CLAUSES:
        value, usual = getattr(convention, name), getattr(preset, name)
        if value == usual:
            continue
        found[name] = _difference(value, usual) if isinstance(value, Mapping) else value
    if "severities" in found:
        found["severities"] = {rule: word or "off" for rule, word in found["severities"].items()}
    if "suppressions" in found:
        found["suppressions"] = [vars(one) for one in convention.suppressions]
    return found


def _difference(table: Mapping[str, object], usual: Mapping[str, object]) -> dict[str, object]:
    left_out = dict.fromkeys(usual.keys() - table.keys(), False)
    return {key: value for key, value in table.items() if key not in usual or usual[key] != value} | left_out
