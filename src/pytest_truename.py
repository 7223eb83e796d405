"""A pytest plugin: ``pytest --truename`` lints the tools that are declared here, one item a file.

It stands beside the package, and imports nothing of it before it is asked to: pytest loads the plugins of everything
that is installed, so a test run of anybody else would pay for what this module imports.
"""

from __future__ import annotations

import pytest

__all__ = ["pytest_addoption", "pytest_collection_modifyitems"]

_OPTION = "--truename"
_SOURCES = "truename_sources"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option, and the setting that names other sources than the configured ones."""
    group = parser.getgroup("truename")
    group.addoption(_OPTION, action="store_true", help="lint the tools that are declared here, as truename lint does")
    parser.addini(_SOURCES, "what --truename lints, in place of lint.sources", type="args", default=[])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add an item for every file that declares tools, or about which there is something to say."""
    if config.getoption(_OPTION):
        from truename.lint import pytest_plugin  # noqa: PLC0415 - only where the option is given

        items += pytest_plugin.items(session, config.getini(_SOURCES))
