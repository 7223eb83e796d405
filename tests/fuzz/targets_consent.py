"""Consent to configurations that were found: whatever is done to its file, it is what was given or none at all."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.fuzz.judging import must
from tests.fuzz.mutation import mutated, mutated_bytes, text
from truename.config.consent import ConsentStore

if TYPE_CHECKING:
    from random import Random

__all__ = ["TARGETS"]


def consents(chance: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = ConsentStore(Path(folder, "allowed"))
        path, other = Path(folder, "a", "truename.toml"), Path(folder, "b", "truename.toml")
        store.give(path, "1" * 64, "2" * 64)
        given = store.get(path)
        must(given is not None and (given.digest, given.whole) == ("1" * 64, "2" * 64), "what was given is kept")
        file = store.file(path)
        raw = mutated_bytes(chance, file.read_bytes())
        if chance.random() < 0.3:
            raw = mutated(chance, raw.decode("utf-8", "replace")).encode("utf-8", "surrogatepass")
        if chance.random() < 0.1:
            raw = raw.replace(b"truename.toml", text(chance)[:200].encode("utf-8", "surrogatepass"))
        file.write_bytes(raw)
        found = store.get(path)
        must(found is None or found.path == str(path.resolve()), "a consent is for its own path")
        must(store.get(other) is None, "and for no other")
        must(all(store.file(Path(one.path)) == file for one in store), "a consent lies where its path says")
        # A consent that is copied to where another path's would be counts for neither.
        store.file(other).write_bytes(raw)
        store.file(other).chmod(0o600)
        must(store.get(other) is None, "a consent that was moved is none")
        store.revoke(path)
        must(store.get(path) is None, "what was taken back is gone")


TARGETS: Final = (consents,)
