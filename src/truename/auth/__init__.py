"""Authenticate callers (inbound), sign people in, prove the gateway to servers (outbound), and guard the network."""
