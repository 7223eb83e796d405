"""Ops about conventions: classification, rules, owners (seed 003)."""
