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

__all__ = ["HIDDEN", "Redaction", "masked"]

_HIDDEN: Final = "[redacted]"
# Of a name in lower case and without what stands between its words.
_NAMES: Final = re.compile(
    r"password|passwd|passphrase|passcode|secret|token|credential|authorization|cookie|sessionid|signature|bearer"
    r"|(?:api|private|access|account|shared|signing|encryption|master|ssh)key|connectionstring|pwd\Z|\Apin\Z"
)
# As a word of a name; or as its last one only, for these begin other words (`pass_rate`, `auth_method`).
_WORDS: Final = frozenset({"otp", "totp", "mfa", "cvv", "cvc", "jwt"})
_LAST_WORDS: Final = frozenset({"auth", "pass", "pat", "pincode", "sas"})
_BETWEEN: Final = re.compile(r"[\s_.-]+")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# A variable of the environment: in other names a key is nearly always no secret (`sort_key`, `issueKey`).
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,60}_(?:KEY|SAS)")
_SECRETS_LONGEST_NAME: Final = 200

# Secrets that tell themselves by their form, whatever they are called.
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
    # Words that follow on these words are none: "basic understanding".
    r"|(?i:\b(?:bearer|basic)\s+(?!(?-i:[A-Za-z]?[a-z]+)(?:[\s,;:!?)]|\.\s|\.?\Z))[A-Za-z0-9._~+/=-]{8,})"
    r"|(?i:://[^\s/:@]{0,100}:[^\s/@]{1,200}@)"
    r"|(?i:://(?=[^\s/:@]*[0-9])[^\s/:@]{16,200}@)"
)
# As far as a secret may reach, wherever its form ends.
_WHOLE: Final = re.compile(rf"(?:{_VALUES.pattern})[^\s\"'<>,;]*")

# Of models tokens are counted; and what stands on a line of its own behind "signature" is mostly somebody's name.
_NAMED: Final = r"(?:password|passwd|pwd|passphrase|passcode|secret|token(?!s)|(?:api|access|account)[_-]?key)"
_IN_ADDRESS: Final = rf"(?:{_NAMED}|signature)"
_IN_JSON: Final = rf"(?:{_IN_ADDRESS}|authorization|private[_-]?key|connection[_-]?string)"
# What stands for a secret, or says what it is to be, and is none.
_NONE: Final = r"(?!(?:required|optional|string|str|text|null|none|nil|true|false|yes|no|changed|unchanged)\b)"
# Secrets that are said with their names: in an address, on a command line, in another language within a text.
_SAID: Final = re.compile(
    rf"(?i:{_IN_ADDRESS}(?:=|%3d)[^\s&;]{{3}})"
    rf"|(?i:{_IN_JSON}\\{{0,4}}[\"']\s{{0,9}}:\s{{0,9}}\\{{0,4}}[\"'][^\"'\\])"
    # In one language or another: password = "x", password: 'x'
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
    # A parameter of an address whose name is a plain word elsewhere, too.
    r"|(?i:[?&#;](?:key|sig|auth|code|jwt|sid|session)=(?=[^\s&]{0,200}[0-9])[^\s&]{8})"
    # A command line. What is only told of an option has no number.
    rf"|(?i:(?<![\w-])--[\w-]{{0,40}}{_NAMED}[\w-]{{0,40}}\s{{1,9}}(?=[^\s]{{0,200}}[0-9])[^\s-]{{3}})"
    r"|(?:^|\s)(?:-u|--user)[\s=]{1,9}(?=[^\s:]{0,100}[A-Za-z])[^\s:]{1,100}:[^\s]{3}"
    r"|\bsshpass\s{1,9}-p\s{0,9}[^\s]|\bmysql(?:dump|admin)?\s[^\n|;]{0,200}(?<=\s)-p[^\s]{3}"
    # SQL, .netrc, XML.
    r"|(?i:\b(?:password|identified\s{1,9}by)\s{1,9}'[^'\s]{3})"
    r"|(?i:\blogin\s{1,9}[^\s]{1,100}\s{1,9}password\s{1,9}[^\s])"
    rf"|(?i:<[\w:-]{{0,40}}{_NAMED}[\w:-]{{0,40}}>[^<\s]{{3}})"
    rf"|(?i:[\"'][\w.-]{{0,40}}{_NAMED}[\w.-]{{0,40}}[\"']\s{{1,9}}value\s{{0,9}}=\s{{0,9}}[\"'][^\"'])"
)
# In whatever is said there is one of these.
_NEEDED: Final = (
    *("pass", "pwd", "secret", "token", "key", "signature", "auth", "cookie", "connection", "identified", "mysql"),
    *("pat=", "sas=", "sig=", "code=", "jwt=", "sid=", "session=", "-u", "--user"),
)


