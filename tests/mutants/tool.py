"""Run mutmut in the directory of one target, and write down what became of each mutant (`mutants.json`).

A process of its own: the tests that it runs belong to the copy that mutmut makes, and not to this folder. Texts for
people stay as they are (`_is_prose`): that one is worded in another way decides nothing.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WORDS: Final = re.compile(r"[A-Za-z'},]+ .*[A-Za-z]{2}", re.DOTALL)

# Not installed where types are checked.
cst: Any = import_module("libcst")
mutators: Any = import_module("mutmut.mutation.mutators")
tool: Any = import_module("mutmut.__main__")
diff_apply: Any = import_module("mutmut.mutation.diff_apply")
isolation: Any = import_module("mutmut.workers.isolation")


def _is_prose(node: Any) -> bool:
    """Tell whether a literal is a text of several words."""
    literals = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
    return isinstance(node, literals) and _WORDS.search(cst.Module([]).code_for_node(node)[1:-1]) is not None


def _sparing(operator: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Return an operator that leaves texts for people alone."""

    def spared(node: Any) -> Iterator[Any]:
        if not (_is_prose(node) or _is_prose(getattr(node, "value", None))):
            yield from operator(node)

    return spared


def _arguments(node: Any) -> Iterator[Any]:
    """Leave out or replace arguments, but for those that are texts for people."""
    kept = [at for at, argument in enumerate(node.args) if not _is_prose(argument.value)]
    for at in kept:
        argument = node.args[at]
        if argument.star == "" and not cst.matchers.matches(argument.value, cst.matchers.Name("None")):
            none = argument.with_changes(value=cst.Name("None"))
            yield node.with_changes(args=[*node.args[:at], none, *node.args[at + 1 :]])
    if len(node.args) > 1:
        for at in kept:
            yield node.with_changes(args=[*node.args[:at], *node.args[at + 1 :]])


def _choose() -> None:
    spared = {mutators.operator_string, mutators.operator_assignment}
    for number, (kind, operator) in enumerate(mutators.mutation_operators):
        if operator is mutators.operator_arg_removal:
            mutators.mutation_operators[number] = (kind, _arguments)
        elif operator in spared:
            mutators.mutation_operators[number] = (kind, _sparing(operator))


def _no_alarm(*_: object) -> None:
    """Leave it to the limit of processor time, which the kernel keeps, to end a mutant that goes on for ever.

    mutmut's own alarm is by a process's number, also after the process has ended: by then it may be any other's.
    """


def main() -> None:
    import_module("libcst.matchers")
    _choose()
    isolation.register_timeout = _no_alarm
    tool.cli.main(args=["run", *sys.argv[1:]], standalone_mode=False)
    found = {}
    for path in tool.walk_mutatable_files():
        data = tool.SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            found[name] = {"code": code, "diff": diff_apply.get_diff_for_mutant(name, path=path)}
    Path("mutants.json").write_text(json.dumps(found, indent=1), "utf-8")


if __name__ == "__main__":
    main()
