"""Find secrets in the texts of a server's entry: they become references, so that no value is copied unasked.

When in doubt a text is taken for a secret: a reference too many costs a line, a token in a shared file more.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from truename.config.templates import Hole, Ref, variable_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from truename.config.templates import Part, Template

    Finder = Callable[[str], Iterable["_Span"]]

__all__ = ["in_args", "in_command", "in_env", "in_header", "in_url", "is_secret_name", "masked", "repeated"]

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_NAMES: Final = frozenset(
    {"key", "apikey", "token", "secret", "password", "passwd", "pass", "pwd", "pat", "auth", "authorization", "bearer"}
    | {"credential", "credentials", "cookie", "dsn", "signature", "sig", "jwt", "passphrase", "webhook", "apitoken"}
    | {"accesstoken", "authtoken", "privatekey", "accesskey", "secretkey"}
)
# Words that are written together with others: PGPASSWORD, GITHUBTOKEN.
_ENDINGS: Final = ("apikey", "passcode", "passphrase", "passwd", "password", "secret", "token")
_PLACES: Final = frozenset({"file", "path", "dir", "directory"})
_HARMLESS: Final = re.compile(
    r"|true|false|yes|no|on|off|none|null|auto|oauth|basic|bearer|\d{1,8}(?:\.\d{1,8})?", re.IGNORECASE
)
_PATH: Final = re.compile(r"(?:~|\.{0,2})[/\\].*|[A-Za-z]:\\.*", re.DOTALL)
# Beginnings that only tokens have: GitHub, GitLab, Slack, OpenAI and kin, AWS, Google, JWT, Hugging Face, npm, Linear,
# Notion, SendGrid, DigitalOcean, Shopify, Figma, Tavily, Stripe, Atlassian.
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[opusr]_\w{16,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    r"|(?:sk|pk|rk)[-_][\w-]{16,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,4000}\.[\w-]{8,}(?:\.[\w-]+)?"
    r"|hf_\w{20,}|npm_\w{30,}|lin_api_\w{16,}|ntn_\w{20,}|SG\.[\w-]{16,80}\.[\w-]{16,}|dop_v1_\w{32,}|shpat_\w{24,}"
    r"|figd_[\w-]{20,}|tvly-[\w-]{16,}|ATATT[\w=-]{20,})"
)
_UUID: Final = re.compile(r"(?<![0-9A-Fa-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9A-Fa-f])", re.IGNORECASE)
_RUN: Final = re.compile(r"[A-Za-z0-9_+=-]{20,}")
_DIGEST: Final = re.compile(r"(?:sha\d+:|git\+|\.git[@#]|github:)")
_LEAST_DIGITS: Final = 3
_LEAST_REPEATED: Final = 8
# The search takes the product of their number and the length.
_MOST_REPEATED: Final = 200
_LONGEST_REPEATED: Final = 10_000
_SCHEME: Final = re.compile(r"(?P<scheme>(?i:Bearer|Basic|Token|ApiKey|Digest)[ \t]+)?(?P<value>.*)", re.DOTALL)
_URL: Final = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s'\"<>]+")
_USERINFO: Final = re.compile(r"://(?P<user>[^/:?#]*)(?::(?P<password>[^/?#]*))?@")
_QUERY: Final = re.compile(r"[?&#](?P<name>[^=&#]+)=(?P<value>[^&#]+)")
_SEGMENT: Final = re.compile(r"(?<=/)[^/?#]+")
_FLAG: Final = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_PAIR: Final = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)=(?P<value>.+)", re.DOTALL)
# In the middle of a text: a name with what follows it, and the value there, quoted or not.
_NAMED: Final = re.compile(
    r"(?<![\w.-])(?:(?P<name>[A-Za-z_][\w.-]{0,60})\\?[\"']?[ \t]{0,4}[=:]"
    r"|(?<!\S)--?(?P<flag>[A-Za-z][\w.-]{0,60})[ \t](?![ \t]*-))[ \t]{0,4}"
)
_VALUE: Final = re.compile(
    r"(?P<quote>\\?[\"'])?(?:(?i:Bearer|Basic|Token|ApiKey|Digest)[ \t]{1,4})?"
    r"(?P<value>(?(quote)[^\"'\\]*|[^\s;&,|'\"\\{}]+))"
)
_USERS: Final = frozenset({"u", "user"})
_LOGIN: Final = re.compile(r"[^\s:/\\]+:(?!//|\\)(?P<password>.+)", re.DOTALL)
_HEADER: Final = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9-]*):[ \t]*(?P<value>.+)", re.DOTALL)


class _Span(NamedTuple):
    start: int
    end: int
    label: str
    own: bool = False


def is_secret_name(name: str) -> bool:
    """Return whether a value with this name is a secret.

    >>> is_secret_name("GITHUB_TOKEN"), is_secret_name("apiKey"), is_secret_name("KEYBOARD")
    (True, True, False)
    """
    words = [word.lower() for part in _WORD.findall(name) for word in _CAMEL.split(part)]
    told = bool(_NAMES.intersection(words)) or any(word.endswith(_ENDINGS) for word in words)
    return told and words[-1] not in _PLACES


def masked(text: str) -> str:
    """Return a name, which is not meant to hold a secret, with ``***`` in place of any secret in it.

    >>> masked("https://a.example/mcp?token=abc"), masked("github")
    ('https://a.example/mcp?token=***', 'github')
    """
    return "".join(part if isinstance(part, str) else "***" for part in _split(text, _certain(text, "")))


def in_command(template: Template) -> Template:
    """Mark secrets in a command's text, also in placeholders that only the client can run."""
    return _marked(template, lambda text: _anywhere(text, "TOKEN"))


