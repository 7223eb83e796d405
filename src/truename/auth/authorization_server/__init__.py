"""Sign people in: the gateway as the authorization server of its own clients."""
