"""Requests of servers to a client's user or model (elicitation, sampling, roots): who gets one, and in which form."""
