"""Short names for integrations: the built-in table (seed 000) and the rule for when one may be used."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.dialects import Reason
from truename.errors import InvalidName
from truename.identity import component, is_name, lower_ascii

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["BUILT_IN_ALIASES", "checked_aliases", "usable_aliases"]

BUILT_IN_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"salesforce": "sf", "quickbooks": "qb", "data-grout": "dg"}
)


def checked_aliases(aliases: Mapping[str, str]) -> dict[str, str]:
    """Return the aliases by integration. Raises `InvalidName` for an alias that could not stand in a name.

    >>> checked_aliases({"Salesforce": "sf"})
    {'salesforce': 'sf'}
    """
    for alias in aliases.values():
        if not is_name(lower_ascii(alias)):
            reason = Reason("character", "an alias has letters, digits, '_' and '-' only")
            raise InvalidName(name=alias, dialect="an alias", reasons=(reason,))
    return {component(key).name: alias for key, alias in aliases.items()}


def usable_aliases(aliases: Mapping[str, str], integrations: Collection[str]) -> dict[str, str]:
    """Return the aliases that mean one integration only and are not an integration themselves.

    >>> usable_aliases({"salesforce": "sf"}, {"salesforce", "sf"})
    {}
    """
    owners = Counter(aliases.values())
    return {
        integration: alias for integration, alias in aliases.items() if owners[alias] == 1 and alias not in integrations
    }
