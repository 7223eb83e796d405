"""Run the Python blocks of one page in one scope: a process that reads blocks and writes what was wrong, in JSON lines.

The runner starts it as a script in the directory of the page, so it imports nothing of the tests.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import json
import re
import sys
import tokenize
import traceback
from typing import Any

SCOPE: dict[str, Any] = {"__name__": "__main__"}


def comments(code: str) -> dict[int, str]:
    """Return the comment at the end of each line that has one."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {token.start[0]: token.string[1:].strip() for token in tokens if token.type == tokenize.COMMENT}


def evaluated(node: ast.Module | ast.Expression, mode: str, name: str, runner: asyncio.Runner) -> Any:
    code = compile(node, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(code, SCOPE)
    return runner.run(value) if code.co_flags & inspect.CO_COROUTINE else value


def is_value(expected: str, value: object, printed: str) -> bool:
    """Return whether a comment says this value: its repr or str, an equal expression, or the printed text."""
    pattern = ".*".join(map(re.escape, expected.split("…")))
    shown = [repr(value), str(value)] if value is not None or not printed else [printed.rstrip("\n")]
    if any(re.fullmatch(pattern, text, re.DOTALL) for text in shown):
        return True
    try:
        return bool(eval(expected, SCOPE) == value)
    except Exception:  # noqa: BLE001 - a comment may be any text
        return False


def run(code: str, line: int, name: str, runner: asyncio.Runner) -> None:
    """Run a block. Raises AssertionError for an expression whose value is not the one that its comment says."""
    tree, said = ast.parse(code), comments(code)
    ast.increment_lineno(tree, line)
    for statement in tree.body:
        assert statement.end_lineno is not None
        expected = said.get(statement.end_lineno - line)
        if not isinstance(statement, ast.Expr) or not expected:
            evaluated(ast.Module([statement], []), "exec", name, runner)
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                value = evaluated(ast.Expression(statement.value), "eval", name, runner)
        except Exception as error:  # noqa: BLE001 - a page may show an error as a value
            value = f"{type(error).__name__}: {error}"
        if not is_value(expected, value, printed.getvalue()):
            shown = printed.getvalue().rstrip("\n") or (value if isinstance(value, str) else repr(value))
            raise AssertionError(f"line {statement.lineno}: the value is {shown!s}, the page says {expected}")


def run_session(code: str, line: int, name: str) -> None:
    """Run a session of the interactive interpreter. Raises AssertionError where it prints something else."""
    test = doctest.DocTestParser().get_doctest(code, SCOPE, name, name, line)
    test.globs = SCOPE
    report: list[str] = []
    if doctest.DocTestRunner().run(test, out=report.append, clear_globs=False).failed:
        raise AssertionError("".join(report))


def main() -> None:
    # The directory of the page, not that of this file.
    sys.path[0] = ""
    answers, sys.stdout = sys.stdout, sys.stderr
    with asyncio.Runner() as runner:
        for text in sys.stdin:
            block = json.loads(text)
            wrong = None
            try:
                if block["language"] == "pycon":
                    run_session(block["text"], block["line"], block["page"])
                else:
                    run(block["text"], block["line"], block["page"], runner)
            except AssertionError as error:
                wrong = str(error) or traceback.format_exc()
            except BaseException:  # noqa: BLE001 - sys.exit included
                wrong = traceback.format_exc()
            answers.write(json.dumps(wrong) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