def in_env(name: str, template: Template) -> Template:
    """Mark the value of an environment variable: all of it, or parts that look like a token."""
    return _marked(template, lambda text: _named(name, text, name, own=True) or _anywhere(text, name, own=True))


def in_header(name: str, template: Template) -> Template:
    """Mark the value of a header; the scheme (``Bearer``) stays readable."""
    return _marked(template, lambda text: _header(name, text, 0) or _anywhere(text, variable_name(name)))


def in_url(template: Template) -> Template:
    """Mark passwords, tokens among the parameters, and random parts of the path."""
    return _marked(template, lambda text: list(_url(text, 0)) or _anywhere(text, "URL_TOKEN"))


def in_args(templates: Iterable[Template]) -> tuple[Template, ...]:
    """Mark ``--api-key=V``, ``--api-key V``, ``-e TOKEN=V``, ``--header 'Authorization: Bearer V'``, URLs, tokens."""
    marked: list[Template] = []
    flag = ""
    for template in templates:
        marked.append(_marked(template, partial(_argument, flag=flag)))
        bare = _FLAG.fullmatch(template[0]) if len(template) == 1 and isinstance(template[0], str) else None
        flag = bare["name"] if bare and bare["value"] is None else ""
    return tuple(marked)


def repeated(holes: Iterable[Hole]) -> Callable[[Template], Template]:
    """Return a function that marks these secrets wherever else they occur."""
    # Only secrets that are too distinct to occur elsewhere by chance, unlike ``postgres``.
    known = {
        hole.value: hole
        for hole in holes
        if hole.value is not None and len(hole.value) >= _LEAST_REPEATED and not hole.value.isalpha()
    }
    if not known:
        return lambda template: template
    wanted = sorted(known, key=len, reverse=True)[:_MOST_REPEATED]
    pattern = re.compile("|".join(map(re.escape, wanted)))

    def find(text: str) -> list[_Span]:
        if len(text) > _LONGEST_REPEATED:
            return []
        return [_Span(one.start(), one.end(), known[one[0]].label, known[one[0]].own) for one in pattern.finditer(text)]

    return lambda template: _marked(template, find)


def _marked(template: Template, find: Finder) -> Template:
    before = ("", *(part if isinstance(part, str) else "" for part in template))
    return tuple(
        chain.from_iterable(
            _split(part, find(part)) if isinstance(part, str) else (_guarded(part, find, said),)
            for part, said in zip(template, before, strict=False)
        )
    )


def _guarded(part: Ref | Hole, find: Finder, before: str) -> Ref | Hole:
    """Remove the secret from a reference or hole: from its default, or from a placeholder of the client."""
    if isinstance(part, Hole):
        unsafe = part.said.startswith("$(") and _anywhere(part.said, "")
        return replace(part, label="VALUE", own=False, said="$(...)") if unsafe else part
    if part.default is None:
        return part
    found = _named(part.name, part.default, "") or any(span.end > len(before) for span in find(before + part.default))
    return replace(part, default=None, value=part.default) if found else part


def _split(text: str, spans: Iterable[_Span]) -> Iterator[Part]:
    end = 0
    for span in sorted(spans):
        if span.start < end or span.start == span.end:
            continue
        if text[end : span.start]:
            yield text[end : span.start]
        yield Hole(span.label, own=span.own, value=text[span.start : span.end])
        end = span.end
    if text[end:]:
        yield text[end:]


