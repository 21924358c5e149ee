"""Mutants are what they say, and survivors with a reason are of the code of today."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.mutants.__main__ import GROUPS, OF_GROUP, ROOT, files, named, of_group, survivors
from tests.mutants.cover import Cover
from tests.mutants.mutations import Mutant, mutants, mutants_of
from tests.mutants.planting import Outcome, Planting
from tests.mutants.runner import NOT_FOUND, Runner
from tests.strategies import ALL

LATE = "windowlib/model/lateness.py"
CODE = '''
def of(a: int = 1, *, b: bool = True) -> int:
    """Texts stay: a < b."""
    ü = "ü < a" if a < 2 and not b else f"{a + 1}"
    log(a)
    return max(a, b) - len(ü)
'''


def test_every_kind_of_change() -> None:
    found = {(mutant.line, " ".join(mutant.old.split()), mutant.new) for mutant in mutants(CODE)}
    assert found == {
        (2, "1", "(1 + 1)"),
        (2, "True", "False"),
        (4, "a < 2 and not b", "not (a < 2 and not b)"),
        (4, "<", "<="),
        (4, "2", "(2 + 1)"),
        (4, "and", "or"),
        (4, "not b", "bool(b)"),
        (5, "log(a)", "pass"),
        (6, "max(a, b) - len(ü)", "None"),
        (6, "max", "min"),
        (6, "-", "+"),
    }


def test_rules_in_the_sql_of_plans_are_changed() -> None:
    text = (ROOT / "windowlib/plans/sessions.py").read_text()
    of_sql = {*mutants_of(ROOT / "windowlib/plans/sessions.py")} - {*mutants(text)}
    planted = {mutant.planted(text).splitlines()[mutant.line - 1].strip() for mutant in of_sql}
    assert 'dropped = f"{last} < {LATE_IN}"' in planted
    assert 'kept = f"NOT ({dropped}) AND {last} >= {LATE_OUT}"' in planted
    assert '"window_start_ms": "max(window_start_ms)",' in planted
    assert not [mutant for mutant in of_sql if "<" in mutant.old and mutant.planted(text).count("<=<")]


def test_every_mutant_is_python() -> None:
    for file in [*files([])][:: 1 if ALL else 15]:
        text = file.read_text()
        for mutant in mutants_of(file)[:: 7 if ALL else 35]:
            compile(mutant.planted(text), file.name, "exec")


def test_survivors_with_a_reason_are_there() -> None:
    known: dict[str, set[tuple[str, str, str]]] = {}
    for file, line, change in survivors():
        if file not in known:
            known[file] = {named(file, mutant) for mutant in mutants_of(ROOT / file)}
        assert (file, line, change) in known[file], f"{file} has no such mutant any more: {line}: {change}"


def test_a_seed_draws_the_same_of_each_group_again_and_enough() -> None:
    for group in GROUPS:
        drawn = of_group(group, 1)
        assert len({*drawn}) == OF_GROUP
        assert drawn == of_group(group, 1) != of_group(group, 2)


def test_the_quickest_tests_come_first_and_those_on_an_engine_last() -> None:
    tests = frozenset({"on sail", "slow", "quick"})
    cover = Cover(
        {LATE: {31: tests, 40: frozenset({"other"})}},
        {"on sail": 0.1, "slow": 0.3, "quick": 0.2},
        frozenset({"on sail"}),
    )
    assert cover.tests(LATE, 31, 31) == ["quick", "slow", "on sail"]
    assert cover.tests(LATE, 1, 1) == ["other", "quick", "slow", "on sail"]  # runs at the import: those of the file


ONE = """
import pytest
def test_good(): pass
def test_bad(): assert False
@pytest.fixture
def broken(): assert False
def test_early(broken): pass
"""
RIGHT = [f"{LATE}::windowlib.model.lateness.cleanup_time_ms", f"{LATE}::windowlib.model.lateness.is_late"]


@pytest.fixture(scope="module")
def planting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planting]:
    """With a test that fails in any case, one that is gone, and doctests, in this order, of all lines of a module."""
    of_a_line = frozenset({"test_two.py::test_bad", "test_two.py::test_gone", *RIGHT})
    lines = dict.fromkeys(range(200), of_a_line)
    seconds = {"test_two.py::test_bad": 0.1, "test_two.py::test_gone": 0.2, **dict.fromkeys(RIGHT, 0.3)}
    with Planting(tmp_path_factory.mktemp("planted"), Cover({LATE: lines}, seconds), 10) as planting:
        (planting.folder / "test_two.py").write_text("def test_bad(): assert False\n")
        yield planting


@pytest.fixture
def runner(planting: Planting) -> Runner:
    return planting.runner


ON_DEMAND = pytest.mark.long("nothing covers it in make test: mutants are planted on demand, whose kinds are there")


@ON_DEMAND
def test_the_runner_says_each_time_what_failed(runner: Runner) -> None:
    (runner.folder / "test_one.py").write_text(ONE)
    (runner.folder / "broken.py").write_text("import nothing_of_this_name\n")
    tests = [f"test_one.py::test_{name}" for name in ("good", "bad", "early")]
    for test, code, failed in zip(tests, (0, 1, 1), ([], tests[1:2], tests[2:]), strict=True):
        assert [runner.exit_code([test]), runner.failed(tests)] == [code, failed]
    assert [runner.exit_code(["broken.py"]) != 0, runner.failed(["broken.py::a"])] == [True, []]
    assert [runner.exit_code(tests[:1]), runner.failed(tests)] == [0, []]


@ON_DEMAND
def test_the_runner_ends_what_does_not_end_and_names_tests_that_are_gone(runner: Runner) -> None:
    (runner.folder / "test_three.py").write_text("def test_good(): pass\ndef test_endless():\n    while True: pass\n")
    assert runner.exit_code(["test_three.py"], limit_seconds=2) == -signal.SIGKILL
    gone = ["test_three.py::test_gone[1]", "test_three.py::test_gone_too"]
    assert runner.exit_code([*gone, "test_three.py::test_good"]) == NOT_FOUND
    assert runner.missing([*gone, "test_three.py::test_good"]) == gone


@ON_DEMAND
def test_a_mutant_is_noticed_by_tests_that_pass_without_it(planting: Planting) -> None:
    late = mutants_of(ROOT / LATE)
    noticed = next(one for one in late if one.old == "<=")
    assert planting.outcome(LATE, noticed) == Outcome(LATE, noticed, noticed=True, tests=4)
    assert planting.wrong == {"test_two.py::test_bad"}
    comment = Mutant(1, 0, 0, "", "# nothing that a test could notice\n")
    assert not planting.outcome(LATE, comment).noticed
    assert (planting.folder / LATE).read_text() == (ROOT / LATE).read_text()
