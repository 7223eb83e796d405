"""Test support: pending, used by tests of several modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename import Catalog, project
from truename.policy import Caller, bound_call, subject_of
from truename.trust.approval_queue import PendingCall

if TYPE_CHECKING:
    from truename.policy import Call

NAMES = project(Catalog.from_mcp({"git": ["push", "pull"]}), "openai", style="prefixed")


def call(principal: str = "ada", key: str = "c1", name: str = "git_push", session: str = "", **arguments: Any) -> Call:
    caller = Caller(principal=principal, session=session)
    return bound_call(name=name, call_id=key, arguments=arguments, names=NAMES, caller=caller)


def wanted(made: Call) -> PendingCall:
    return PendingCall(
        principal=made.caller.principal,
        session=made.caller.session,
        fingerprint=made.fingerprint,
        subject=subject_of(made),
        arguments_digest=made.arguments_digest,
        arguments="x: 1",
    )
