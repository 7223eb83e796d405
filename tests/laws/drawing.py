"""Random catalogues and texts that meet: few words, in all cases, separators, encodings, scripts that look alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from tests.laws.oracle import CLIENT_FORMS
from tests.laws.sessions import Lists, Redirect, Retire

if TYPE_CHECKING:
    import random

    from tests.laws.oracle import Oracle, ToolRecord
    from tests.laws.sessions import Session

__all__ = ["CLIENTS", "STYLES", "lists_after", "moved_by_an_operator", "servers_drawn", "spelled", "text_at_random"]

STYLES: Final = ("prefixed", "on-conflict", "server-prefix", "canonical", "declared", "dotted-double")
CLIENTS: Final = {
    "prefixed": ("universal", "openai", "cursor", "claude-code", "native"),
    "on-conflict": ("universal", "openai", "native", "gemini-cli", "n8n"),
    "server-prefix": ("openai", "native", "claude-code"),
    "canonical": ("native",),
    "declared": ("native", "openai"),
    "dotted-double": ("openai", "native"),
}
_WORDS: Final = ("a", "b", "t", "get", "data", "lead", "2", "Get", "DATA")
_JOINS: Final = ("_", "_", "_", "-", ".", "__", "", ":", " ", "/", "~", "%", "%20", "%5F", "@1/")
_PLAIN: Final = ("get", "data", "lead", "search", "list", "a", "b", "t")
_PLAIN_LABELS: Final = ("a", "b", "get", "data", "weather", "git", "salesforce", "truename", "mcp")
_LABELS: Final = (*_PLAIN_LABELS, "A", "Get", "Weather", "git_hub", "a b")
# Letters of other scripts that look like these.
_ALIKE: Final = dict(zip("aetoidk", "\u0430\u0435\uff54\u03bf\u0131\u0501\u212a", strict=True))
_ACCENTS: Final = {"a": "á", "e": "é", "u": "ü"}
_IDS: Final = ("a@{}/t@1", "a@1/t@{}", "sf@{}/get@1", "salesforce@{}/get_data@1", "b@1/a.t@{}")
_SEPARATOR: Final = re.compile(r"__|[-_:. ]")


def _name(draw: random.Random) -> str:
    if draw.random() < 0.4:
        return draw.choice(_PLAIN)
    return draw.choice(_JOINS).join(draw.choice(_WORDS) for _ in range(draw.choice((1, 2, 2, 3))))


def changed(draw: random.Random, text: str) -> str:
    """Return a text as somebody else might write it."""
    ways = (_in_another_case, _separated, _separated, _encoded, _alike, _longer, _shorter, _as_a_client_shows)
    return draw.choice(ways)(draw, text)


def _in_another_case(draw: random.Random, text: str) -> str:
    return draw.choice((text.upper(), text.lower(), text.title(), text.swapcase()))


def _separated(draw: random.Random, text: str) -> str:
    found = list(_SEPARATOR.finditer(text))
    if not found:
        return text + draw.choice(("_", "-", " ", ""))
    one = draw.choice(found)
    return text[: one.start()] + draw.choice(("_", "-", "__", ":", ".", " ", "", "/")) + text[one.end() :]


def _encoded(draw: random.Random, text: str) -> str:
    way = draw.randrange(4)
    if way == 0:
        return quote(text, safe=draw.choice(("", "_-", "~:")))
    if way == 1:
        return text.replace("/", "~") if "/" in text else text.replace("_", "~", 1)
    i = draw.randrange(len(text)) if text else 0
    return text[:i] + "".join(f"%{byte:02X}" for byte in text[i : i + 1].encode()) + text[i + 1 :]


def _alike(draw: random.Random, text: str) -> str:
    table = _ALIKE if draw.random() < 0.6 else _ACCENTS
    places = [i for i, letter in enumerate(text) if letter.lower() in table]
    if not places:
        return text
    i = draw.choice(places)
    return text[:i] + table[text[i].lower()] + text[i + 1 :]


def _longer(draw: random.Random, text: str) -> str:
    return text + draw.choice(("_2", "_3", "2", "%", "_"))


def _shorter(draw: random.Random, text: str) -> str:
    i = draw.randrange(len(text)) if text else 0
    return text[:i] + text[i + 1 :]


def _as_a_client_shows(draw: random.Random, text: str) -> str:
    return draw.choice(CLIENT_FORMS).format(text)


def servers_drawn(draw: random.Random) -> dict[str, list[str]]:
    """Draw one to four servers whose tools' names meet, each other and what the styles make of them."""
    servers: dict[str, list[str]] = {}
    for _ in range(draw.choice((1, 2, 2, 3, 4))):
        label = draw.choice(_LABELS)
        servers[label] = []
        for _ in range(draw.choice((1, 1, 2, 3, 4))):
            servers[label].append(_drawn(draw, servers))
        servers[label] = list(dict.fromkeys(servers[label]))
    return servers


