"""Who may come in, and with whose credentials the gateway goes to its servers."""
