"""The servers behind the gateway: links, the connections over them, and what keeps each server at work."""
