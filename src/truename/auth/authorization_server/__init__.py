"""Sign people in: the gateway is the authorization server of its own clients."""
