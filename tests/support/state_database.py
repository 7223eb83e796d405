"""An owner of tables in the state database: words, which are put and read."""

from __future__ import annotations

from truename.storage import Database, Schema

__all__ = ["KILLED", "SCHEMA", "put", "words"]

# A program that is killed in the middle of a change, after one that it made whole.
KILLED = """
import os, sys
from tests.support.state_database import SCHEMA, put
from truename.storage import Database, open_database
file = open_database(sys.argv[1], SCHEMA)
put(file, "whole")
with file.change() as data:
    data.executemany("INSERT INTO word (text) VALUES (?)", [(f"{n}" * 500,) for n in range(2_000)])
    os.kill(os.getpid(), 9)
"""

SCHEMA = Schema("word", (("CREATE TABLE word (text TEXT PRIMARY KEY)",),))


def words(file: Database) -> list[str]:
    return [text for (text,) in file.rows("SELECT text FROM word ORDER BY text")]


def put(file: Database, *texts: str) -> None:
    with file.change() as data:
        data.executemany("INSERT INTO word (text) VALUES (?)", [(text,) for text in texts])
