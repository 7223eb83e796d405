"""Exporters: what is put into other gateways, and the names that they will list."""
