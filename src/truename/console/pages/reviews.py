"""The page of reviews: definitions that are new or have changed, and renames by servers, to accept or reject."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anyio import to_thread
from starlette.responses import RedirectResponse

from truename.console.page import Page, PageRoute
from truename.console.refusals import RefusedError
from truename.console.renames import decide_rename, proposed_renames
from truename.console.text_changes import changed_lines, changed_words, first_that_fit
from truename.migration.definitions import compare_definitions
from truename.trust import PinStore
from truename.trust.approval_queue import about_definition
from truename.trust.pins import ReviewedDefinitions, pin_before
from truename.trust.screening import screened_pins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.responses import Response

    from truename.console.page import PageRequest
    from truename.console.text_changes import ChangedPart
    from truename.conventions import Finding
    from truename.gateway import Gateway
    from truename.trust import PinnedTool, SeenDefinition

__all__ = ["ROUTES"]

Found = TypeVar("Found")
_HERE: Final = "/console/reviews"
_TEXTS: Final = ("title", "description")
_MOST_SHOWN: Final = 20
_TOO_LARGE: Final = "The definition was too large to store; only its digest is known."
_GONE: Final = "This definition is not pending any more: somebody reviewed it, or the server changed it again. Reload."


@dataclass(frozen=True, kw_only=True)
class Review:
    """A definition to review, beside the one that was trusted before, if there was any."""

    key: str
    server: str
    own_name: str
    digest: str
    at: str
    word: str
    is_new: bool
    findings: tuple[str, ...]
    effects: tuple[str, ...]
    texts: tuple[tuple[str, Sequence[ChangedPart]], ...]
    lines: Sequence[ChangedPart]


async def _show(asked: PageRequest) -> Page:
    if asked.gateway.config.pins_location().is_memory:
        text = "This gateway keeps its pins in memory. Set state to a file, or to a PostgreSQL database."
        return Page(template="problem.html", title="Reviews", values={"text": text})
    return Page(template="reviews.html", title="Reviews", values=await asked.computed(partial(_values, asked.gateway)))


def _values(gateway: Gateway) -> dict[str, object]:
    reviewed = ReviewedDefinitions(gateway.config.settings.trust.lock).digests
    with PinStore(gateway.config.pins_location()) as book:
        made = (
            _review(one, pin_before(one, book.about(one.key).pin, reviewed), _findings(gateway, one))
            for one in book.pending(_MOST_SHOWN)
        )
        reviews = first_that_fit(made, lambda one: chain(one.lines, *(parts for _, parts in one.texts)))
        count = book.waiting
    renames, waiting = proposed_renames(gateway)
    return {"reviews": reviews, "count": count, "renames": renames, "renames_count": waiting}


def _findings(gateway: Gateway, one: SeenDefinition) -> Sequence[Finding]:
    """Return the findings about a definition: as it was admitted, beside all tools; else about its own texts."""
    known = None if one.id is None else gateway.registry.vetting.findings(one.id, one.digest)
    return screened_pins([one], ()).get((one.key, one.digest), ()) if known is None else known


def _review(one: SeenDefinition, before: PinnedTool | None, findings: Sequence[Finding]) -> Review:
    old = {} if before is None or before.content is None else before.content
    new: Any = _TOO_LARGE if one.content is None else one.content
    both = isinstance(old, dict) and isinstance(new, dict)
    details = compare_definitions(old, new) if both and old else ()
    return Review(
        key=one.key,
        server=one.server,
        own_name=one.name,
        digest=one.digest,
        at=one.at,
        word=one.word,
        is_new=before is None,
        findings=tuple(f"{found.rule.name}: {found.fact}" for found in findings),
        effects=tuple(f"{detail}{' (breaking)' if detail.breaking else ''}" for detail in details),
        texts=tuple(
            (key, changed_words(_text(old, key), _text(new, key)))
            for key in _TEXTS
            if both and _text(old, key) != _text(new, key)
        ),
        lines=changed_lines(old or "", new),
    )


def _text(content: Any, key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


async def _decide(asked: PageRequest) -> Response:
    """Accept or reject the definition with a digest: one that came since the page was shown has another."""
    is_accepted = {"accept": True, "reject": False}.get(asked.field("answer"))
    if is_accepted is None:
        raise RefusedError(400, "This form has no decision. Reload the page, and repeat.")
    async with asked.decides():
        return await _decide_now(asked, is_accepted=is_accepted)


async def _decide_now(asked: PageRequest, *, is_accepted: bool) -> Response:
    gateway, key, digest = asked.gateway, asked.path["key"], asked.field("digest")
    found = await _with_pins(gateway, lambda book: book.seen().get((key, digest)))
    if found is None or found.word != "waiting":
        raise RefusedError(409, _GONE)
    by = asked.session.principal.key
    record = {"what": "accepted" if is_accepted else "rejected", **about_definition(found), "by": by, "via": "console"}
    async with gateway.audit.deciding("definition", record):
        if not await _with_pins(gateway, lambda book: book.review(found, accepted=is_accepted, by=by)):
            raise RefusedError(409, _GONE)
    return RedirectResponse(_HERE, 303)


async def _decide_rename(asked: PageRequest) -> Response:
    """Say what a new tool was, as the page showed it."""
    async with asked.decides():
        await decide_rename(asked)
    return RedirectResponse(_HERE, 303)


async def _with_pins(gateway: Gateway, do: Callable[[PinStore], Found]) -> Found:
    def done() -> Found:
        with PinStore(gateway.config.pins_location()) as book:
            return do(book)

    return await to_thread.run_sync(done)


ROUTES: Final = (
    PageRoute("GET", "/reviews", "viewer", _show),
    PageRoute("POST", "/reviews/{key:path}/decision", "operator", _decide),
    PageRoute("POST", "/reviews/{key:path}/origin", "operator", _decide_rename),
)
