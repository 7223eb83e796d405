"""The views that are kept ready: those used last. Any client may ask for a hundred dialects, one after another."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from truename.gateway.views.view import View, ViewSpec

__all__ = ["MOST_SHOWN", "ViewCache"]

# Descriptors in all kept views together, each a few kilobytes.
MOST_SHOWN: Final = 200_000


class ViewCache:
    """Views by what they show, ``most`` at a time, and of large catalogues fewer. What is dropped is made anew.

    ``dropped`` are those that some client may still follow: whether their lists changed is not known any more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._views: OrderedDict[ViewSpec, View] = OrderedDict()
        self._shown = 0
        self.dropped: set[ViewSpec] = set()

    def __len__(self) -> int:
        return len(self._views)

    def __contains__(self, spec: ViewSpec) -> bool:
        return spec in self._views

    def get(self, spec: ViewSpec) -> View | None:
        """Return a view that is kept, which is then the one that was used last."""
        view = self._views.get(spec)
        if view is not None:
            self._views.move_to_end(spec)
        return view

    def put(self, view: View) -> tuple[View, ...]:
        """Keep a view, and return those that go for it; it stays however large it is."""
        if view.spec in self._views:
            self._drop(view.spec)
        self._views[view.spec] = view
        self._shown += len(view.described)
        self.dropped.discard(view.spec)
        gone: list[View] = []
        while len(self._views) > 1 and (len(self._views) > self._most or self._shown > MOST_SHOWN):
            gone.append(self._drop(next(iter(self._views))))
        return tuple(gone)

    @property
    def specs(self) -> frozenset[ViewSpec]:
        """What is kept ready."""
        return frozenset(self._views)

    def copied(self) -> ViewCache:
        """Return the same, which goes its own way from now on."""
        other = ViewCache(self._most)
        other._views, other._shown, other.dropped = self._views.copy(), self._shown, set(self.dropped)
        return other

    def agrees(self, other: ViewCache) -> bool:
        """Tell whether a view that is kept here and in another one is the same view."""
        return all(other._views.get(spec, view) is view for spec, view in self._views.items())

    def beyond(self, other: ViewCache) -> tuple[View, ...]:
        """Return the views that another one does not keep."""
        return tuple(view for spec, view in self._views.items() if spec not in other._views)

    def emptied(self) -> tuple[View, ...]:
        """Return all of them, the one used last at the end, and keep none."""
        return tuple(self._drop(spec) for spec in tuple(self._views))

    def _drop(self, spec: ViewSpec) -> View:
        view = self._views.pop(spec)
        self._shown -= len(view.described)
        self.dropped.add(spec)
        return view
