"""`truename pins`: the definitions that are trusted, and a word on those that wait for one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

from cyclopts import App, Parameter

from truename.cli.drifted import change_of, lines_of, pin_row, plain_pin, titled, when
from truename.cli.failure import EXIT_FINDINGS, UsageFault
from truename.cli.meant import keys_of, meant, require_one_each
from truename.cli.options import Configuration, JsonOutput
from truename.cli.rendering import print_json, print_table, say, show, styled
from truename.cli.sources import configuration
from truename.cli.witnessed import witnessed
from truename.config import Config as ServeConfig
from truename.conventions import Finding
from truename.files.user import whoami
from truename.trust import PinnedTool, PinStore
from truename.trust.approval_queue import about_definition
from truename.trust.pins import ReviewedDefinitions, pin_before
from truename.trust.screening import screened_pins

__all__ = ["pins"]

Tools = Annotated[str, Parameter(help="Tools, as fs@1/read@1; a server's instructions are server:fs.")]
Config = Annotated[
    str | None, Parameter(name="--config", help="The configuration whose pins are meant; else as for `serve`.")
]
Server = Annotated[str | None, Parameter(name="--server", help="All that waits of this server.")]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="All that waits.")]
Digest = Annotated[
    str | None, Parameter(name="--digest", help="The definition that is meant, as `diff` shows it: sha256:...")
]
Waiting = Annotated[bool, Parameter(name="--waiting", show_default=False, help="Only what waits for a word.")]

pins = App(
    name="pins",
    help="Show, accept and reject definitions of tools that are new or have changed.",
    help_format="plaintext",
    help_epilogue="A running gateway follows within two seconds. `accept` takes a `reject` back, and `reject` an "
    "`accept`. What was rejected is accepted by its name only, never by --all.",
    default_parameter=Parameter(negative=()),
)


@pins.command(name="list")
def list_(source: Configuration | None = None, /, *, waiting: Waiting = False, as_json: JsonOutput = False) -> int:
    """List what is trusted, and what waits for a word. Exit status 1: something waits."""
    with _book(configuration(source)) as book:
        seen, trusted = list(book.seen().values()), sorted(book.pins().values(), key=lambda one: one.key)
    open_ones = [one for one in seen if one.word == "waiting"]
    shown: list[PinnedTool] = (
        [*open_ones] if waiting else [*sorted(seen, key=lambda one: one.word, reverse=True), *trusted]
    )
    if as_json:
        print_json({"pins": [plain_pin(one) for one in shown]})
    elif shown:
        print_table(["", "tool", "since", "by", "digest"], [pin_row(one) for one in shown])
    else:
        show("Nothing waits for a word." if waiting else "Nothing is pinned yet.")
    if open_ones and not as_json:
        say("")
        them = "1 of them waits" if len(open_ones) == 1 else f"{len(open_ones):,} of them wait"
        say(f"{them}: `truename pins diff` shows what changed, `accept` or `reject` it then.")
    return EXIT_FINDINGS if open_ones else 0


@pins.command
def diff(*tools: Tools, config: Config = None, as_json: JsonOutput = False) -> int:
    """Show how what waits differs from what is trusted; of a tool that is named, else what was rejected last.

    Exit status 1: there is a difference.
    """
    with _book(configuration(config)) as book:
        reviewed = ReviewedDefinitions(configuration(config).settings.trust.lock).digests
        chosen = meant(book, tools, server=None, everything=not tools)
        found = [(one, pin_before(one, book.pins().get(one.key), reviewed)) for one in chosen]
        said = screened_pins(chosen, book.pins().values())
        named = keys_of(book, tools)

    def why(one: PinnedTool) -> Sequence[Finding]:
        return said.get((one.key, one.digest), ())

    if as_json:
        print_json({"changes": [change_of(one, before, why(one)) for one, before in found]})
    elif not found:
        which = ", ".join(named)
        show(f"Nothing of {which} waits for a word." if which else "Nothing waits for a word.")
    else:
        for one, before in found:
            show(styled(titled(one), "bold cyan"), f", seen {when(one.at)} ({one.word})")
            show(f"  {one.digest}")
            for line in lines_of(one, before, why(one)):
                show(f"  {line}")
    return EXIT_FINDINGS if found else 0


@pins.command
def accept(
    *tools: Tools,
    config: Config = None,
    server: Server = None,
    everything: Everything = False,
    digest: Digest = None,
    as_json: JsonOutput = False,
) -> int:
    """Trust definitions. Where several of one tool wait, somebody has to say which by its digest."""
    said = configuration(config)
    with _book(said) as book:
        found = meant(book, tools, server=server, everything=everything, digest=digest or "")
        require_one_each(found)
        named = keys_of(book, tools)
        with witnessed(said, "definition", "accepted", [about_definition(one) for one in found]):
            book.trust(found, by=whoami())
    return _told([one.key for one in found], "accepted", named, as_json=as_json)


@pins.command
def reject(
    *tools: Tools,
    config: Config = None,
    server: Server = None,
    everything: Everything = False,
    as_json: JsonOutput = False,
) -> int:
    """Say no to definitions: they are neither shown nor called, until they are others."""
    said = configuration(config)
    with _book(said) as book:
        found: list[PinnedTool] = [*meant(book, tools, server=server, everything=everything)]
        # What is trusted, and nothing waits in its place, can be rejected too.
        waiting = {one.key for one in found}
        found += (book.pins()[key] for key in keys_of(book, tools) if key not in waiting)
        with witnessed(said, "definition", "rejected", [about_definition(one) for one in found]):
            book.note(found, "rejected", by=whoami())
    return _told([one.key for one in found], "rejected", as_json=as_json)


@pins.command
def forget(*tools: Tools, config: Config = None, as_json: JsonOutput = False) -> int:
    """Forget all about tools: what is listed next is taken as if it were there for the first time."""
    said = configuration(config)
    with _book(said) as book:
        if not tools:
            raise UsageFault(fact="no tool is named", advice="Name those that are to be new again.")
        known = {one.key: one for one in (*book.seen().values(), *book.pins().values())}
        gone = keys_of(book, tools)
        with witnessed(said, "definition", "forgotten", [about_definition(known[key]) for key in gone]):
            book.forget(gone)
    return _told(gone, "forgotten", as_json=as_json)


@contextmanager
def _book(config: ServeConfig) -> Iterator[PinStore]:
    path = config.pins_path()
    if path is None:
        raise UsageFault(fact=f"{config.path} keeps its pins in memory only", advice="Set trust.pins to a file.")
    if not path.exists():
        raise UsageFault(fact=f"there are no pins at {path} yet", advice="`truename serve` makes them at its start.")
    with PinStore(path) as book:
        yield book


def _told(keys: Sequence[str], what: str, named: Sequence[str] = (), *, as_json: bool) -> int:
    if as_json:
        print_json({what: list(keys)})
    elif not (keys or named):
        show(f"Nothing waits for a word, and nothing was {what}. `truename pins list` shows what there is.")
    else:
        for key in keys:
            show(styled(what.capitalize(), "bold"), f" {key}")
        for key in named:
            if key not in keys:
                show(f"Nothing of {key} waits for a word; it stays as it is.")
    return 0 if keys else EXIT_FINDINGS
