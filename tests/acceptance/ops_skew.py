"""Ops about peers of another version, before and after a rename (seed 002)."""
