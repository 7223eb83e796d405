"""Gateways of one scope that run at the same time: who they are, what each holds, and requests between them."""
