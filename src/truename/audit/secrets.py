"""How secrets look: what they are called, and the forms and places by which they tell themselves in a text."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["is_secret_name", "masked", "tells_secret"]

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
_LONGEST_NAME: Final = 200

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
    near = name[:_LONGEST_NAME]
    folded = near.lower()
    if _NAMES.search(_BETWEEN.sub("", folded)) or _VARIABLE.fullmatch(near):
        return True
    words = [word.lower() for word in _WORD.findall(near)]
    if words and (words[-1] in _LAST_WORDS or not _WORDS.isdisjoint(words)):
        return True
    return any(fnmatchcase(folded, glob) for glob in more)
