"""What a session may see and call: the configuration's policy, and for which context each tool is."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from truename.gateway.contexts import Contexts
from truename.migration.recording import Recorder
from truename.policy import Caller, StoreError, bound_call
from truename.policy.grants import former_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from truename.config import Settings
    from truename.gateway.news import News
    from truename.gateway.views import View, ViewSpec
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.policy import Call, Context

    Former = Callable[[ToolId], tuple[ToolId, ...]]

__all__ = ["Rights"]

# A header may say any platform and app, and each pair makes a list.
_MOST_LISTS: Final = 100


class Rights:
    """One rule for what is listed and for what is refused, whatever name or path was used.

    What is not for a session's context is not listed, keeps its names, and is refused as ``unsupported``.
    """

    def __init__(self, settings: Settings, news: News) -> None:
        self._settings = settings
        self._news = news
        self.contexts = Contexts.of(settings)
        given = None if settings.policy is None else settings.policy.exposure
        self._exposure = given or settings.exposure
        self._limited: OrderedDict[tuple[ViewSpec, Context], View] = OrderedDict()
        self._formerly: dict[str, tuple[int, Former]] = {}
        self._recorder: Recorder | None = None

    def open_recording(self) -> None:
        """Begin to write the calls of recordable tools, if that is set; what hinders it is told."""
        if self._settings.recording is None:
            return
        try:
            self._recorder = Recorder(self._settings.recording, self._exposure)
        except StoreError as error:
            self._news.tell("recording", f"{error} Calls are not recorded.")

    def close(self) -> None:
        """Close the recording."""
        if self._recorder is not None:
            self._recorder.close()

    def forget(self) -> None:
        """Forget the lists made so far: others are made now."""
        self._limited.clear()

    def limited(self, view: View, context: Context) -> View:
        """Return the view without the tools that are not for this context; the view itself if all are."""
        found = self._limited.pop((view.spec, context), None)
        if found is None:
            hidden = self._hidden(view, context)
            found = view.without(hidden) if hidden else view
        self._limited[view.spec, context] = found
        if len(self._limited) > _MOST_LISTS:
            self._limited.popitem(last=False)
        return found

    def _hidden(self, view: View, context: Context) -> frozenset[ToolId]:
        former, catalog = self._former(view.table.ledger), view.table.catalog
        return frozenset(id for id in view.table if not self._exposure.visible(catalog[id], context, former(id)))

    def _former(self, ledger: Ledger | None) -> Former:
        """Return what tells the former ids of a tool, made anew when the ledger has more of them."""
        scope = "" if ledger is None else ledger.scope
        seen = 0 if ledger is None else ledger.withdrawals + ledger.scoped("").withdrawals
        known = self._formerly.get(scope)
        if known is None or known[0] != seen:
            known = self._formerly[scope] = seen, former_ids(ledger)
        return known[1]

    def enforce(self, view: View, id: ToolId, context: Context, params: Mapping[str, Any], number: object) -> None:
        """Let a call pass that may be made, and write it down if it is to be recorded.

        The client is known where the address names it; who it is for is not known here, and a rule that allows
        somebody in particular does not apply. Raises `NotAllowed`, `ApprovalRequired` or `InvalidCall`.
        """
        policy = self._settings.policy
        self._exposure.check(view.table.catalog[id], context, self._former(view.table.ledger)(id))
        if policy is None and self._recorder is None:
            return
        call = _call(view, context, params, number)
        if policy is not None:
            policy.enforce(call)
        self._record(call, view)

    def _record(self, call: Call, view: View) -> None:
        if self._recorder is None:
            return
        try:
            self._recorder.write(call, catalog=view.digest, protocol=self._settings.protocol or "")
        except StoreError as error:
            self._news.tell("recording", f"{error} This call and perhaps others are not recorded.")


def _call(view: View, context: Context, params: Mapping[str, Any], number: object) -> Call:
    arguments = params.get("arguments")
    return bound_call(
        name=str(params.get("name")),
        call_id=f"request-{number}",
        arguments={} if arguments is None else arguments,
        names=view.table,
        caller=Caller(client=view.spec.client or "").within(context),
    )
