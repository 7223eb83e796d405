"""The table of mutants that survive can be read, and is about what there is."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.mutants.report import report
from tests.mutants.survivors import ANY, Mutant, mutant, named
from tests.mutants.targets import SHORT, TARGETS
from tests.shared import ROOT

MODULES = [module for target in TARGETS for module in target.modules]


@cache
def functions(module: str) -> frozenset[str]:
    path = ROOT / "src" / f"{module.replace('.', '/')}.py"
    body = ast.parse(path.read_text("utf-8")).body
    methods = {
        f"{one.name}.{inner.name}"
        for one in body
        if isinstance(one, ast.ClassDef)
        for inner in one.body
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return frozenset({one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)} | methods)


@pytest.mark.parametrize("one", named(), ids=str)
def test_each_survivor_that_is_named_is_in_a_function_that_there_is(one: Mutant) -> None:
    assert one.module in MODULES
    assert one.function in functions(one.module)
    assert one.text == one.text.strip() != ""


def test_each_survivor_that_is_named_has_a_reason() -> None:
    assert [one for one, reason in named().items() if len(reason.split()) < 3] == []


def test_each_target_and_each_of_its_tests_is_there() -> None:
    assert len(set(MODULES)) == len(MODULES)
    assert set(SHORT) <= set(MODULES)
    assert all(functions(module) for module in MODULES)
    assert [path for target in TARGETS for path in target.tests if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("name", "diff", "expected"),
    [
        (
            "truename.auth.inbound.static_tokens.xǁTokenStoreǁstands__mutmut_2",
            "--- a\n+++ a\n@@ -1 +1 @@\n def stands():\n-    return x\n+    return y",
            Mutant("truename.auth.inbound.static_tokens", "TokenStore.stands", "return y"),
        ),
        ("truename.x.x__words__mutmut_1", "--- a\n+++ a\n-    b,", Mutant("truename.x", "_words", "without b,")),
    ],
)
def test_a_mutant_is_known_by_its_function_and_its_line(name: str, diff: str, expected: Mutant) -> None:
    assert mutant(name, diff) == expected


ONE, TWO, OTHER = Mutant("m", "f", "x = 1"), Mutant("m", "f", "x = 2"), Mutant("m", "g", "x = 1")


def test_what_is_neither_killed_nor_named_is_told() -> None:
    lines, errors = report({"m": [(1, ONE), (0, TWO), (33, OTHER), (36, ONE)]}, [TWO])

    assert errors == [f"survives: {OTHER}"]
    assert [" ".join(line.split()) for line in lines] == [
        f"{name} 4 mutants: 1 killed, 2 survived (1 named), 1 timed out" for name in ("m", "all")
    ]


def test_what_is_named_and_killed_is_told() -> None:
    assert report({"m": [(1, ONE), (0, TWO)]}, [ONE, TWO])[1] == [f"is named, and does not survive: {ONE}"]


def test_a_whole_function_can_be_named_if_something_of_it_survives() -> None:
    whole = Mutant("m", "f", ANY)

    assert report({"m": [(0, ONE), (0, TWO)]}, [whole])[1] == []
    assert report({"m": [(1, ONE), (0, OTHER)]}, [whole, OTHER])[1] == [f"is named, and does not survive: {whole}"]


def test_a_mutant_whose_judge_broke_down_is_told() -> None:
    assert report({"m": [(-11, ONE), (None, TWO)]}, [])[1] == [f"ended with -11: {ONE}", f"ended with None: {TWO}"]


def test_what_is_named_of_modules_that_were_not_changed_is_no_matter() -> None:
    assert report({"m": [(1, ONE)]}, [Mutant("other", "f", "x = 1")])[1] == []
