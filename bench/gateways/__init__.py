"""MCP gateways side by side: the same calls through each, in one run, with every answer checked."""
