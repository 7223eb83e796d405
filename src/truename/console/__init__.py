"""The web console of a running gateway, at ``/console``."""

from truename.console.app import ROUTES, Console, console_routes

__all__ = ["ROUTES", "Console", "console_routes"]
