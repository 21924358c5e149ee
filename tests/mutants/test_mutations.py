"""Mutants are what they say, and survivors with a reason are of the code of today."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

from tests.mutants.__main__ import ROOT, files, named, survivors
from tests.mutants.mutations import mutants, mutants_of
from tests.mutants.runner import Runner

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
    for file in files([]):
        text = file.read_text()
        for mutant in mutants_of(file)[::7]:
            compile(mutant.planted(text), file.name, "exec")


def test_survivors_with_a_reason_are_there() -> None:
    known: dict[str, set[tuple[str, str, str]]] = {}
    for file, line, change in survivors():
        if file not in known:
            known[file] = {named(file, mutant) for mutant in mutants_of(ROOT / file)}
        assert (file, line, change) in known[file], f"{file} has no such mutant any more: {line}: {change}"


def test_the_runner_says_each_time_what_failed(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    copytree(ROOT / "tests" / "mutants", tmp_path / "tests" / "mutants")
    (tmp_path / "test_one.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    runner = Runner(tmp_path)
    try:
        assert [runner.exit_code(["test_one.py::test_good"]), runner.failed] == [0, []]
        assert [runner.exit_code(["test_one.py"]), runner.failed] == [1, ["test_one.py::test_bad"]]
        assert [runner.exit_code(["broken.py"]), runner.failed] == [2, []]
        assert [runner.exit_code(["test_one.py::test_good"]), runner.failed] == [0, []]
    finally:
        runner.close()
