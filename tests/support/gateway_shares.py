"""Test support: shares, used by tests of several modules."""

from __future__ import annotations

from truename.auth.inbound.static_tokens import create_token
from truename.config.access import Access, KnownToken


def people(*names: str) -> tuple[Access, dict[str, dict[str, str]]]:
    tokens = {name: create_token(name, groups=(), scopes=(), expires=None) for name in names}
    known = {name: KnownToken(name=name, hash=f"tn1:{one.id}:{one.digest}") for name, (_, one) in tokens.items()}
    return Access(tokens=known), {name: {"authorization": f"Bearer {text}"} for name, (text, _) in tokens.items()}
