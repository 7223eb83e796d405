"""The gateway over HTTP: sessions, response streams, and what was sent, for clients that come back."""
