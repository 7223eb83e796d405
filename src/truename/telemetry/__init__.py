"""Metrics and traces: what they are made from is handed in, so this package knows nothing of the gateway."""
