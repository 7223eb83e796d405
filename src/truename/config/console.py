"""The table ``[console]``: who may see the web console, and who may decide and change something there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.config.field_types import BOOLEAN, PRINCIPAL_GLOBS, SECONDS, TEXTS
from truename.config.fields import FieldType, Setting, plain_table, read_table, setting, table_schema
from truename.policy.principal import LOCAL
from truename.policy.principal_selector import PrincipalSelector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.fields import Fields
    from truename.policy.principal import Principal

__all__ = ["ROLES", "ConsoleAccess", "Role"]

Role = Literal["viewer", "approver", "operator"]
ROLES: Final[tuple[Role, ...]] = ("viewer", "approver", "operator")
"""The roles; each may do what those before it may."""
_ROWS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "groups": Setting(type=TEXTS, meaning="Groups whose members have the role.", default=(), live=True),
        "scopes": Setting(type=TEXTS, meaning="Scopes of tokens whose callers have the role.", default=(), live=True),
        "principals": Setting(
            type=PRINCIPAL_GLOBS, meaning="Globs on principals that have the role.", default=(), live=True
        ),
        "everyone": Setting(
            type=BOOLEAN, meaning="Whether everybody who can connect has the role.", default=False, live=True
        ),
    }
)


def _read(fields: Fields, name: str) -> PrincipalSelector | None:
    inner = fields.table(name)
    if inner is None:
        return None
    before = len(fields.errors)
    found = read_table(inner, _ROWS)
    return PrincipalSelector(**found) if len(fields.errors) == before else None


_SELECTOR: Final = FieldType(
    name="table", read=_read, schema=table_schema(_ROWS), plain=partial(plain_table, rows=_ROWS), rows=_ROWS
)


@dataclass(frozen=True, kw_only=True)
class ConsoleAccess:
    """Who has which role in the console. By default the one user of a gateway without principals may look.

    >>> from truename.policy.principal import Principal
    >>> access = ConsoleAccess(operator=PrincipalSelector(groups=("platform",)))
    >>> [access.role_of(one) for one in (LOCAL, Principal(name="ann"), Principal(name="ann", groups={"platform"}))]
    ['viewer', None, 'operator']
    """

    viewer: PrincipalSelector = setting(
        PrincipalSelector(principals=(LOCAL.name,)),
        _SELECTOR,
        "Who sees servers, tools, calls and settings.",
        live=True,
    )
    approver: PrincipalSelector = setting(
        PrincipalSelector(), _SELECTOR, "Who also decides on pending calls.", live=True
    )
    operator: PrincipalSelector = setting(
        PrincipalSelector(), _SELECTOR, "Who also reviews definitions and revokes decisions.", live=True
    )
    session: float = setting(
        28_800.0, SECONDS, "Longest time before a person logs in to the console again.", unit="seconds", live=True
    )

    def role_of(self, principal: Principal) -> Role | None:
        """Return the highest role of a principal; None if it has none."""
        audiences = zip(ROLES, (self.viewer, self.approver, self.operator), strict=True)
        return next((role for role, audience in reversed([*audiences]) if audience.includes(principal)), None)
