"""Authenticate callers (inbound), sign people in, authenticate to servers (outbound), and guard the network."""
