"""The web console of a running gateway, at ``/console``."""

from truename.console.app import OPEN_ROUTES, ROUTES, Console, console_routes

__all__ = ["OPEN_ROUTES", "ROUTES", "Console", "console_routes"]
