"""What is changed, and which tests have to notice it: the modules that decide who and what runs."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["SHORT", "TARGETS", "Target"]


class Target(NamedTuple):
    """Modules that the same tests judge."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


_POLICY: Final = (
    *("policy", "call", "decisions", "default", "exposure", "grants", "principal_globs"),
    *("digested", "approvals", "context", "unfolded"),
)
_JUDGES: Final = (
    *("inbound.static_tokens", "inbound.issuer_tokens", "inbound.introspection", "inbound.authentication"),
    *("issuer_keys", "jwt", "oauth"),
)
_TOKENS: Final = ("tokens", "doors", "issuer_way", "signed", "claims", "introspection", "keys")
_ADDRESSES: Final = ("addresses", "clients", "hostile_documents", "redirecting", "metadata")

TARGETS: Final = (
    Target(
        "tokens",
        tuple(f"truename.auth.{name}" for name in _JUDGES),
        tuple(f"tests/auth/test_{name}.py" for name in _TOKENS),
    ),
    Target(
        "addresses",
        (
            *("truename.auth.network.addresses", "truename.auth.authorization_server.clients"),
            *("truename.config.access", "truename.config.field_types", "truename.gateway.elicitation.addresses"),
            *("truename.gateway.upstream.redirecting", "truename.gateway.http.origin_guard"),
        ),
        (
            *(f"tests/auth/test_{name}.py" for name in _ADDRESSES),
            "tests/config/test_config_access.py",
            *("tests/gateway/test_addresses.py", "tests/gateway/test_gateway_doorkeeper.py"),
        ),
    ),
    Target(
        "policy",
        (
            "truename.catalog.globs",
            *(
                f"truename.policy.{name}"
                for name in ("policy", "call", "rules", "approval_validity", "exposure", "principal", "former_ids")
            ),
        ),
        (*(f"tests/policy/test_{name}.py" for name in _POLICY), "tests/catalog/test_globs.py"),
    ),
    Target(
        "naming",
        ("truename.naming.assign", "truename.naming.resolve"),
        (
            *("tests/naming", "tests/laws/test_forms_of_clients.py", "tests/laws/test_resolution.py"),
            *(f"tests/ledger/test_{name}.py" for name in ("promises", "scopes_and_order", "seen")),
        ),
    ),
)
SHORT: Final = ("truename.auth.inbound.static_tokens", "truename.gateway.elicitation.addresses")
