"""What a session may see and call: the configuration's policy, and for which context each tool is."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from truename.cache import LRUCache
from truename.conventions.metadata import declared_metadata
from truename.errors import ApprovalRequired, UnknownTool
from truename.gateway.protocol.digesting import off_loop
from truename.gateway.trust.decisions import behind
from truename.gateway.views.contexts import Contexts
from truename.gateway.views.prompts import prompts_for
from truename.gateway.views.recording import Recording
from truename.gateway.views.visibility import VisibilityIndex
from truename.policy import Caller, bound_call
from truename.policy.arguments import is_large
from truename.policy.call import claims_of, digested, digests_of
from truename.policy.former_ids import formerly
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping

    from truename.catalog import Tool
    from truename.config import ServerConfig, Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.trust.approving import Approving
    from truename.gateway.trust.vetting import Vetting
    from truename.gateway.views.view import View, ViewSpec
    from truename.identity import ToolId
    from truename.policy import Call, Context, Decision, Exposure
    from truename.policy.principal import Principal

    # The principal's key, the session, the client and the context.
    _Who = tuple[str, str, str, Context]

__all__ = ["AccessControl", "changed", "is_current"]

# A header may say any platform and app, and each pair makes a list.
_MOST_LISTS: Final = 100
_MOST_DIGESTED: Final = 4_096
_MOST_CALLERS: Final = 4_096
_MOST_CALLED: Final = 4_096
_CHANGED: Final = "the tool changed since"
_LOOK: Final = "Read its definition again, and repeat the call."
_DIGESTED: Final[LRUCache[int, tuple[Mapping[str, Any], tuple[str, str]]]] = LRUCache(_MOST_DIGESTED)


class AccessControl:
    """One rule for what is listed and for what is refused, whatever name or path was used.

    What a rule denies altogether is not listed, and is answered as if there were no such tool. What is not for a
    session's context is not listed, and is refused as ``unsupported``. So is what waits for a review, as
    ``quarantined``. All keep their names.
    """

    def __init__(self, settings: Settings, news: RateLimitedLog, vetting: Vetting, approving: Approving) -> None:
        self._settings = settings
        self._vetting = vetting
        self._approving = approving
        self.contexts = Contexts.of(settings)
        given = None if settings.policy is None else settings.policy.exposure
        self._exposure = given or settings.exposure
        self._limited: LRUCache[tuple[ViewSpec, Context], View] = LRUCache(_MOST_LISTS)
        self._shared: LRUCache[tuple[ViewSpec, Hashable], View] = LRUCache(_MOST_LISTS)
        self._visibility: dict[ViewSpec, VisibilityIndex] = {}
        self._called: LRUCache[tuple[str, ToolId, _Who, str], tuple[Tool, Call]] = LRUCache(_MOST_CALLED)
        self.recording = Recording(settings, self._exposure, news)

    def with_settings(
        self, settings: Settings, news: RateLimitedLog, vetting: Vetting, approving: Approving
    ) -> AccessControl:
        """Return the access under other settings; what is recorded is written to the same file."""
        other = AccessControl(settings, news, vetting, approving)
        other.recording = self.recording.with_settings(settings, other._exposure)
        return other

    def copied(self, vetting: Vetting) -> AccessControl:
        """Return the same over what another vetting admits, which goes its own way from now on."""
        other: AccessControl = copy(self)
        other._vetting = vetting
        other._limited, other._shared, other._visibility = (
            self._limited.copy(),
            self._shared.copy(),
            self._visibility.copy(),
        )
        return other

    def follow(self, other: AccessControl) -> None:
        """Have the lists that another one made."""
        self._limited, self._shared, self._visibility = other._limited, other._shared, other._visibility

    def has(self, spec: ViewSpec, context: Context) -> bool:
        """Tell whether a list was made."""
        return (spec, context) in self._limited

    def known(self, spec: ViewSpec, context: Context) -> View | None:
        """Return what `limited` returned of the view; None if it was not asked for."""
        return self._limited.get((spec, context))

    @property
    def exposure(self) -> Exposure:
        """What is for which session."""
        return self._exposure

    @property
    def asked_for(self) -> tuple[tuple[ViewSpec, Context], ...]:
        """For which views and contexts a list was made."""
        return tuple(self._limited)

    def forget(self, *, in_part: bool = False) -> None:
        """Forget the lists made so far: others are made now.

        ``in_part``: what is known of views stays, for `follow_view` and `forget_but`.
        """
        self._limited.clear()
        self._shared.clear()
        if not in_part:
            self._visibility.clear()

    def follow_view(self, old: View, view: View, changed: Collection[ToolId]) -> None:
        """Take in that a view became another one, in which these tools are gone, new or others."""
        found = self._visibility.get(view.spec)
        if found is not None and found.view is old:
            self._visibility[view.spec] = found.changed(view, changed)

    def forget_but(self, views: Collection[View]) -> None:
        """Forget what is known of all views but these; `forget` before, with ``in_part``."""
        current = set(map(id, views))
        self._visibility = {spec: one for spec, one in self._visibility.items() if id(one.view) in current}

    def drop(self, view: View) -> None:
        """Forget the lists that were made of a view which is kept no more."""
        for limited in [key for key in self._limited if key[0] == view.spec]:
            self._limited.pop(limited)
        for shared in [key for key in self._shared if key[0] == view.spec]:
            self._shared.pop(shared)
        self._visibility.pop(view.spec, None)

    def limited(self, view: View, context: Context) -> View:
        """Return the view without the tools that are denied or not for this context; the view itself if all stay."""
        if (found := self._limited.get((view.spec, context))) is None:
            found = self._limited[view.spec, context] = self._made(view, context)
        return found

    def _made(self, view: View, context: Context) -> View:
        """Return the one list of all contexts that see the same."""
        visibility = self._visibility_of(view)

        def made() -> View:
            hidden = visibility.hidden(context) | (view.table.keys() & self._vetting.hidden.keys())
            return view.without(hidden) if hidden else view

        return self._once((view.spec, visibility.kind(context)), made)

    def prompts(self, view: View, tools: View, context: Context) -> View:
        """Return the prompts as they read for who sees, of these tools, those of a context."""
        texts = self.limited(tools, context).texts
        if texts is tools.texts:
            return view
        return self._once((view.spec, self._visibility_of(tools).kind(context)), lambda: prompts_for(view, texts))

    def _once(self, kind: tuple[ViewSpec, Hashable], make: Callable[[], View]) -> View:
        if (found := self._shared.get(kind)) is None:
            found = self._shared[kind] = make()
        return found

    def _visibility_of(self, view: View) -> VisibilityIndex:
        found = self._visibility.get(view.spec)
        if found is None or found.view is not view:
            found = self._visibility[view.spec] = VisibilityIndex(
                view, self._exposure, self._settings.policy, self._vetting.lineage
            )
        return found

    def check_known(self, view: View, id: ToolId, context: Context, name: str) -> None:
        """Raise `UnknownTool` for a tool that does not exist for this session, as for a name of no tool."""
        if self._visibility_of(view).is_denied(id, context):
            raise UnknownTool(text=name, suggestions=view.table.suggester.nearest(name))

    @property
    def reads_arguments(self) -> bool:
        """Whether a decision, or the recording, depends on the arguments of calls."""
        return self._settings.policy is not None or self.recording.is_open

    async def judge(
        self,
        view: View,
        tool: Tool,
        context: Context,
        params: Mapping[str, Any],
        number: object,
        *,
        shown: View | None = None,
        principal: Principal = LOCAL,
        session: str = "",
        server: ServerConfig | None = None,
    ) -> tuple[Call | None, Decision | None]:
        """Let a call pass that may be made or asked about; return it, if anybody has to know of it, and what holds.

        The client is known where the address names it, who it is for by the door; ``server`` is what has the tool,
        ``shown`` is what the context sees of the view.
        Large arguments are digested beside the loop. Raises `NotAllowed` or `InvalidCall`.
        """
        self._check_shown(view, tool.id, context, shown)
        if not self.reads_arguments:
            return None, None
        who = principal.key, session, view.spec.caller, context
        call = self._call(view, tool, params, number, who=who, endpoint="" if server is None else behind(server))
        if is_large(call.arguments):
            call = await off_loop(digested, call)
            # Meanwhile a review may have begun.
            self._check_shown(view, tool.id, context)
        return call, await self._approving.judge(call)

    def _call(
        self, view: View, tool: Tool, params: Mapping[str, Any], number: object, *, who: _Who, endpoint: str
    ) -> Call:
        """Return a call as the policy sees it; all but its id and its arguments is the same in many calls."""
        name, arguments = str(params.get("name")), params.get("arguments")
        arguments, call_id = {} if arguments is None else arguments, f"request-{number}"
        key = name, tool.id, who, endpoint
        known = self._called.get(key)
        lineage = self._vetting.lineage
        is_known = known is not None and known[0] is tool and known[1].lineage is lineage(tool.id)
        if known is not None and is_known and known[1].formerly == formerly(tool.id, view.table.ledger):
            return known[1].again(call_id=call_id, arguments=arguments)
        call = bound_call(
            name=name,
            call_id=call_id,
            arguments=arguments,
            names=view.table,
            caller=_caller(*who),
            endpoints={tool.origin.server_id: endpoint},
            digests=_digests,
            # What the client meant by the name was found before, from all that it said.
            tool=tool,
            lineage=lineage,
        )
        self._called[key] = tool, call.again(call_id=call_id, arguments={})
        return call

    def _check_shown(self, view: View, id: ToolId, context: Context, shown: View | None = None) -> None:
        """Raise `NotAllowed` for a tool that is kept back or not for a context; ``shown`` remembers what passed."""
        self._vetting.check(id)
        former = formerly(id, view.table.ledger)
        lineage = self._vetting.lineage(id)
        if not lineage.judged_as and shown is not None and (id, former) in shown.exposed:
            return
        self._exposure.check(view.table.catalog[id], context, former)
        for one in lineage.judged_as:
            self._exposure.check(one, context, lineage.formerly(one))
        if shown is not None:
            shown.exposed.add((id, former))

    async def check_still(self, view: View, call: Call, context: Context, server: ServerConfig) -> None:
        """Raise for a call that may not be made now as it was when it was judged: somebody thought about it meanwhile.

        ``view`` and ``server`` are those of now. Raises as `judge` does, `UnknownTool` for a tool that is gone, and
        `ApprovalRequired` for one that is not what was decided on.
        """
        self.check_known(view, call.id, context, call.wire_name)
        tool = view.table.catalog[call.id]
        self._check_shown(view, call.id, context)
        if (_digests(tool)[0], tool.origin, behind(server)) != (call.digest, call.origin, call.endpoint):
            raise changed(call.id, call.call_id)
        # What the tool may be can have been decided, or undone, meanwhile.
        await self._approving.check(replace(call, lineage=self._vetting.lineage(call.id)))

    async def check_again(self, view: View, call: Call | None, id: ToolId, context: Context) -> None:
        """Raise for a call that may not be made by the definition of now: it is another than the one it was judged by.

        Raises as `judge` does, and `ApprovalRequired` where somebody has to be asked.
        """
        self._check_shown(view, id, context)
        if call is None:
            return
        tool = view.table.catalog[id]
        digest, shape = _digests(tool)
        shown, *offered = claims_of(tool)
        claims: Any = {"annotations": shown, "offered": offered[0] if offered else None}
        lineage = self._vetting.lineage(id)
        declared = declared_metadata(tool)
        now = replace(call, digest=digest, shape=shape, declared=declared, lineage=lineage, **claims)
        decision = await self._approving.judge(now)
        if decision is not None and decision.outcome != "allow":
            raise changed(call.id, call.call_id)


def changed(id: ToolId, call: str) -> ApprovalRequired:
    """Return the refusal of a call whose tool changed since it was judged."""
    return ApprovalRequired(id=id, call=call, decision=_CHANGED, remedy=_LOOK)


def is_current(tool: Tool, definition: Mapping[str, Any] | None) -> bool:
    """Tell whether a definition is the current one of a tool."""
    if definition is None or definition is tool.current:
        return definition is not None
    return _digests(tool)[0] == _digests(replace(tool, definition=definition, offered=None))[0]


@lru_cache(maxsize=_MOST_CALLERS)
def _caller(principal: str, session: str, client: str, context: Context) -> Caller:
    return Caller(principal=principal, session=session, client=client).within(context)


def _digests(tool: Tool) -> tuple[str, str]:
    """Return the digests of the current definition, computed once while it is called: an offered one never changes."""
    known = _DIGESTED.get(id(tool.current))
    if known is None or known[0] is not tool.current:
        # The entry holds the definition, so its number cannot be another's.
        known = _DIGESTED[id(tool.current)] = tool.current, digests_of(tool)
    return known[1]
