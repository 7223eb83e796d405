"""An endpoint: what the gateway answers at one path, apart from calls of tools."""
