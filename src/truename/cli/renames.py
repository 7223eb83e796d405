"""`truename renames`: list, accept, reject and undo renames that servers made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated, Final

from cyclopts import App, Parameter

from truename.cli._audit import audited, keep_done
from truename.cli._command_list import epilogue_of
from truename.cli._durations import seconds_of
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import GatewayConfig, JsonOutput
from truename.cli._rendering import print_json, print_table, say, show, shown_time, styled
from truename.cli._sources import configuration
from truename.config import Config as ServeConfig
from truename.errors import InvalidToolId, TruenameError, excerpt
from truename.files.user import whoami
from truename.identity import ToolId
from truename.ledger import open_ledger
from truename.trust.rename_decisions import RenameDecisions, about_rename, listed_until
from truename.trust.renames import ArrivedTool, RenameStore

__all__ = ["renames"]

_DAY: Final = 86_400
_MOST: Final = 5
_ALIKE: Final = 0.6
_MOST_REASONS: Final = 3
_SHOWN: Final = 12
_ALL: Final = "`truename renames list` shows all."
_ACCEPTED: Final = "accepted"
_STATES: Final = {"new": "undecided", "renamed": "redirected"}
Tools = Annotated[str, Parameter(help="A tool by its new id or its old one, as fs@1/read@1.")]
Was = Annotated[
    str | None,
    Parameter(name="--was", metavar="TOOL", help="The old id, if another one, or none, is proposed."),
]
Certain = Annotated[bool, Parameter(name="--certain", show_default=False, help="All proposals that are certain.")]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="All tools on which nobody decided.")]
Digest = Annotated[
    str | None,
    Parameter(name="--digest", metavar="DIGEST", help="Only if the new definition has this digest: sha256:..."),
]
ListedFor = Annotated[
    str | None,
    Parameter(
        name="--listed-for",
        metavar="TIME",
        help="How long the old name stays listed: 90d, 12w; default: trust.renamed_for.",
    ),
]
Open = Annotated[bool, Parameter(name="--waiting", show_default=False, help="Only those on which nobody decided.")]
renames = App(
    name="renames",
    help="Show, accept and reject renames that servers made.",
    help_format="plaintext",
    help_epilogue=epilogue_of("renames"),
    default_parameter=Parameter(negative=()),
)


@renames.command(name="list")
def list_(config: GatewayConfig = None, *, waiting: Open = False, as_json: JsonOutput = False) -> int:
    """List tools that are new since others left their server, and what they were. Exit status 1: some wait."""
    with _book(configuration(config)) as book:
        known = sorted(book.arrived.values(), key=lambda one: (not one.is_open, one.old is None, one.number, one.id))
        found = [one for one in known if one.is_open or not waiting]
        rows = [_row(one, book) for one in found]
        plain = [_plain(one, book) for one in found]
    open_ones = [one for one in found if one.is_open]
    if as_json:
        print_json({"renames": plain})
    elif rows:
        print_table(["", "old", "new", "since", "why"], rows)
    else:
        show("No server renamed anything." if not waiting else "No rename waits for a decision.")
    if open_ones and not as_json:
        say("")
        them = "1 tool waits" if len(open_ones) == 1 else f"{len(open_ones):,} tools wait"
        say(f"{them} for a decision: `truename renames accept TOOL` if it is the old one, else `reject`.")
    return EXIT_FINDINGS if open_ones else 0


@renames.command
def accept(
    *tools: Tools,
    config: GatewayConfig = None,
    was: Was = None,
    certain: Certain = False,
    digest: Digest = None,
    listed_for: ListedFor = None,
    as_json: JsonOutput = False,
) -> int:
    """Say that new tools are the old ones: the old names lead to them, and what is configured follows."""
    said = configuration(config)
    days = said.settings.trust.renamed_for if listed_for is None else int(seconds_of(listed_for) // _DAY)
    until = listed_until(datetime.now(UTC).date(), days)
    with _book(said) as book:
        found = _chosen(book, tools, "--certain", certain=certain)
        if was is not None and len(found) != 1:
            raise UsageError(fact="--was is about one new tool", advice="Name one.")
        olds = {one.id: _old_of(one, book, was) for one in found}
        by = whoami()
        with _decisions(said, book) as decisions:

            def made(one: ArrivedTool) -> bool:
                old, expected = olds[one.id], digest or ""
                return decisions.accept(one.id, old, by=by, until=until, digest=expected, shown=one) is not None

            about = [(one, {"old": str(olds[one.id]), "until": until}) for one in found]
            done = _decided(said, "rename_accepted", about, made)
    return _told(done, "accepted", digest, as_json=as_json)


@renames.command
def reject(
    *tools: Tools,
    config: GatewayConfig = None,
    everything: Everything = False,
    digest: Digest = None,
    as_json: JsonOutput = False,
) -> int:
    """Say that new tools are none of those that left: each is judged by its own id from now on."""
    said = configuration(config)
    with _book(said) as book:
        found = _chosen(book, tools, "--all", everything=everything)
        by = whoami()
        with _decisions(said, book) as decisions:

            def made(one: ArrivedTool) -> bool:
                return decisions.reject(one.id, by=by, digest=digest or "", shown=one) is not None

            done = _decided(said, "rename_rejected", [(one, {}) for one in found], made)
    return _told(done, "rejected", digest, as_json=as_json)


@renames.command
def undo(*tools: Tools, config: GatewayConfig = None, as_json: JsonOutput = False) -> int:
    """Take decisions back: the tools wait for one again, and old names lead nowhere."""
    said = configuration(config)
    with _book(said) as book:
        if not tools:
            raise UsageError(fact="no tool is named", advice="Name the tools whose decision is to be taken back.")
        found = _named(book, tools)
        with _decisions(said, book) as decisions:
            done = _decided(
                said, "rename_undone", [(one, {}) for one in found], lambda one: decisions.undo(one.id) is not None
            )
    return _told(done, "undone", as_json=as_json)


def _decided(
    config: ServeConfig,
    what: str,
    about: Sequence[tuple[ArrivedTool, Mapping[str, object]]],
    made: Callable[[ArrivedTool], bool],
) -> list[tuple[ArrivedTool, bool]]:
    """Decide on tools one after the other, and return which decisions were made.

    If one raises an error, those before it are in the audit log.
    """
    done: list[bool] = []
    failed: BaseException | None = None
    with audited(config, "name", what, [{**about_rename(one), **more} for one, more in about]) as records:
        try:
            for one, _ in about:
                done.append(made(one))
        except (TruenameError, OSError, KeyboardInterrupt) as error:
            failed = error
        keep_done(records, [*done, *[False] * (len(records) - len(done))])
    if failed is not None:
        raise failed
    return [(one, is_made) for (one, _), is_made in zip(about, done, strict=True)]


@contextmanager
def _book(config: ServeConfig) -> Iterator[RenameStore]:
    location = config.state_location()
    if location.is_memory:
        raise UsageError(fact=f"{config.path} keeps its state in memory only", advice="Set state to a file or a URL.")
    if not location.has("rename"):
        advice = "`truename serve` creates it when it starts."
        raise UsageError(fact=f"no record of renames found at {location.name} yet", advice=advice)
    with RenameStore(location) as book:
        yield book


@contextmanager
def _decisions(config: ServeConfig, book: RenameStore) -> Iterator[RenameDecisions]:
    ledger = open_ledger(config.state_location())
    try:
        yield RenameDecisions(book, ledger)
    finally:
        ledger.close()


def _chosen(
    book: RenameStore, tools: Sequence[str], every: str, *, certain: bool = False, everything: bool = False
) -> list[ArrivedTool]:
    if not tools and not certain and not everything:
        raise UsageError(fact="no tool is named", advice=f"Name some, or use {every}.")
    if tools:
        return _named(book, tools)
    return [one for one in book.arrived.values() if one.is_open and (everything or (certain and one.is_certain))]


def _named(book: RenameStore, tools: Sequence[str]) -> list[ArrivedTool]:
    return list({one.id: one for one in (_one(book, text) for text in tools)}.values())


def _one(book: RenameStore, text: str) -> ArrivedTool:
    """Return the new tool that is named, by its own id or the one that it had or probably had."""
    try:
        id = ToolId.parse(text)
    except InvalidToolId:
        raise _unknown(book, text, "Write it as fs@1/read@1.") from None
    return book.arrived.get(id) or _successor(book, id, text)


def _successor(book: RenameStore, old: ToolId, text: str) -> ArrivedTool:
    """Return the new tool that a former one became or probably became; else the only one that was proposed as it."""
    known = [one for one in book.arrived.values() if one.old == old]
    found = [one for one in known if one.is_open or one.word == _ACCEPTED] or known
    if not found:
        raise _unknown(book, text)
    if len(found) > 1:
        listed = ", ".join(str(one.id) for one in found[:_MOST])
        raise UsageError(fact=f"{old} is the old id of {len(found):,} tools", advice=f"Name one of them: {listed}.")
    return found[0]


def _unknown(book: RenameStore, text: str, advice: str = "") -> UsageError:
    known = {str(id) for one in book.arrived.values() for id in (one.id, one.old) if id is not None}
    near = get_close_matches(text, sorted(known), _MOST, _ALIKE)
    if near:
        advice = f"Did you mean {', '.join(near)}?"
    return UsageError(fact=f"{excerpt(text)} is no tool that is new on its server", advice=f"{advice} {_ALL}".strip())


def _old_of(one: ArrivedTool, book: RenameStore, was: str | None) -> ToolId:
    if was is None:
        if one.old is None:
            fact = f"{one.id} resembles no tool that left its server"
            raise UsageError(fact=fact, advice="Say which it was with --was, or reject it.")
        return one.old
    suspects = {each.id for each in book.suspects(one)}
    try:
        old = ToolId.parse(was)
    except InvalidToolId as error:
        raise UsageError(fact=f"{excerpt(was)} is not a tool id", advice="Write it as fs@1/read@1.") from error
    if old not in suspects:
        listed = ", ".join(map(str, sorted(suspects)[:_MOST])) or "none"
        fact = f"{old} did not leave server {excerpt(one.server)} before {one.id} came"
        raise UsageError(fact=fact, advice=f"These did: {listed}.")
    return old


def _row(one: ArrivedTool, book: RenameStore) -> list[str]:
    return [_state(one), _old(one, book), _titled(one), shown_time(one.decided or one.at), _why(one, book)]


def _state(one: ArrivedTool) -> str:
    if one.word == "proposed":
        return "certain" if one.is_certain else f"probable {one.score:.2f}"
    return _STATES.get(one.word, one.word)


def _old(one: ArrivedTool, book: RenameStore) -> str:
    if one.old is not None:
        return str(one.old)
    suspects = book.suspects(one)
    if not suspects:
        return ""
    return str(suspects[0].id) + "?" if len(suspects) == 1 else f"one of {len(suspects):,} that left?"


def _titled(one: ArrivedTool) -> str:
    return str(one.id) if one.name == one.id.tool else f"{one.id} ({excerpt(one.name, 40)})"


def _why(one: ArrivedTool, book: RenameStore) -> str:
    if one.is_open:
        return "; ".join(one.reasons[:_MOST_REASONS])
    if one.by or one.word != "accepted":
        return f"by {excerpt(one.by, 40)[1:-1]}" if one.by else ""
    others = book.suspects(one)
    return f"by a setting; may be one of {len(others):,} others" if others else "by a setting"


def _plain(one: ArrivedTool, book: RenameStore) -> dict[str, object]:
    return {
        "tool": str(one.id),
        "server": one.server,
        "name": one.name,
        "state": one.word,
        "old": None if one.old is None else str(one.old),
        "may_be": [str(each.id) for each in book.suspects(one)],
        "certain": one.is_certain,
        "score": one.score,
        "reasons": list(one.reasons),
        "digest": one.digest,
        "old_digest": one.old_digest,
        "at": one.at,
        "by": one.by,
        "decided": one.decided,
        "until": one.until,
    }


def _told(done: Sequence[tuple[ArrivedTool, bool]], what: str, digest: str | None = None, *, as_json: bool) -> int:
    made = [one for one, is_done in done if is_done]
    if as_json:
        unchanged = [str(one.id) for one, is_done in done if not is_done]
        print_json({what: [str(one.id) for one in made], "unchanged": unchanged})
    else:
        for one, is_done in done:
            if is_done:
                show(styled(what.capitalize(), "bold"), f" {one.id}")
            else:
                show(f"{one.id} was left unchanged: {_unchanged(one, what, digest)}.")
        if not done:
            show(f"No rename waits for a decision, so nothing was {what}. {_ALL}")
    return 0 if made and all(is_done for _, is_done in done) else EXIT_FINDINGS


def _unchanged(one: ArrivedTool, what: str, digest: str | None) -> str:
    """Return why a tool was not decided on, by its state before."""
    if what == "undone":
        return "nobody has decided on it" if one.is_open else "the decision was changed meanwhile"
    if digest not in {None, one.digest}:
        return f"its definition has the digest {one.digest}"
    if not one.is_open:
        return f"it is {_STATES.get(one.word, one.word)} already; `truename renames undo {one.id}` takes that back"
    return "it was decided on or changed meanwhile, or another tool was accepted as its old one"