def masked(text: str) -> str:
    """Return a text without the secrets in it that tell themselves by their form.

    >>> masked("refused: Bearer abcdefgh12345678, see https://ann:hunter2@host/x")
    'refused: [redacted], see https[redacted]'
    """
    return _WHOLE.sub(_HIDDEN, text) if _VALUES.search(text) else text


def tells_secret(text: str) -> bool:
    """Tell whether a text has a secret in it: by its form, or by its name before it.

    >>> [tells_secret(text) for text in ("The password: see the wiki.", "X-Api-Key: 0a1b2c", "password: hunter2")]
    [False, True, True]
    """
    if _VALUES.search(text) is not None:
        return True
    # Most texts have none of these, and to see that costs a tenth of looking for what is around them.
    folded = text.lower()
    return any(word in folded for word in _NEEDED) and _SAID.search(text) is not None


def is_secret_name(name: str, more: Iterable[str] = ()) -> bool:
    """Tell whether a name is a secret's: by the known ones, and by the globs of an operator (in lower case).

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


HIDDEN: Final = "[redacted]"
_DEPTH: Final = 16
_MOST: Final = 200
_ROOM: Final = 32 * 1024
_LOOKED_AT: Final = 100_000
_BEYOND: Final = 2_000
_PARSED: Final = 200_000
_EXACT: Final = 2**53
_JSON: Final = frozenset('{["')
# Where a table says how what stands beside it is called, in how many words at most, and what that may be.
_NAMING: Final = {
    **dict.fromkeys(("name", "key", "field", "id", "label", "header", "parameter", "param", "variable", "selector"), 3),
    **dict.fromkeys(("type", "uid", "xpath", "locator", "placeholder", "target"), 3),
    # What a model says of a place on a page.
    "element": 12,
}
_VALUED: Final = frozenset({"value", "values", "content", "text", "data", "default", "secret"})
_LONGEST_NAME: Final = 100
_LONGEST_PAIR: Final = 2_000
_MOST_WORDS: Final = 3


@dataclass(frozen=True)
class Redaction:
    """How much of arguments is kept, which keys are hidden (globs, in lower case), and how long a text may be.

    >>> Redaction("redacted").of({"user": "ann", "apiKey": "x", "note": "use Bearer abcdefgh12345678"})
    {'user': 'ann', 'apiKey': '[redacted]', 'note': '[redacted]'}

    A key may also stand beside its value, as in the fields of a form, or before it, as on a command line:

    >>> Redaction("redacted").of({"fields": [{"name": "password", "value": "x"}], "args": ["--token", "y"]})
    {'fields': [{'name': 'password', 'value': '[redacted]'}], 'args': ['--token', '[redacted]']}
    """

    arguments: Arguments = "none"
    keys: tuple[str, ...] = ()
    longest: int = 1_000

    def of(self, arguments: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return what is written down of these arguments; None for nothing."""
        if self.arguments != "redacted" or arguments is None:
            return None
        kept = self._kept(arguments, 0, _CharacterBudget([0]))
        return kept if isinstance(kept, dict) else None

    def _kept(self, value: object, depth: int, room: _CharacterBudget) -> Any:
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
                HIDDEN if self._names(key) or _is_told(key, one, room) else self._kept(one, depth + 1, room)
                for key, one in pairs
                if room.left > 0
            ]
        kept = self._said(value, depth, room) if isinstance(value, str) else _plain(value)
        return kept if room.takes(len(str(kept))) else "[too much]"

    def _said(self, value: str, depth: int, room: _CharacterBudget) -> str:
        # Of a secret that begins in what is kept the rest may be needed to know it.
        near = value[: self.longest + _BEYOND]
        if not room.looks(len(near)):
            return "[too much]"
        return HIDDEN if tells_secret(near) or self._has_secret(value, depth, room) else _text(value, self.longest)

    def _has_secret(self, value: str, depth: int, room: _CharacterBudget) -> bool:
        """Tell whether a text is JSON in which something would be hidden."""
        if value[:1] not in _JSON or len(value) > _PARSED:
            return False
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            return False
        return HIDDEN in _texts(self._kept(inner, depth + 1, room.another()))

    def _table(self, table: Mapping[Any, Any], depth: int, room: _CharacterBudget) -> dict[str, Any]:
        some = list(islice(table.items(), _MOST))
        # What a table calls by a secret's name is in its other entries.
        is_field = any(self._names(value, _NAMING.get(str(key).lower(), 0)) for key, value in some)
        hides = _VALUED if is_field else frozenset[str]()
        return {
            _text(str(key), 200): HIDDEN if str(key).lower() in hides else self._entry(str(key), value, depth, room)
            for key, value in some
            if room.left > 0
        }

    def _entry(self, key: str, value: object, depth: int, room: _CharacterBudget) -> Any:
        room.takes(min(len(key), 200))
        is_secret = is_secret_name(key, self.keys) and not _is_count(key, value)
        return HIDDEN if is_secret else self._kept(value, depth + 1, room)

    def _names(self, value: object, most_words: int = _MOST_WORDS) -> bool:
        """Tell whether a value is a secret's name (a sentence is none): what belongs to it is the secret."""
        if not most_words or type(value) is not str or len(value) > _LONGEST_NAME or len(value.split()) > most_words:
            return False
        return is_secret_name(value.lstrip("-"), self.keys)


