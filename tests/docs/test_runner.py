"""The runner of pages finds each way in which a page can be wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.runner import PageError, PageRun

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = """
```toml title="truename.toml"
[mcpServers.tickets]
command = "python"
args = ["tickets.py"]
```
```python title="more/words.py"
WORD = "pear"
```
```python
from pathlib import Path
word = "apple"
word.upper()  # 'APPLE'
print(word)  # apple
int("x")  # ValueError: invalid literal … 'x'
```
```python
import asyncio
await asyncio.sleep(0, word)  # 'apple'
```
```console
$ cat more/words.py
WORD = "pear"
$ cd more && export FRUIT=plum
$ echo "$FRUIT" && pwd \\
    && echo and more
plum
/home/you/demo/more
...
$ false
# exit status 1
$ printf 'a\\nb\\nc 12 d\\n'
a
...
c … d
```
```console
$ python -m http.server --bind 127.0.0.1 8765 &
$ python -c "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8765/').status)"
200
$ echo http://127.0.0.1:8765/
http://127.0.0.1:8765/
```
<!-- not run: needs Kubernetes -->
```console
$ kubectl apply -f /nowhere
```
```text
anything
```
1. In a list:

   ```json title="a.json"
   {"a": 1}
   ```
"""
WRONG = {
    "exits with 1, not 0": "```console\n$ false\n```",
    "exits with 0, not 3": "```console\n$ true\n# exit status 3\n```",
    "prints": "```console\n$ echo a\nb\n```",
    "the page says 2": "```python\n1  # 2\n```",
    "ZeroDivisionError": "```python\nx = 1 / 0\n```",
    "this json is refused": "```json\n{a: 1}\n```",
    "this yaml is refused": "<!-- not run: needs Kubernetes -->\n\n```yaml\na: [\n```",
    "this toml is refused": '```toml\n[policy]\ndefualt = "deny"\n```',
    "a block with no language": "```\nx\n```",
    "a block with language 'sh'": "```sh\nls\n```",
    "names no port": "```console\n$ sleep 60 &\n```",
    "does not serve": "```console\n$ echo 127.0.0.1:8750 &\n```",
}


def test_a_page_that_says_what_happens_passes(tmp_path: Path) -> None:
    PageRun("page.md", tmp_path).run(RIGHT)


@pytest.mark.parametrize("problem", WRONG)
def test_a_page_that_says_something_else_fails_with_its_line(problem: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=rf"page\.md:\d+: [\s\S]*{re.escape(problem)}"):
        PageRun("page.md", tmp_path).run(WRONG[problem])
