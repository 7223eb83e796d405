"""Recorded conversations, one module for each API: where names and ids stand in them, read as turns, written from them.

Each module has ``mentions`` (for a conversation that stays under its API: only names, namespaces and ids change) and
``read`` and ``write`` (for one that moves to another API).
"""
