"""Authenticate callers of the gateway."""
