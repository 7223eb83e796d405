"""What a run says about one question of the page: is a name with a dot kept, changed, lost, or worse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lab.awkward import CONSTRUCTS
from lab.scenarios import scenario
from truename import dialects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lab.results import Run, SeenTool, Trial

__all__ = ["KINDS", "QUESTIONS", "Question", "Verdict", "brief", "code", "told", "trials", "verdict"]

# From the best to the worst; a question about several names gets the worst of them.
KINDS: Final = {
    "kept": ("=", "as it is, apart from the prefix that the client adds to every name"),
    "changed": ("~", "under another name, and a call runs it"),
    "refused": ("P", "sent to the model, but the real model's API refuses a request with such a name"),
    "uncalled": ("?", "shown, but the run ended before it was called"),
    "lost": ("-", "not shown to the model, or merged into another tool"),
    "nothing": ("0", "shown, and a call of the shown name runs nothing"),
    "wrong": ("!", "shown, and a call of the shown name runs **another tool**"),
    "fails": ("X", "the client, or the whole server, fails because of it"),
}
_OUTCOMES: Final = {
    "missing": "lost",
    "unreachable": "nothing",
    "misrouted": "wrong",
    "failed": "fails",
    "uncalled": "uncalled",
}
_ORDER: Final = tuple(KINDS)
# The scripted model takes every name. Which real one stands behind a client is its own choice or its user's.
_ANY: Final = ("openai", "anthropic", "google-gemini")
_BEHIND: Final = {"anthropic": ("anthropic",), "gemini": ("google-gemini",), "responses": ("openai-responses",)}
_COMPANY: Final = {
    "openai": "OpenAI",
    "openai-responses": "OpenAI",
    "anthropic": "Anthropic",
    "google-gemini": "Gemini",
}
_BRIEF: Final = 44


@dataclass(frozen=True)
class Question:
    """One row of the page: a construct of a single name, or a whole scenario (``names`` is then empty)."""

    name: str
    title: str
    label: str
    names: tuple[str, ...] = ()

    @property
    def scenario(self) -> str:
        """The scenario that answers it."""
        return "awkward" if self.names else self.name


@dataclass(frozen=True)
class Verdict:
    """The worst that happens, and what happens to each name, in words."""

    kind: str
    text: str

    @property
    def sign(self) -> str:
        """Its sign in the table."""
        return KINDS[self.kind][0]


_LABELS: Final = {
    "plain": "abc", "dot": ".", "slash": "/", "space": "a b", "other-script": "天", "accent": "ö", "decomposed": "o¨",
    "form-twins": "ö=o¨", "emoji": "🚀", "colon": ":", "percent": "%", "tilde": "~", "identity": "@/",
    "capitals": "aB", "case-twins": "Aa=aa", "dash": "-", "dash-twins": "-=_", "double-underscore": "__",
    "leading-underscore": "_x", "trailing-underscore": "x_", "leading-digit": "1x", "built-in": "own",
    "prototype": "proto", "equal-after": "/=_", "sign-twins": ".=/", "middle": "a…b", "tail": "…ab",
    "cut-twins": "aB=a_b", "up-to-64": "≤64", "up-to-128": "≤128", "over-128": "129",
}  # fmt: skip
_WHOLE: Final = (
    Question("duplicates", "the same name twice in one list", "2×"),
    Question("clashes-2", "the same names on two servers", "2 srv"),
    Question("clashes-6", "the same names on six servers", "6 srv"),
    Question("keys", "servers with awkward keys", "keys"),
    Question("joins", "servers and names that join to one text", "joins"),
    Question("many", "200 tools", "200"),
)
QUESTIONS: Final = (
    *(Question(one.name, one.title, _LABELS.get(one.name, one.name), one.names) for one in CONSTRUCTS),
    *_WHOLE,
)


def brief(text: str) -> str:
    """Return a text that fits a table: the middle of a long one is left out."""
    return text if len(text) <= _BRIEF else f"{text[:24]}…{text[-16:]}"


def code(text: str) -> str:
    """Return a name as Markdown shows it inside a table."""
    return f"`{brief(text)}`".replace("|", "\\|")


def trials(run: Run, question: Question, mode: str) -> Trial | None:
    """Return the trial that answers a question: the whole scenario, or its part if the whole one failed."""
    whole = run.trial(question.scenario, mode)
    part = run.trial(f"{question.scenario}/{question.name}", mode) if question.names else None
    return part or whole


def refusers(run: Run, trial: Trial, shown: str) -> list[str]:
    """Return the providers behind this client whose API takes no request with this name."""
    own = dialects.get(run.dialect).kind == "client"
    behind = _BEHIND.get(trial.api or "", _ANY) if own else _ANY
    name = shown.rpartition(".")[2] if trial.api == "responses" else shown  # after the namespace
    return [_COMPANY[provider] for provider in behind if dialects.get(provider).check(name)]


def _kind(tool: SeenTool) -> str:
    if tool.outcome in _OUTCOMES:
        return _OUTCOMES[tool.outcome]
    given = tool.upstream if tool.listed is None else tool.listed
    return "kept" if tool.shown is None or tool.shown.endswith(given) else "changed"


_BAD: Final = {"lost", "nothing", "wrong"}


def _prefix(trial: Trial) -> Callable[[SeenTool], str]:
    """Return what takes a client's prefix off a shown name, as a harmless name of the same server shows it."""
    found: dict[str, str] = {}
    for tool in trial.tools:
        given = tool.upstream if tool.listed is None else tool.listed
        if tool.shown and tool.shown.endswith(given) and given.replace("_", "").isalnum() and given.isascii():
            found.setdefault(tool.server, tool.shown.removesuffix(given))
    return lambda tool: (tool.shown or "").removeprefix(found.get(tool.server, ""))


