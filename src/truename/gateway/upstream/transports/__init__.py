"""The transports by which an upstream server is reached."""
