"""Read and write recorded conversations, one module for each API.

Each module has ``history_mentions`` (for a conversation that stays with its API: only names, namespaces and ids change)
and ``read_history`` and ``write_turn`` (for one that moves to another API).
"""