def _is_told(option: object, value: object, room: _CharacterBudget) -> bool:
    """Tell whether what follows an option of a command line is a secret with it: ``-u ann:hunter2``."""
    if not (isinstance(option, str) and isinstance(value, str) and option[:1] == "-"):
        return False
    length = len(option) + len(value)
    return length < _LONGEST_PAIR and room.looks(length) and tells_secret(f"{option} {value}")


def _is_count(key: str, value: object) -> bool:
    """Tell whether a number counts tokens (of a model), or is a place among them."""
    return isinstance(value, (int, float)) and "token" in key.lower()


def _texts(kept: object) -> Iterator[object]:
    """Yield what stands in a value, at any depth."""
    if isinstance(kept, dict):
        kept = list(kept.values())
    if isinstance(kept, list):
        for one in kept:
            yield from _texts(one)
    else:
        yield kept


class _CharacterBudget:
    """How many characters are still kept, and looked at.

    A record that is too long for the journal would not be written at all; and whoever looks keeps all calls waiting.
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
        """Return room for what is in a text; it is looked at together with all else."""
        return _CharacterBudget(self._looked)


def _text(text: str, longest: int) -> str:
    shown = text if len(text) <= longest else f"{text[:longest]}[{len(text) - longest:,} more]"
    return shown.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> Any:
    """Return a scalar as canonical JSON can hold it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and -_EXACT < value < _EXACT:
        return value
    # Larger than the exact range, infinite, or no number: as text, which says what it was.
    return str(value)[:100]
