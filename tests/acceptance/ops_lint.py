"""Ops about the linter as a command (seed 003)."""
