"""Sign-in: the gateway as the authorization server of its own clients, in front of an identity provider."""
