"""Tables of a ledger whose rows are read when asked: a ledger of a million names opens as fast as an empty one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

__all__ = ["AllRows", "LedgerRows", "RowGroup", "RowKey", "RowSource", "UnstoredRows"]

V = TypeVar("V")
RowKey = tuple[Any, ...]


class UnstoredRows(NamedTuple):
    """Rows to store, by the last part of their keys: new ones, and ones that may be stored with other values."""

    prefix: RowKey
    added: dict[Any, Any]
    changed: dict[Any, Any]


class RowSource(Protocol):
    """A source of the rows that are not in memory."""

    def read(self, table: str, key: RowKey) -> Any:
        """Return the value of one row, None if there is none."""
        ...

    def read_many(self, table: str, prefix: RowKey, lasts: Collection[Any]) -> Mapping[Any, Any]:
        """Return the values of those rows that there are, of keys that are ``prefix`` and one of these parts."""
        ...

    def under(self, table: str, prefix: RowKey) -> Iterable[tuple[RowKey, Any]]:
        """Return the rows whose keys begin with ``prefix``."""
        ...


class LedgerRows(Generic[V]):
    """One table of a ledger: rows are read when asked, and stay in memory.

    Without a source all rows are in memory. Rows whose keys differ only in their last part are a `RowGroup`.
    """

    __slots__ = ("_groups", "is_stored", "is_whole", "source", "table", "unstored")

    def __init__(self, table: str, source: RowSource | None, *, is_stored: bool) -> None:
        self.table = table
        self.source = source
        self.is_whole = source is None
        self.is_stored = is_stored
        # The groups with rows that are not stored yet.
        self.unstored: list[RowGroup[V]] = []
        self._groups: dict[RowKey, RowGroup[V]] = {}

    def group(self, *prefix: object) -> RowGroup[V]:
        """Return the rows whose keys are ``prefix`` and one part more."""
        found = self._groups.get(prefix)
        if found is None:
            found = self._groups.setdefault(prefix, RowGroup(self, prefix))
        return found

    def lasts(self, *prefix: object) -> tuple[Any, ...]:
        """Return the last parts of the prefixes of all groups in memory that begin with ``prefix``."""
        return tuple(known[-1] for known in list(self._groups) if known[:-1] == prefix)

    def get(self, *key: object) -> V | None:
        """Return the value of a row, None if there is none."""
        found: V | None = self.group(*key[:-1]).get(key[-1])
        return found

    def put(self, value: V, *key: object) -> None:
        """Set a row; it is stored with the events that set it."""
        self.group(*key[:-1]).put(key[-1], value)

    def add(self, value: V, *key: object) -> None:
        """Set a row that is not stored; see `RowGroup.add`."""
        self.group(*key[:-1]).add(key[-1], value)

    def absorb(self, key: RowKey, value: V) -> None:
        """Take over a row as it is stored."""
        self.group(*key[:-1]).rows[key[-1]] = value

    def take_unstored(self) -> list[UnstoredRows]:
        """Return the rows that were set since the last call, to store them."""
        found = [UnstoredRows(group.prefix, group.added, group.changed) for group in self.unstored]
        for group in self.unstored:
            group.added, group.changed = {}, {}
        self.unstored = []
        return found

    def under(self, *prefix: object) -> list[tuple[RowKey, V]]:
        """Return the rows whose keys begin with ``prefix``; all of them without one."""
        if not self.is_whole and self.source is not None:
            for key, value in self.source.under(self.table, prefix):
                self.group(*key[:-1]).rows.setdefault(key[-1], value)
            self.is_whole = not prefix
        whole = self._groups.get(prefix)
        if whole is not None:
            return [((*prefix, last), value) for last, value in list(whole.rows.items())]
        length = len(prefix)
        # Each dictionary is copied in one step, which no other thread can interrupt.
        return [
            ((*group.prefix, last), value)
            for group in list(self._groups.values())
            if group.prefix[:length] == prefix
            for last, value in list(group.rows.items())
        ]


class RowGroup(Mapping[Any, V]):
    """The rows of a table whose keys differ only in their last part, by that part; the mapping is live.

    Looking one up reads one, iterating reads all of them.
    """

    __slots__ = ("_absent", "_table", "added", "changed", "prefix", "rows")

    def __init__(self, table: LedgerRows[V], prefix: RowKey) -> None:
        self._table = table
        self.prefix = prefix
        self.rows: dict[Any, V] = {}
        # Keys that were read ahead last and have no row. Rows that came since are in memory, whoever wrote them.
        self._absent: set[Any] = set()
        # The rows to store: those that are new, and those that may be stored with other values.
        self.added: dict[Any, V] = {}
        self.changed: dict[Any, V] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a row, ``default`` if there is none."""
        found = self.rows.get(key)
        if found is not None:
            return found
        table = self._table
        if table.is_whole or table.source is None or key in self._absent:
            return default
        found = table.source.read(table.table, (*self.prefix, key))
        if found is None:
            return default
        self.rows[key] = found
        return found

    def read_ahead(self, keys: Iterable[Any]) -> None:
        """Read the rows of these keys at once; a large table is asked once for all of them, and not for each."""
        table = self._table
        if table.is_whole or table.source is None:
            return
        wanted = dict.fromkeys(keys)
        missing = [key for key in wanted if key not in self.rows and key not in self._absent]
        if not missing:
            return
        for key, value in table.source.read_many(table.table, self.prefix, missing).items():
            # Another thread may have taken over a later one meanwhile.
            self.rows.setdefault(key, value)
        self._absent = {key for key in wanted if key not in self.rows}

    def forget(self, key: Any) -> None:
        """Have a row read again when it is asked for."""
        self.rows.pop(key, None)
        self._absent.discard(key)

    def put(self, key: Any, value: V) -> None:
        """Set a row; it is stored with the events that set it."""
        self.rows[key] = value
        if self._table.is_stored:
            if not (self.added or self.changed):
                self._table.unstored.append(self)
            (self.added if key in self.added else self.changed)[key] = value

    def add(self, key: Any, value: V) -> None:
        """Set a row that was looked up and is not stored. If it is, storing it fails: nobody else's is replaced."""
        self.rows[key] = value
        if self._table.is_stored:
            if not (self.added or self.changed):
                self._table.unstored.append(self)
            self.added[key] = value

    def __getitem__(self, key: Any) -> V:
        found: V | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._read()))

    def __len__(self) -> int:
        return len(self._read())

    def items(self) -> Any:
        """Return all rows, as pairs."""
        return self._read().copy().items()

    def values(self) -> Any:
        """Return the values of all rows."""
        return self._read().copy().values()

    def __repr__(self) -> str:
        return repr(self._read())

    def _read(self) -> dict[Any, V]:
        if not self._table.is_whole:
            self._table.under(*self.prefix)
        return self.rows


