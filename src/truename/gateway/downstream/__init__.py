"""The clients in front of the gateway: endpoints, the transports to them, and a request's way to a server."""
