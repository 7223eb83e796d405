"""Redact the arguments of calls before they are recorded: nothing, a digest, or values without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.config.audit import Arguments

__all__ = ["HIDDEN", "Redaction", "redact_text"]

HIDDEN: Final = "[redacted]"
# Searched in a name in lower case, without the separators of its words.
_NAMES: Final = re.compile(
    r"password|passwd|passphrase|passcode|secret|token|credential|authorization|cookie|sessionid|signature|bearer"
    r"|(?:api|private|access|account|shared|signing|encryption|master|ssh)key|connectionstring|pwd\Z|\Apin\Z"
)
# Names with one of these words; `_LAST_WORDS` count only as the last word, since other names begin with them
# (`pass_rate`, `auth_method`).
_WORDS: Final = frozenset({"otp", "totp", "mfa", "cvv", "cvc", "jwt"})
_LAST_WORDS: Final = frozenset({"auth", "pass", "pat", "pincode", "sas"})
_BETWEEN: Final = re.compile(r"[\s_.-]+")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# An environment variable. In other names, "key" is nearly always not a secret (`sort_key`, `issueKey`).
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,60}_(?:KEY|SAS)")
_SECRETS_LONGEST_NAME: Final = 200

# Secrets that are recognisable by their form, whatever their name.
_VALUES: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\."
    r"|\b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abposr]|xapp|npm|pypi|hf|ya29|shp(?:at|ss)|dop_v1|whsec"
    r"|hvs|lin_api|ntn)[-_.][A-Za-z0-9_-]{16,}"
    r"|\bA(?:KIA|SIA)[A-Z0-9]{16}\b"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"
    r"|(?i:hooks\.slack\.com/services/|/api/webhooks/[0-9]{5,20}/)[A-Za-z0-9_/-]{16,}"
    # Not a credential if plain prose follows: "basic understanding".
    r"|(?i:\b(?:bearer|basic)\s+(?!(?-i:[A-Za-z]?[a-z]+)(?:[\s,;:!?)]|\.\s|\.?\Z))[A-Za-z0-9._~+/=-]{8,})"
    r"|(?i:://[^\s/:@]{0,100}:[^\s/@]{1,200}@)"
    r"|(?i:://(?=[^\s/:@]*[0-9])[^\s/:@]{16,200}@)"
)
# The rest of the secret beyond the recognised form is hidden too.
_WHOLE: Final = re.compile(rf"(?:{_VALUES.pattern})[^\s\"'<>,;]*")

# "tokens" is a count of a model; a line "signature: ..." mostly names a person.
_NAMED: Final = r"(?:password|passwd|pwd|passphrase|passcode|secret|token(?!s)|(?:api|access|account)[_-]?key)"
_IN_ADDRESS: Final = rf"(?:{_NAMED}|signature)"
_IN_JSON: Final = rf"(?:{_IN_ADDRESS}|authorization|private[_-]?key|connection[_-]?string)"
# Placeholders and descriptions of a value, which are not secrets.
_NONE: Final = r"(?!(?:required|optional|string|str|text|null|none|nil|true|false|yes|no|changed|unchanged)\b)"
# Secrets that follow their name: in a URL, on a command line, in code or data within a text.
_NAMED_SECRET: Final = re.compile(
    rf"(?i:{_IN_ADDRESS}(?:=|%3d)[^\s&;]{{3}})"
    rf"|(?i:{_IN_JSON}\\{{0,4}}[\"']\s{{0,9}}:\s{{0,9}}\\{{0,4}}[\"'][^\"'\\])"
    # An assignment: password = "x", password: 'x'
    rf"|(?i:{_NAMED}[\w-]{{0,40}}\s{{0,9}}[:=]\s{{0,9}}(?:\"[^\"\s]{{3,200}}\"|'[^'\s]{{3,200}}'))"
    # A line of YAML or of an INI file: a name and one word, and nothing else.
    rf"|(?im:^[ \t-]{{0,40}}[\w.-]{{0,40}}{_NAMED}[\w-]{{0,40}}[ \t]{{0,9}}[:=][ \t]{{0,9}}{_NONE}"
    r"[^\s\"'<>\[\](){}$*]{3,200}[ \t]{0,9}$)"
    # A header.
    r"|(?i:\bauthorization\s{0,9}:\s{0,9}(?:(?:basic|bearer|token|digest|apikey)\s+[^\s\"']{4}|(?=[^\s\"']{0,200}[0-9])[^\s\"']{8}))"
    r"|(?i:(?<![\w-])x-[a-z-]{0,40}(?:key|token|auth|secret)[a-z-]{0,40}\s{0,9}:\s{0,9}[^\s\"']{4})"
    r"|(?i:\b(?:set-)?cookie\s{0,9}:\s{0,9}[\w.-]{1,100}=[^\s;]{3})"
    # Variables of the environment.
    r"|\b[A-Z][A-Z0-9_]{0,60}_(?:KEY|PASS|PAT|AUTH|SAS)=[^\s]{3}"
    # A URL parameter whose name is an ordinary word elsewhere.
    r"|(?i:[?&#;](?:key|sig|auth|code|jwt|sid|session)=(?=[^\s&]{0,200}[0-9])[^\s&]{8})"
    # A command line. Documentation of an option has no digit in its value.
    rf"|(?i:(?<![\w-])--[\w-]{{0,40}}{_NAMED}[\w-]{{0,40}}\s{{1,9}}(?=[^\s]{{0,200}}[0-9])[^\s-]{{3}})"
    r"|(?:^|\s)(?:-u|--user)[\s=]{1,9}(?=[^\s:]{0,100}[A-Za-z])[^\s:]{1,100}:[^\s]{3}"
    r"|\bsshpass\s{1,9}-p\s{0,9}[^\s]|\bmysql(?:dump|admin)?\s[^\n|;]{0,200}(?<=\s)-p[^\s]{3}"
    # SQL, .netrc, XML.
    r"|(?i:\b(?:password|identified\s{1,9}by)\s{1,9}'[^'\s]{3})"
    r"|(?i:\blogin\s{1,9}[^\s]{1,100}\s{1,9}password\s{1,9}[^\s])"
    rf"|(?i:<[\w:-]{{0,40}}{_NAMED}[\w:-]{{0,40}}>[^<\s]{{3}})"
    rf"|(?i:[\"'][\w.-]{{0,40}}{_NAMED}[\w.-]{{0,40}}[\"']\s{{1,9}}value\s{{0,9}}=\s{{0,9}}[\"'][^\"'])"
)
# Every match of `_NAMED_SECRET` contains one of these.
_NEEDED: Final = (
    *("pass", "pwd", "secret", "token", "key", "signature", "auth", "cookie", "connection", "identified", "mysql"),
    *("pat=", "sas=", "sig=", "code=", "jwt=", "sid=", "session=", "-u", "--user"),
)


def redact_text(text: str) -> str:
    """Return a text in which the secrets that are recognisable by their form are hidden.

    >>> redact_text("refused: Bearer abcdefgh12345678, see https://ann:hunter2@host/x")
    'refused: [redacted], see https[redacted]'
    """
    return _WHOLE.sub(HIDDEN, text) if _VALUES.search(text) else text


def tells_secret(text: str) -> bool:
    """Return whether a text contains a secret: one with a known form, or one after its name.

    >>> [tells_secret(text) for text in ("The password: see the wiki.", "X-Api-Key: 0a1b2c", "password: hunter2")]
    [False, True, True]
    """
    if _VALUES.search(text) is not None:
        return True
    # Most texts contain none of these words, and this check costs a tenth of the search.
    folded = text.lower()
    return any(word in folded for word in _NEEDED) and _NAMED_SECRET.search(text) is not None


def is_secret_name(name: str, more: Iterable[str] = ()) -> bool:
    """Return whether a name is that of a secret: a known one, or a match of an operator's glob (in lower case).

    >>> [is_secret_name(name) for name in ("apiKey", "OPENAI_KEY", "sort_key", "db.pass", "pass_rate")]
    [True, True, False, True, False]
    """
    near = name[:_SECRETS_LONGEST_NAME]
    folded = near.lower()
    if _NAMES.search(_BETWEEN.sub("", folded)) or _VARIABLE.fullmatch(near):
        return True
    words = [word.lower() for word in _WORD.findall(near)]
    if words and (words[-1] in _LAST_WORDS or not _WORDS.isdisjoint(words)):
        return True
    return any(fnmatchcase(folded, glob) for glob in more)


_DEPTH: Final = 16
_MOST: Final = 200
_ROOM: Final = 32 * 1024
_LOOKED_AT: Final = 100_000
_BEYOND: Final = 2_000
_PARSED: Final = 200_000
_EXACT: Final = 2**53
_JSON: Final = frozenset('{["')
# Keys of an object whose value names a sibling value, each with the most words that such a name has.
_NAMING: Final = {
    **dict.fromkeys(("name", "key", "field", "id", "label", "header", "parameter", "param", "variable", "selector"), 3),
    **dict.fromkeys(("type", "uid", "xpath", "locator", "placeholder", "target"), 3),
    # A model's description of a place on a page.
    "element": 12,
}
_VALUED: Final = frozenset({"value", "values", "content", "text", "data", "default", "secret"})
_LONGEST_NAME: Final = 100
_LONGEST_PAIR: Final = 2_000
_MOST_WORDS: Final = 3


@dataclass(frozen=True)
class Redaction:
    """The redaction of arguments: how much to record, which keys to hide (globs, in lower case), and the longest text.

    >>> Redaction("redacted").of({"user": "ann", "apiKey": "x", "note": "use Bearer abcdefgh12345678"})
    {'user': 'ann', 'apiKey': '[redacted]', 'note': '[redacted]'}

    The name of a secret may also be a sibling of its value, as in a form, or precede it, as on a command line:

    >>> Redaction("redacted").of({"fields": [{"name": "password", "value": "x"}], "args": ["--token", "y"]})
    {'fields': [{'name': 'password', 'value': '[redacted]'}], 'args': ['--token', '[redacted]']}
    """

    arguments: Arguments = "none"
    keys: tuple[str, ...] = ()
    longest: int = 1_000

    def of(self, arguments: Mapping[str, object] | None) -> dict[str, Any] | None:
        """Return the arguments to record; None for none."""
        if self.arguments != "redacted" or arguments is None:
            return None
        kept = self._kept(arguments, 0, _CharacterBudget([0]))
        return kept if isinstance(kept, dict) else None

    def _kept(self, value: object, depth: int, room: _CharacterBudget) -> object:
        if depth >= _DEPTH:
            return "[too deep]"
        if not room.takes(8):
            return "[too much]"
        if isinstance(value, Mapping):
            return self._table(value, depth, room)
        if isinstance(value, (list, tuple)):
            before = (None, *value[: _MOST - 1])
            pairs = zip(before, value, strict=False)
            return [
                HIDDEN if self._names(key) or _is_secret_option(key, one, room) else self._kept(one, depth + 1, room)
                for key, one in pairs
                if room.left > 0
            ]
        kept = self._said(value, depth, room) if isinstance(value, str) else _plain(value)
        return kept if room.takes(len(str(kept))) else "[too much]"

    def _said(self, value: str, depth: int, room: _CharacterBudget) -> str:
        # A secret that begins in the recorded part may need the following text to be recognised.
        near = value[: self.longest + _BEYOND]
        if not room.looks(len(near)):
            return "[too much]"
        return HIDDEN if tells_secret(near) or self._has_secret(value, depth, room) else _text(value, self.longest)

    def _has_secret(self, value: str, depth: int, room: _CharacterBudget) -> bool:
        """Return whether a text is JSON that contains a secret."""
        if value[:1] not in _JSON or len(value) > _PARSED:
            return False
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            return False
        return HIDDEN in _texts(self._kept(inner, depth + 1, room.another()))

    def _table(self, table: Mapping[object, object], depth: int, room: _CharacterBudget) -> dict[str, object]:
        some = list(islice(table.items(), _MOST))
        # If a value of the object is the name of a secret, hide its sibling values.
        is_field = any(self._names(value, _NAMING.get(str(key).lower(), 0)) for key, value in some)
        hides = _VALUED if is_field else frozenset[str]()
        return {
            _text(str(key), 200): HIDDEN if str(key).lower() in hides else self._entry(str(key), value, depth, room)
            for key, value in some
            if room.left > 0
        }

    def _entry(self, key: str, value: object, depth: int, room: _CharacterBudget) -> object:
        room.takes(min(len(key), 200))
        # A number of tokens (of a model), or the index of one, is not a secret.
        is_count = isinstance(value, (int, float)) and "token" in key.lower()
        is_secret = is_secret_name(key, self.keys) and not is_count
        return HIDDEN if is_secret else self._kept(value, depth + 1, room)

    def _names(self, value: object, most_words: int = _MOST_WORDS) -> bool:
        """Return whether a value is the name of a secret, and not a sentence: then its sibling value is hidden."""
        if not most_words or type(value) is not str or len(value) > _LONGEST_NAME or len(value.split()) > most_words:
            return False
        return is_secret_name(value.lstrip("-"), self.keys)


def _is_secret_option(option: object, value: object, room: _CharacterBudget) -> bool:
    """Return whether an option of a command line and the text after it form a secret: ``-u ann:hunter2``."""
    if not (isinstance(option, str) and isinstance(value, str) and option[:1] == "-"):
        return False
    length = len(option) + len(value)
    return length < _LONGEST_PAIR and room.looks(length) and tells_secret(f"{option} {value}")


def _texts(kept: object) -> Iterator[object]:
    """Yield the scalars of a value, at any depth."""
    if isinstance(kept, dict):
        kept = list(kept.values())
    if isinstance(kept, list):
        for one in kept:
            yield from _texts(one)
    else:
        yield kept


class _CharacterBudget:
    """A budget of characters to record and to search.

    A record that exceeds the limit of the log would not be written at all, and a long search delays all calls.
    """

    def __init__(self, looked: list[int]) -> None:
        self.left = _ROOM
        self._looked = looked

    def takes(self, count: int) -> bool:
        self.left -= count
        return self.left >= 0

    def looks(self, count: int) -> bool:
        self._looked[0] += count
        return self._looked[0] <= _LOOKED_AT

    def another(self) -> _CharacterBudget:
        """Return a new budget to record the JSON in a text; the budget to search is shared."""
        return _CharacterBudget(self._looked)


def _text(text: str, longest: int) -> str:
    shown = text if len(text) <= longest else f"{text[:longest]}[{len(text) - longest:,} more]"
    return shown.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> object:
    """Return a scalar in a form that canonical JSON can hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and -_EXACT < value < _EXACT:
        return value
    # Larger than the exact range, infinite, or no number: as text, which says what it was.
    return str(value)[:100]
