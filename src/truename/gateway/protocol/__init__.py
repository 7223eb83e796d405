"""The protocol as bytes and envelopes, and the one place for what the MCP SDK leaves private or surprising."""
