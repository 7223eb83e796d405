"""Parse and write `ToolId`, the canonical identity of a tool, and `ToolRef`, its incomplete form.

The form is `integration@version/suite.tool@version`; versions of 1 may be omitted, and a text may be percent- or
tilde-encoded (docs/concepts/names.md, "The canonical id").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from truename.errors import InvalidToolId

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "LATEST",
    "MAX_ID_LENGTH",
    "SUITE",
    "ToolId",
    "ToolRef",
    "decode",
    "is_kebab",
    "is_name",
    "is_suite",
    "lower_ascii",
    "percent_encode",
    "tilde_encode",
]

MAX_ID_LENGTH: Final = 512

# The look-ahead keeps matching linear: "____...!" fails after one pass.
NAME: Final = re.compile(r"(?=[_-]*[a-z0-9])[a-z0-9_-]+")
SUITE: Final = re.compile(rf"{NAME.pattern}(?:\.{NAME.pattern})*")
_KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# Eighteen digits fit every integer type that a version may be stored in.
VERSION: Final = re.compile(r"[1-9][0-9]{0,17}")

_ASCII_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def lower_ascii(text: str) -> str:
    r"""Lower-case ASCII letters only: ``str.lower`` would turn the Kelvin sign into a plain "k".

    >>> lower_ascii("GET_LEADS"), lower_ascii("\u212a") == "\u212a"
    ('get_leads', True)
    """
    return text.lower() if text.isascii() else text.translate(_ASCII_LOWER)


def is_name(text: str) -> bool:
    """Return whether the text is a ``name`` of the grammar."""
    return NAME.fullmatch(text) is not None


def is_kebab(text: str) -> bool:
    """Return whether the text is lower case with words joined by hyphens, the recommended form of integrations.

    >>> is_kebab("data-grout"), is_kebab("data_grout")
    (True, False)
    """
    return _KEBAB.fullmatch(text) is not None


def is_suite(text: str) -> bool:
    """Return whether the text is a ``suite``: names joined by dots."""
    return SUITE.fullmatch(text) is not None


# Far longer than any id, encoded or not: longer texts are refused unread.
_LONGEST: Final = 8 * 1024
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decode(text: str) -> str:
    """Undo the transport encodings: decode percent escapes once, then replace ``~`` by ``/``.

    Raises `InvalidToolId` (code ``invalid_encoding``) for a bad escape, bytes that are not UTF-8, a character that
    cannot be printed, or a ``%`` that is left over.

    >>> decode("data-grout%401~prism.refract%401")
    'data-grout@1/prism.refract@1'
    >>> decode("salesforce%2540latest")
    Traceback (most recent call last):
        ...
    truename.errors.InvalidToolId: ... it is encoded twice (at 10). ...
    """
    if len(text) > _LONGEST:
        raise _invalid(text, _LONGEST, f"it is longer than {_LONGEST:,} characters")
    # A fast path for the escapes that ids need; replacing them first is safe, since no escape overlaps another.
    plain = text.replace("%40", "@").replace("%2F", "/").replace("%2f", "/") if "%" in text else text
    if "%" in plain:
        bad = _BAD_ESCAPE.search(text)
        if bad:
            raise _invalid(text, bad.start(), "'%' is not followed by two hexadecimal digits")
        try:
            plain = _ESCAPE.sub(lambda escape: bytes((int(escape[1], 16),)), text.encode("utf-8")).decode("utf-8")
        except UnicodeError as error:
            raise _invalid(text, text.index("%"), "its escapes are not UTF-8") from error
        if "%" in plain:
            raise _invalid(text, plain.index("%"), "it is encoded twice")
    if not plain.isprintable():
        position = next(i for i, character in enumerate(plain) if not character.isprintable())
        raise _invalid(text, position, f"U+{ord(plain[position]):04X} cannot be printed")
    return plain.replace("~", "/")


def percent_encode(canonical: str) -> str:
    """Percent-encode a canonical name for a transport that accepts neither ``@`` nor ``/``.

    >>> percent_encode("salesforce@1/get_leads@1")
    'salesforce%401%2Fget_leads%401'
    """
    return canonical.replace("%", "%25").replace("@", "%40").replace("/", "%2F")


def tilde_encode(canonical: str) -> str:
    """Replace ``/`` by ``~`` in a canonical name, for a transport that accepts ``@`` but not ``/``."""
    return canonical.replace("/", "~")


def _invalid(text: str, position: int, reason: str) -> InvalidToolId:
    return InvalidToolId(text=text, position=position, reason=reason, code="invalid_encoding")


LATEST: Final = "latest"
RefVersion = int | Literal["latest"] | None
# Percent-encoding at most triples the length; a longer text cannot be an id and is refused unread.
_MAX_TEXT: Final = 3 * MAX_ID_LENGTH
_VERSION_LIMIT: Final = 10**18


def _fail(text: str, position: int, reason: str, code: str = "invalid_tool_id") -> NoReturn:
    raise InvalidToolId(text=text, position=position, reason=reason, code=code)


@dataclass(frozen=True, slots=True)
class ToolRef:
    """A reference to a tool as people type it, normalised: versions may be omitted (None) or be ``latest``.

    >>> ToolRef.parse("Salesforce/GET_LEADS@latest")
    ToolRef(integration='salesforce', integration_version=None, suite=None, tool='get_leads', version='latest')
    """

    integration: str
    integration_version: RefVersion
    suite: str | None
    tool: str
    version: RefVersion

    @classmethod
    def parse(cls, text: str) -> ToolRef:
        """Parse any accepted spelling: any case, versions optional, ``@v1``, ``@latest``, percent- or tilde-encoded.

        A version that is omitted, or ``latest``, is 1. Raises `InvalidToolId` with the position in the decoded text.
        """
        if len(text) > _MAX_TEXT:
            _fail(text, _MAX_TEXT, f"it is longer than {_MAX_TEXT} characters")
        plain = lower_ascii(decode(text))
        if len(plain) > MAX_ID_LENGTH:
            _fail(text, MAX_ID_LENGTH, f"it is longer than {MAX_ID_LENGTH} characters")
        left, slash, right = plain.partition("/")
        if not slash:
            _fail(text, len(plain), "there is no '/' between integration and tool")
        if "/" in right:
            _fail(text, plain.rindex("/"), "there is more than one '/'")
        integration, integration_version = _component(text, left, 0, is_name, "integration")
        start = len(left) + 1
        dotted, version = _component(text, right, start, is_suite, "tool")
        suite, _, tool = dotted.rpartition(".")
        return cls(integration, integration_version, suite or None, tool, version)

    def complete(self) -> ToolId:
        """Return the id that this reference means without a catalogue: an omitted version is 1.

        Raises `InvalidToolId` (``invalid_version``) for ``latest``, which only a catalogue can resolve.
        """
        if LATEST in (self.integration_version, self.version):
            _fail(str(self), str(self).index(f"@{LATEST}") + 1, "'latest' needs a catalogue", "invalid_version")
        return ToolId(
            self.integration,
            int(self.integration_version or 1),
            self.suite,
            self.tool,
            int(self.version or 1),
        )

    def __str__(self) -> str:
        suite = f"{self.suite}." if self.suite else ""
        left = "" if self.integration_version is None else f"@{self.integration_version}"
        right = "" if self.version is None else f"@{self.version}"
        return f"{self.integration}{left}/{suite}{self.tool}{right}"


def _component(text: str, part: str, start: int, legal: Callable[[str], bool], what: str) -> tuple[str, RefVersion]:
    name, at, version = part.partition("@")
    if not legal(name):
        _fail(text, start, f"{name!r} is not a valid {what}: use a-z, 0-9, '_' and '-', with a letter or digit")
    if not at:
        return name, None
    if version == LATEST:
        return name, LATEST
    digits = version.removeprefix("v")
    if not VERSION.fullmatch(digits):
        position = start + len(name) + 1
        _fail(text, position, f"{version!r} is not a valid version: use a whole number from 1", "invalid_version")
    return name, int(digits)


@total_ordering
class ToolId:
    """The canonical identity ``integration@version/suite.tool@version``; immutable, hashable, ordered.

    The constructor is strict; `parse` accepts the spellings that people type. Ids are ordered by integration, its
    version as a number, suite, tool and version, so ``@10`` comes after ``@2``. A ToolId never equals a `str`.

    >>> ToolId.parse("Salesforce@v1/GET_LEADS@1")
    ToolId('salesforce@1/get_leads@1')
    >>> str(ToolId("data-grout", 1, "prism", "refract", 1)), ToolId.parse("a/b@2").short
    ('data-grout@1/prism.refract@1', 'a/b@2')
    """

    __slots__ = ("_hash", "_text", "integration", "integration_version", "sort_key", "suite", "tool", "version")

    integration: str
    integration_version: int
    suite: str | None
    tool: str
    version: int
    _text: str
    _hash: int
    sort_key: tuple[str, int, str, str, int]

    def __init__(self, integration: str, integration_version: int, suite: str | None, tool: str, version: int) -> None:
        _check_versions(integration_version, version)
        dotted = f"{suite}.{tool}" if suite is not None else tool
        text = f"{integration}@{integration_version}/{dotted}@{version}"
        if len(text) > MAX_ID_LENGTH:
            _fail(text, MAX_ID_LENGTH, f"it is longer than {MAX_ID_LENGTH} characters")
        if not is_name(integration):
            _fail(text, 0, f"{integration!r} is not a valid integration")
        if suite is not None and not is_suite(suite):
            _fail(text, text.index("/") + 1, f"{suite!r} is not a valid suite")
        if not is_name(tool):
            _fail(text, text.index("/") + 1, f"{tool!r} is not a valid tool")
        put = object.__setattr__
        put(self, "integration", integration)
        put(self, "integration_version", integration_version)
        put(self, "suite", suite)
        put(self, "tool", tool)
        put(self, "version", version)
        put(self, "_text", text)
        put(self, "_hash", hash(text))
        put(self, "sort_key", (integration, integration_version, suite or "", tool, version))

    @classmethod
    def parse(cls, text: str) -> ToolId:
        """Parse an id as people type it; an omitted version is 1, ``latest`` is refused. Raises `InvalidToolId`."""
        return ToolRef.parse(text).complete()

    @property
    def short(self) -> str:
        """The id without versions that are 1: ``salesforce/get_leads``."""
        suite = f"{self.suite}." if self.suite else ""
        left = "" if self.integration_version == 1 else f"@{self.integration_version}"
        right = "" if self.version == 1 else f"@{self.version}"
        return f"{self.integration}{left}/{suite}{self.tool}{right}"

    @property
    def family(self) -> tuple[str, str | None, str]:
        """The part that all versions of this tool share: integration, suite and tool."""
        return self.integration, self.suite, self.tool

    def __setattr__(self, name: str, value: object) -> NoReturn:
        message = f"a ToolId cannot be changed: {name!r} is fixed"
        raise AttributeError(message)

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[object, ...]:
        return ToolId, (self.integration, self.integration_version, self.suite, self.tool, self.version)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, ToolId) else NotImplemented

    def __lt__(self, other: ToolId) -> bool:
        return self.sort_key < other.sort_key if isinstance(other, ToolId) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"ToolId({self._text!r})"


def _check_versions(*versions: int) -> None:
    for version in versions:
        if type(version) is not int or not 0 < version < _VERSION_LIMIT:
            text = str(version) if type(version) is not int else hex(version)
            _fail(text[:MAX_ID_LENGTH], 0, "it is not a valid version: use a whole number from 1", "invalid_version")
