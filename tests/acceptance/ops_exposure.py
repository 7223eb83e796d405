"""Ops about metadata: who sees a tool, who may run it, what is recorded (seed 003)."""