def _named(name: str, text: str, label: str, *, own: bool = False) -> list[_Span]:
    """Mark a whole value if its name is that of a secret."""
    if not is_secret_name(name) or _HARMLESS.fullmatch(text):
        return []
    return [_Span(0, len(text), label, own)]


def _header(name: str, text: str, start: int) -> list[_Span]:
    if not is_secret_name(name):
        return []
    match = _SCHEME.fullmatch(text, start)
    if match is None or not match["value"]:
        return []
    label = "TOKEN" if match["scheme"] else variable_name(name.removeprefix("X-"))
    return [_Span(match.start("value"), len(text), label)]


def _argument(text: str, flag: str) -> list[_Span]:
    if flag and not text.startswith("-") and (found := _named(flag, text, variable_name(flag))):
        return found
    if flag in _USERS and (login := _LOGIN.fullmatch(text)) and not _HARMLESS.fullmatch(login["password"]):
        return [_Span(login.start("password"), len(text), "PASSWORD")]
    start = 0
    if (option := _FLAG.fullmatch(text)) and option["value"]:
        start = option.start("value")
        if is_secret_name(option["name"]) and not _HARMLESS.fullmatch(option["value"]):
            return [_Span(start, len(text), variable_name(option["name"]))]
    if (
        (pair := _PAIR.fullmatch(text, start))
        and is_secret_name(pair["name"])
        and not _HARMLESS.fullmatch(pair["value"])
    ):
        return [_Span(pair.start("value"), len(text), pair["name"], own=True)]
    header = _HEADER.fullmatch(text, start)
    found = _header(header["name"], text, header.start("value")) if header else []
    return found or _anywhere(text, "TOKEN")


def _anywhere(text: str, label: str, *, own: bool = False) -> list[_Span]:
    """Mark parts that look like a secret, whatever their name."""
    certain = [*_certain(text, label, own=own), *_inside(text)]
    if certain or _PATH.fullmatch(text) or _DIGEST.search(text):
        return certain
    return [_Span(match.start(), match.end(), label, own) for match in _RUN.finditer(text) if _is_random(match[0])]


def _certain(text: str, label: str, *, own: bool = False) -> list[_Span]:
    urls = [span for match in _URL.finditer(text) for span in _url(match[0], match.start())]
    return urls + [_Span(match.start(), match.end(), label, own) for match in _TOKEN.finditer(text)]


def _inside(text: str) -> Iterator[_Span]:
    """Mark values after the name of a secret anywhere: ``Password=V;``, ``"api_key": "V"``, ``--token V``."""
    end = 0
    for match in _NAMED.finditer(text):
        name = match["name"] or match["flag"]
        if match.start() < end or not is_secret_name(name):
            continue
        value = _VALUE.match(text, match.end())
        if value is not None and not _HARMLESS.fullmatch(value["value"]):
            end = value.end()
            yield _Span(value.start("value"), end, variable_name(name))


def _url(text: str, offset: int) -> Iterator[_Span]:
    def span(match: re.Match[str], group: str, label: str) -> _Span:
        return _Span(offset + match.start(group), offset + match.end(group), label)

    begin = 0
    if user := _USERINFO.search(text):
        begin = user.end()
        if user["password"]:
            yield span(user, "password", "PASSWORD")
        elif user["password"] is None and user["user"] not in {"", "git"}:
            yield span(user, "user", "URL_TOKEN")
    for query in _QUERY.finditer(text, begin):
        if (is_secret_name(unquote(query["name"])) and not _HARMLESS.fullmatch(query["value"])) or _is_token(
            query["value"]
        ):
            yield span(query, "value", variable_name(unquote(query["name"])))
    path = text.find("/", text.find("://") + 3)
    if path >= 0 and not _DIGEST.search(text):
        for segment in _SEGMENT.finditer(text, path):
            if _is_token(segment[0]):
                yield _Span(offset + segment.start(), offset + segment.end(), "URL_TOKEN")


def _is_token(text: str) -> bool:
    return bool(_TOKEN.search(text) or _UUID.search(text)) or any(_is_random(run) for run in _RUN.findall(text))


def _is_random(run: str) -> bool:
    """Return whether a text is random and not words: it is long, with digits and letters mixed."""
    if _UUID.fullmatch(run):
        return True
    longest = max(map(len, re.split(r"[_+=-]", run)))
    inside = sum(character.isdigit() for character in run)
    return longest >= 16 and inside >= _LEAST_DIGITS and any(character.isalpha() for character in run)