_TOLD: Final = {
    "kept": "kept",
    "changed": "becomes {shown}",
    "uncalled": "shown, not called",
    "lost": "lost",
    "nothing": "shown as {shown}, which runs nothing",
    "wrong": "shown as {shown}, which runs {reached}",
    "fails": "fails",
}


def told(tool: SeenTool, bare: Callable[[SeenTool], str], *, server: bool) -> str:
    """Return what happened to one tool, in words."""
    where = tool.reached or ("", "")
    reached = code(": ".join(where) if server else where[1])
    return _TOLD[_kind(tool)].format(shown=code(bare(tool)), reached=reached)


def verdict(run: Run, question: Question, mode: str) -> Verdict | None:
    """Return what a run says about a question in one mode; None if it was not asked, or with none of its names."""
    trial = trials(run, question, mode)
    if trial is None:
        return None
    tools = [tool for tool in trial.tools if not question.names or tool.upstream in question.names]
    if not tools:
        return None
    worst = max((_kind(tool) for tool in tools), key=_ORDER.index)
    if worst == "fails":
        return Verdict(worst, _TOLD[worst])
    who = {one for tool in tools if tool.shown for one in refusers(run, trial, tool.shown)}
    found = _worded(question, trial, tools, worst)
    if not who or (worst in _BAD and len(tools) > 1):
        return found
    return Verdict("refused", f"{found.text}; refused by {', '.join(sorted(who))}")


def _worded(question: Question, trial: Trial, tools: Sequence[SeenTool], worst: str) -> Verdict:
    if worst == "kept" and question.names:
        return Verdict(worst, _TOLD[worst])
    bare = _prefix(trial)
    if question.names:
        return Verdict(worst, _each([(code(tool.upstream), told(tool, bare, server=False)) for tool in tools]))
    return Verdict(worst, _counted(question, tools, bare))


def _each(parts: Sequence[tuple[str, str]]) -> str:
    """Join what happened to each of a construct's names; a construct of one name needs no name."""
    if len(parts) == 1:
        return parts[0][1]
    by_text: dict[str, list[str]] = {}
    for name, text in parts:
        by_text.setdefault(text, []).append(name)
    return "; ".join(f"{', '.join(names)} {text}" for text, names in by_text.items())


def _counted(question: Question, tools: Iterable[SeenTool], bare: Callable[[SeenTool], str]) -> str:
    """Say how many tools of a scenario are right, and what happens to the others."""
    listed = list(tools)
    wrong = [tool for tool in listed if tool.outcome not in {"right", "copy"}]
    servers = len(scenario(question.scenario).servers) > 1
    text = f"{len(listed) - len(wrong)} of {len(listed)} right"
    if not wrong:
        return text
    parts = [
        (code(f"{tool.server}: {tool.upstream}" if servers else tool.upstream), told(tool, bare, server=servers))
        for tool in wrong
    ]
    return f"{text}; " + "; ".join(f"{name} {said}" for name, said in parts[:6]) + ("; …" if len(parts) > 6 else "")
