"""What a journal is told of decisions: who wanted what, who decided how; never arguments, and no definition's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truename.policy import Grant
    from truename.policy.grants import Subject
    from truename.trust.book import Pinned
    from truename.trust.pending import Pending

__all__ = ["about_definition", "about_grant", "about_request", "about_tool"]


def about_tool(subject: Subject) -> dict[str, Any]:
    """Return which tool a decision is about, as it was then."""
    return {
        "tool": str(subject.id),
        "server": subject.server,
        "upstream_name": subject.name,
        "digest": subject.digest,
    }


def about_request(one: Pending) -> dict[str, Any]:
    """Return which call somebody is to decide on."""
    return {
        "who": one.principal,
        "agent": one.agent,
        "client": one.client,
        "request": one.key,
        "name": one.wire_name,
        "rule": one.rule,
        "arguments_digest": one.arguments_digest,
        **about_tool(one.subject),
    }


def about_grant(one: Grant) -> dict[str, Any]:
    """Return what was decided, and until when it counts."""
    return {
        "who": one.principal,
        "agent": one.agent,
        "request": one.call_id,
        "grant": one.key,
        "covers": one.scope,
        "until": one.until,
        **about_tool(one.subject),
    }


def about_definition(one: Pinned) -> dict[str, Any]:
    """Return which definition is meant: a tool's, or where there is no tool a server's instructions."""
    tool = None if one.id is None else str(one.id)
    return {"tool": tool, "server": one.server, "upstream_name": one.name, "digest": one.digest}
