"""Obtain the credentials that the gateway sends to its servers."""
