"""The tables that a gateway uses which is served over HTTP, and the check of their versions before it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from truename.audit import HEADS_SCHEMA
from truename.auth import sealed_values, vault
from truename.auth.authorization_server import codes, sessions
from truename.auth.inbound import static_tokens
from truename.auth.outbound import login_attempts
from truename.errors import StoreError
from truename.gateway.call_quotas import lease_store
from truename.gateway.elicitation import answer_relay
from truename.gateway.http import session_record
from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas import registry
from truename.gateway.views import task_record
from truename.ledger import sql as ledger
from truename.policy import sql as approvals
from truename.storage import refuse_later_tables
from truename.trust import approval_queue, pins, renames

if TYPE_CHECKING:
    from truename.storage import StateLocation

__all__ = ["SERVED", "check_served_tables"]

SERVED: Final = (
    *(ledger.SCHEMA, pins.SCHEMA, renames.SCHEMA, approvals.SCHEMA, approval_queue.SCHEMA, HEADS_SCHEMA),
    *(static_tokens.SCHEMA, sessions.SCHEMA, codes.SCHEMA, login_attempts.SCHEMA, sealed_values.SCHEMA, vault.SCHEMA),
    *(session_record.SCHEMA, registry.SCHEMA, answer_relay.SCHEMA, task_record.SCHEMA, lease_store.SCHEMA),
)
"""The tables of all owners: those of one that is not configured belong to other gateways of the state."""


async def check_served_tables(location: StateLocation) -> None:
    """Raise `StoreError` for tables that are too new for this version: most of them are used only when asked for.

    Whatever else is wrong with the database is told by whoever needs it.
    """
    try:
        await in_thread(partial(refuse_later_tables, location, SERVED))
    except StoreError as error:
        if error.code == "newer":
            raise
