"""Say for whom something is: by groups, scopes and principals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from truename.catalog.globs import fits

if TYPE_CHECKING:
    from truename.policy.principal import Principal

__all__ = ["PrincipalSelector"]


@dataclass(frozen=True, kw_only=True)
class PrincipalSelector:
    """Principals with one of the ``groups`` or ``scopes``, those whose key matches a glob in ``principals``, or all.

    >>> from truename.policy.principal import Principal
    >>> staff = PrincipalSelector(groups=("staff",), principals=("ann",))
    >>> [staff.includes(Principal(name=name)) for name in ("ann", "staff")]
    [True, False]
    """

    groups: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    everyone: bool = False

    def includes(self, principal: Principal) -> bool:
        """Return whether a principal belongs to it."""
        return (
            self.everyone
            or not principal.groups.isdisjoint(self.groups)
            or not principal.scopes.isdisjoint(self.scopes)
            or any(fits(glob, principal.key) for glob in self.principals)
        )
