"""The gate before a call: what the configuration's policy says of it, decided on the tool's identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.policy import Caller, bound_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.sdk import Request
    from truename.gateway.views import View
    from truename.policy import Policy

__all__ = ["enforce"]


def enforce(policy: Policy | None, request: Request, view: View, params: Mapping[str, Any]) -> None:
    """Let a call pass that may be made. Raises `NotAllowed`, `ApprovalRequired` or `InvalidCall`.

    The client is known where the address names it; who it is for is not known here, and a rule that allows somebody
    in particular does not apply.
    """
    if policy is None:
        return
    arguments = params.get("arguments")
    call = bound_call(
        name=str(params.get("name")),
        call_id=f"request-{request.request_id}",
        arguments={} if arguments is None else arguments,
        names=view.table,
        caller=Caller(client=view.spec.client or ""),
    )
    policy.enforce(call)
