"""A state database on a full disk: what is recorded is read, and written again when there is room."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.state_database import KILLED, SCHEMA, put, words
from truename.storage import open_database

if TYPE_CHECKING:
    from pathlib import Path


_FULL = """
import resource, signal, sys
from pathlib import Path
from tests.support.state_database import SCHEMA, put
from truename.errors import StoreError
from truename.storage import open_database
file = open_database(sys.argv[1], SCHEMA)
put(file, "kept")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
# The file itself has no room; then neither has the journal of the change.
for room in Path(sys.argv[1]).stat().st_size + 100, 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, no_limit[1]))
    try:
        put(file, *(f"{n}" * 500 for n in range(100)))
    except StoreError as error:
        print(error.code)
resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
put(file, "again")
print("kept")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
def test_a_full_disk_leaves_what_was_and_what_comes_when_there_is_room_is_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "x")], check=False, capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (["unusable", "unusable", "kept"], "")
    file = open_database(tmp_path / "x", SCHEMA)
    assert words(file) == ["again", "kept"]
    file.close()


_NO_ROOM = """
import os, resource, signal, sys
from pathlib import Path
from tests.support.state_database import SCHEMA, put, words
from truename.errors import StoreError
from truename.storage import open_database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, no_limit[1]))
file = open_database(sys.argv[1], SCHEMA)
print(words(file), bool(file.readonly_because))
try:
    put(file, "b")
except StoreError as error:
    print(error.code)
print(words(file))
resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
put(file, "b")
print(words(file), bool(file.readonly_because))
file.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
@pytest.mark.parametrize("before", ["closed", "killed"])
def test_a_start_on_a_full_disk_reads_all_and_writes_when_there_is_room(tmp_path: Path, before: str) -> None:
    if before == "closed":
        file = open_database(tmp_path / "x", SCHEMA)
        put(file, "whole")
        file.close()
    else:
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x")], check=False)
        assert (tmp_path / "x-wal").exists()
    done = subprocess.run(
        [sys.executable, "-c", _NO_ROOM, str(tmp_path / "x")], check=False, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["['whole'] True", "unusable", "['whole']", "['b', 'whole'] False"]
    assert done.stderr == ""


_GONE_FOR_A_WHILE = """
import os, resource, sys
from tests.support.state_database import SCHEMA, put, words
from truename.errors import StoreError
from truename.storage import open_database

path = sys.argv[1]
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, no_limit[1]))
file = open_database(path, SCHEMA)
assert file.readonly_because
os.rename(path, path + ".away")
for _ in range(2):
    try:
        put(file, "lost")
    except StoreError as error:
        print(error.problem.partition(",")[0])
os.rename(path + ".away", path)
print(words(file), file.has_news())
resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
put(file, "b")
print(words(file), bool(file.readonly_because))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
@pytest.mark.parametrize("before", ["closed", "killed"])
def test_a_try_to_write_again_that_fails_leaves_what_can_be_read(tmp_path: Path, before: str) -> None:
    if before == "closed":
        file = open_database(tmp_path / "x", SCHEMA)
        put(file, "whole")
        file.close()
    else:
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x")], check=False)
    done = subprocess.run(
        [sys.executable, "-c", _GONE_FOR_A_WHILE, str(tmp_path / "x")], check=False, capture_output=True, text=True
    )
    assert done.stderr == ""
    gone = "it was moved"
    assert done.stdout.splitlines() == [gone, gone, "['whole'] True", "['b', 'whole'] False"]
