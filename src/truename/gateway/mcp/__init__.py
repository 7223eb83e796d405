"""MCP towards clients: JSON-RPC messages, requests and connections, in the handshake versions and in 2026-07-28."""
