"""The table ``[quotas]``: how many calls of tools each principal may make in a minute, and at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from truename.config.field_types import COUNT, read_named
from truename.config.fields import EMPTY, FieldType, plain_table, read_table, rows_of, setting, table_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.fields import Fields
    from truename.policy.principal import Principal

__all__ = ["PrincipalLimits", "Quotas"]


@dataclass(frozen=True, kw_only=True)
class PrincipalLimits:
    """The limits of one principal; None means that there is none."""

    calls_per_minute: int | None = setting(
        None, COUNT, "Calls of tools that one principal may make in a minute.", unit="calls", live=True
    )
    concurrent_calls: int | None = setting(
        None, COUNT, "Calls of tools that one principal may have running at a time.", unit="calls", live=True
    )

    @property
    def is_set(self) -> bool:
        """Whether there is any limit."""
        return self.calls_per_minute is not None or self.concurrent_calls is not None


def _read_limits(_: str, table: Fields) -> PrincipalLimits:
    return PrincipalLimits(**read_table(table, rows_of(PrincipalLimits)))


def _by(key: str) -> FieldType:
    """Return the type of tables by the names of principals or groups, which any text may be."""
    rows = rows_of(PrincipalLimits)
    plain = partial(plain_table, rows=rows)
    return FieldType(
        name=f"tables by {key}",
        read=partial(read_named, one=_read_limits, any_name=True),
        schema={"type": "object", "additionalProperties": table_schema(rows)},
        plain=lambda tables: {name: plain(value) for name, value in sorted(tables.items())},
        rows=rows,
        key=key,
    )


@dataclass(frozen=True, kw_only=True)
class Quotas(PrincipalLimits):
    """The limits of each principal; those of its groups and its own replace the general ones, one by one.

    A limit is for each principal, also one of a group. Of several groups the largest limit counts.

    >>> from truename.policy.principal import Principal
    >>> quotas = Quotas(calls_per_minute=60, groups={"batch": PrincipalLimits(calls_per_minute=600)})
    >>> [quotas.of(Principal(name="ann", groups=frozenset(groups))).calls_per_minute for groups in ((), {"batch"})]
    [60, 600]
    """

    groups: Mapping[str, PrincipalLimits] = setting(
        EMPTY, _by("GROUP"), "Limits of each principal of a group.", live=True
    )
    principals: Mapping[str, PrincipalLimits] = setting(
        EMPTY, _by("PRINCIPAL"), "Limits of single principals, as the audit log names them.", live=True
    )

    def of(self, principal: Principal) -> PrincipalLimits | None:
        """Return the limits of a principal; None if it has none."""
        if not self.groups and not self.principals:
            return self if self.is_set else None
        groups = [self.groups[name] for name in principal.groups & self.groups.keys()]
        own = [self.principals[principal.key]] if principal.key in self.principals else []
        found = PrincipalLimits(
            calls_per_minute=_nearest("calls_per_minute", own, groups, [self]),
            concurrent_calls=_nearest("concurrent_calls", own, groups, [self]),
        )
        return found if found.is_set else None


def _nearest(name: str, *levels: list[PrincipalLimits]) -> int | None:
    """Return the largest limit of the first level that has one."""
    for level in levels:
        limits: list[int] = [limit for one in level if (limit := getattr(one, name)) is not None]
        if limits:
            return max(limits)
    return None
