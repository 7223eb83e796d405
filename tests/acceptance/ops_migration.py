"""Ops about changing names everywhere at once (seed 002)."""