def _as_it_is(value: object) -> Any:
    return value


def _nothing(_key: object) -> bool:
    return False


class AllRows(Mapping[Any, V]):
    """All rows of a table by key, shown in another form, without those that are hidden; a key of one part is that part.

    Iterating reads all of them, looking one up reads one.
    """

    __slots__ = ("_hides", "_rows", "_show")

    def __init__(
        self,
        rows: LedgerRows[Any],
        *,
        hides: Callable[[Any], bool] = _nothing,
        show: Callable[[Any], V] = _as_it_is,
    ) -> None:
        self._rows = rows
        self._hides = hides
        self._show = show

    def __getitem__(self, key: object) -> V:
        found: V | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: object, default: object = None) -> Any:
        """Return the value of a row, ``default`` if there is none."""
        if self._hides(key):
            return default
        found = self._rows.get(*(key if type(key) is tuple else (key,)))
        return default if found is None else self._show(found)

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[object]:
        return iter(dict(self._pairs()))

    def __len__(self) -> int:
        return sum(1 for _ in self._pairs())

    def items(self) -> Any:
        """Return all rows, as pairs."""
        return dict(self._pairs()).items()

    def values(self) -> Any:
        """Return the values of all rows."""
        return dict(self._pairs()).values()

    def _pairs(self) -> Iterator[tuple[object, V]]:
        for key, value in self._rows.under():
            short = key if len(key) > 1 else key[0]
            if not self._hides(short):
                yield short, self._show(value)

    def __repr__(self) -> str:
        return repr(dict(self._pairs()))