def _drawn(draw: random.Random, servers: dict[str, list[str]]) -> str:
    earlier = [(label, name) for label, names in servers.items() for name in names]
    if not earlier or draw.random() < 0.4:
        return _fit(_name(draw))
    label, name = draw.choice(earlier)
    way = draw.randrange(8)
    if way < 2:
        return name
    if way == 2:
        return _fit(f"{label}{draw.choice(('_', ':', '__', '.'))}{name}")
    if way == 3:
        return _fit(draw.choice((f"{label}/{name}", f"{label}@1/{name}@1")).lower())
    if way == 4:
        return _fit(draw.choice(CLIENT_FORMS).format(name))
    return _fit(changed(draw, name))


def _fit(name: str) -> str:
    return name if name.strip() and name.isprintable() else "t"


def _ids(draw: random.Random) -> tuple[str, ...]:
    if draw.random() < 0.7:
        return ()
    form = draw.choice(_IDS)
    return tuple(form.format(version) for version in (1, 2, 3, 10) if draw.random() < 0.5)


def lists_after(draw: random.Random, session: Session, before: Lists | None) -> Lists:
    """Draw what is listed next: something joins, leaves, comes back or is renamed by its server, or nothing happens."""
    style, client = "", draw.choice(CLIENTS[session.style])
    if session.remembers and session.style != "canonical" and draw.random() < 0.05:
        style, client = "canonical", "native"
    if before is None:
        servers = servers_drawn(draw)
        return Lists(tuple((label, tuple(names)) for label, names in servers.items()), _ids(draw), client, style)
    servers = {label: list(names) for label, names in before.servers}
    ids = before.ids
    way = draw.randrange(7)
    past = [step for step in session.steps if isinstance(step, Lists)]
    if way == 0 and servers:
        del servers[draw.choice(sorted(servers))]
    elif way == 1 and servers:
        label = draw.choice(sorted(servers))
        servers[label] = [name for name in servers[label] if draw.random() < 0.5]
    elif way == 2:
        new = servers_drawn(draw)
        label = draw.choice(sorted(new))
        servers[label] = list(dict.fromkeys([*servers.get(label, []), *new[label]]))
    elif way == 3 and servers:
        label = draw.choice(sorted(servers))
        servers[label] = list(dict.fromkeys([*servers[label], _drawn(draw, servers)]))
    elif way == 4:
        back = draw.choice(past)
        return back._replace(client=client, style=style)
    elif way == 5:
        ids = _ids(draw) if not ids or draw.random() < 0.3 else tuple(id for id in ids if draw.random() < 0.6)
    return Lists(tuple((label, tuple(names)) for label, names in servers.items() if names), ids, client, style)


def moved_by_an_operator(draw: random.Random, session: Session) -> Retire | Redirect | None:
    """Draw what an operator does to a name or an id."""
    oracle = session.oracle
    names, ids = sorted(oracle.shown), sorted(oracle.known)
    if not names or not ids:
        return None
    way = draw.randrange(4)
    if way == 0:
        name = draw.choice(names)
        return None if "/" in name or name in oracle.retired or name in oracle.moved else Retire(name)
    if way == 1:
        absent = sorted(set(ids) - oracle.present)
        return Redirect(draw.choice(absent if absent and draw.random() < 0.7 else ids), draw.choice(ids))
    old = draw.choice(names) if way == 2 else spelled(draw, oracle)
    if any(sign in old for sign in "/~%") or old in oracle.retired or not (old.strip() and old.isprintable()):
        return None
    return Redirect(old, draw.choice(ids))


def spelled(draw: random.Random, oracle: Oracle) -> str:
    """Draw a text from the spellings of the tools that are known, as it is or as somebody else might write it."""
    way = draw.randrange(10)
    if way < 2 and oracle.shown:
        text = draw.choice(list(oracle.shown))
    elif way == 2 and (oracle.moved or oracle.retired or oracle.moved_ids):
        text = draw.choice(sorted({*oracle.moved, *oracle.retired, *oracle.moved_ids}))
    elif not oracle.known:
        return text_at_random(draw)
    else:
        text = _of_a_tool(draw, oracle.known[draw.choice(list(oracle.known))])
    for _ in range(draw.choice((0, 0, 1, 1, 2))):
        text = changed(draw, text)
    return text


def _of_a_tool(draw: random.Random, tool: ToolRecord) -> str:
    way = draw.randrange(9)
    integration, _, rest = tool.id.partition("@")
    key = rest.partition("/")[2].partition("@")[0]
    return (
        tool.name,
        tool.name,
        f"{tool.label}:{tool.name}",
        f"{tool.label}:{tool.name}",
        f"{tool.label}_{tool.name}",
        f"mcp_{tool.label}__{tool.name}",
        tool.id,
        f"{integration}/{key}",
        f"{integration}@{draw.choice(('v1', 'latest', '2'))}/{key}@{draw.choice(('1', 'v1', 'latest', '2'))}",
    )[way]  # fmt: skip


def text_at_random(draw: random.Random) -> str:
    """Draw a text from the same letters, or from any."""
    if draw.random() < 0.8:
        text = str(draw.choice((*_JOINS, ":"))).join(
            draw.choice((*_WORDS, *_LABELS)) for _ in range(draw.choice((1, 2, 2, 3)))
        )
        return changed(draw, text) if draw.random() < 0.3 else text
    letters = "ab_-.:/@~% 12AGété\u0430\n"
    return "".join(draw.choice(letters) for _ in range(draw.randrange(1, 10)))
