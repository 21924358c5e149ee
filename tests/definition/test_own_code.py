"""Classes of the user: found next to the definition, refused with a reason, shipped to other machines."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.window_toml import AGGREGATES, FUNCTION, GLOBAL, SESSION, TUMBLING, definition
from windowlib import CountTrigger, PurgingTrigger, TimeWindow, TriggerResult
from windowlib.definition import user_classes as own_code
from windowlib.definition.definition import Definition, InvalidDefinition
from windowlib.model.errors import InvalidSpec

OWN = """
from windowlib import TimeWindow, TriggerResult


class Weeks:
    merges = False

    def __init__(self, first_ms=0):
        self.first_ms = first_ms

    def assign(self, timestamp_ms, value=None, key=None):
        return [TimeWindow(self.first_ms, self.first_ms + 7)]


class Spike:
    merges = True
    window_kind = "any"

    def __init__(self, limit=3):
        self.limit = limit

    def on_element(self, value, timestamp_ms, context):
        return TriggerResult.FIRE if value["value"] > self.limit else TriggerResult.CONTINUE

    def on_event_time(self, time_ms, context):
        return TriggerResult.CONTINUE

    def on_processing_time(self, time_ms, context):
        return TriggerResult.CONTINUE

    def on_merge(self, merged, context):
        pass

    def clear(self, context):
        pass


class Alone(Spike):
    merges = False


class Endless(Spike):
    window_kind = "global"


class Odd:
    def evict_before(self, elements, window):
        return elements[::2]

    def evict_after(self, elements, window):
        return elements


class Top:
    def process(self, contents, context):
        return [{"page": "a", "seen": len(contents)}]

    def clear(self, context):
        pass


class Median:
    def create_accumulator(self):
        return []

    def add(self, held, value):
        return [*held, value["value"]]

    def merge(self, a, b):
        return a + b

    def get_result(self, held):
        return sorted(held)[len(held) // 2]


class Half:
    def create_accumulator(self):
        return []

    def add(self, held, value):
        return held


class Nothing:
    pass


class Choosy:
    def __init__(self, limit, *, unit="ms"):
        raise ValueError("no limit is good enough")


NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a definition, with `own.py`; its modules are unloaded afterwards."""
    before = set(sys.modules)
    here = tmp_path / "here"
    here.mkdir()
    (here / "own.py").write_text(OWN, encoding="utf-8")
    yield here
    ours = {path.stem for path in here.iterdir()} if here.exists() else {"own", "limits", "packed"}
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ours:
            del sys.modules[name]


def refused(found: Definition) -> str:
    """Reason why the code of a definition cannot be used, without the file name."""
    with pytest.raises(InvalidDefinition) as caught:
        _ = found.spec
    return str(caught.value).removeprefix(f"{found.file}: ")


# -- what is made ---------------------------------------------------------------------------------------------------


def test_every_role(folder: Path) -> None:
    window = (
        'type = "custom"\nassigner = "own:Weeks"\nassigner_parameters = {first_ms = 5}\n'
        'trigger = {type = "custom", class = "own:Spike", parameters = {limit = 9}}\n'
        'evictor = {type = "custom", class = "own:Odd"}\n'
    )
    path = list(sys.path)
    spec = definition(folder, window + FUNCTION, "").spec
    assert sys.path == path
    trigger: Any = spec.trigger
    assert spec.assigner.assign(0) == [TimeWindow(5, 12)]
    assert trigger.limit == 9
    assert [type(one).__name__ for one in (spec.evictor, spec.process)] == ["Odd", "Top"]
    assert spec.aggregate is None


def test_a_trigger_inside_others(folder: Path) -> None:
    spike = '{type = "custom", class = "own:Spike"}'
    trigger: Any = definition(folder, f'{SESSION}trigger = {{type = "purging", of = {spike}}}').spec.trigger
    assert isinstance(trigger, PurgingTrigger)
    assert type(trigger.of).__name__ == "Spike"


def test_a_process_function_and_an_aggregate_are_recognized(folder: Path) -> None:
    median = FUNCTION.replace("Top", "Median")
    by_process = definition(folder, TUMBLING + FUNCTION, "").spec
    by_aggregate: Any = definition(folder, TUMBLING + median, "").spec
    after_aggregates = definition(folder, TUMBLING + FUNCTION).spec
    assert (by_process.aggregate, by_process.keeps_elements) == (None, True)
    assert (type(by_aggregate.aggregate.own).__name__, by_aggregate.process) == ("Median", None)
    assert not after_aggregates.keeps_elements
    assert type(after_aggregates.process).__name__ == "Top"


def test_a_count_window_takes_a_function(folder: Path) -> None:
    spec = definition(folder, 'type = "sliding_count"\nsize = 4\nslide = 2\n' + FUNCTION, "").spec
    assert spec.trigger == CountTrigger(2)
    assert type(spec.process).__name__ == "Top"


def test_modules_in_packages_next_to_the_definition(folder: Path) -> None:
    (folder / "mine" / "deep").mkdir(parents=True)
    (folder / "mine" / "deep" / "own.py").write_text(OWN, encoding="utf-8")
    (folder / "packed").mkdir()
    (folder / "packed" / "__init__.py").write_text("from packed.of import Spike\n", encoding="utf-8")
    (folder / "packed" / "of.py").write_text(OWN, encoding="utf-8")
    for name in ("mine.deep.own:Spike", "packed.of:Spike", "packed:Spike"):
        spec = definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = "{name}"}}').spec
        assert type(spec.trigger).__name__ == "Spike"


def test_installed_modules_are_found_too(folder: Path) -> None:
    window = f'{GLOBAL}trigger = {{type = "custom", class = "windowlib:CountTrigger", parameters = {{n = 3}}}}\n'
    assert definition(folder, window).spec.trigger == CountTrigger(3)


def test_two_folders_with_modules_of_the_same_names(folder: Path) -> None:
    window = f'{GLOBAL}trigger = {{type = "custom", class = "own:Spike"}}\n'
    found, specs = [], []
    for name, limit in (("a", 11), ("b", 22)):
        (folder / name).mkdir()
        (folder / name / "limits.py").write_text(f"LIMIT = {limit}\n", encoding="utf-8")
        own = f"from limits import LIMIT\n{OWN.replace('limit=3', 'limit=LIMIT')}"
        (folder / name / "own.py").write_text(own, encoding="utf-8")
        found.append(definition(folder / name, window))
        specs.append(found[-1].spec)
    again = definition(folder / "a", window).spec
    triggers: list[Any] = [spec.trigger for spec in (*specs, again)]
    assert [trigger.limit for trigger in triggers] == [11, 22, 11]


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            '"own:Spikes"',
            "no class Spikes in {folder}/own.py; did you mean Spike?; classes there: Weeks, Spike, Alone, ",
        ),
        ('"own:NUMBER"', "no class NUMBER in {folder}/own.py; classes there: Weeks, "),
        ('"own:TriggerResult"', "own:TriggerResult cannot be created with no parameters: TypeError: "),
        ('"onw:Spike"', "no module onw in {folder}; did you mean own?; modules there: broken, empty, lacking, own"),
        ('"own.deep:Spike"', "no module own.deep in {folder}; did you mean own?; modules there: broken, "),
        ('"broken:Spike"', "broken cannot be imported: SyntaxError: '(' was never closed (broken.py, line 1)"),
        ('"lacking:Spike"', "lacking cannot be imported: No module named 'not_installed'"),
        ('"empty:Spike"', "no class Spike in {folder}/empty.py; classes there: no class"),
        (
            '"own:Spike", parameters = {limt = 3}',
            "own:Spike cannot be created with limt = 3: TypeError: Spike.__init__() got an unexpected keyword",
        ),
        (
            '"own:Choosy", parameters = {limit = true, unit = "s"}',
            'own:Choosy cannot be created with limit = true, unit = "s": ValueError: no limit is good enough',
        ),
        (
            '"own:Choosy"',
            "own:Choosy cannot be created with no parameters: TypeError: Choosy.__init__() missing 1 required",
        ),
        (
            '"own:Odd"',
            "own:Odd has no merges, window_kind, on_element, on_event_time, on_processing_time, on_merge, clear"
            " (needed by a trigger)",
        ),
    ],
)
def test_a_trigger_that_cannot_be_created(folder: Path, named: str, message: str) -> None:
    (folder / "broken.py").write_text("class Spike(\n", encoding="utf-8")
    (folder / "lacking.py").write_text("import not_installed\n", encoding="utf-8")
    (folder / "empty.py").write_text("", encoding="utf-8")
    path = list(sys.path)
    problem = refused(definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = {named}}}'))
    assert problem.startswith(f"window.trigger.class: {message.format_map({'folder': folder})}")
    assert sys.path == path


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (
            'type = "custom"\nassigner = "own:Odd"',
            "window.assigner: own:Odd has no merges, assign (needed by an assigner)",
        ),
        (
            GLOBAL + 'evictor = {type = "custom", class = "own:Top"}',
            "window.evictor.class: own:Top has no evict_before, evict_after (needed by an evictor)",
        ),
        (
            GLOBAL + FUNCTION.replace("Top", "Nothing"),
            "window.function: own:Nothing has no process, clear (needed by a process function), and no"
            " create_accumulator, add, merge, get_result (needed by an aggregate)",
        ),
        (
            GLOBAL + FUNCTION.replace("Top", "Half"),
            "window.function: own:Half has no merge, get_result (needed by an aggregate)",
        ),
        (
            GLOBAL + FUNCTION.replace("Top", "Median"),
            "aggregates: has no meaning with own:Median, because this class is an aggregate; leave one of the two out",
        ),
        (
            SESSION + 'trigger = {type = "custom", class = "own:Alone"}',
            'window.trigger: own:Alone has merges = False; need True, because windows of type "session" merge',
        ),
        (
            TUMBLING + 'trigger = {type = "purging", of = {type = "custom", class = "own:Endless"}}',
            'window.trigger.of: own:Endless has window_kind = "global"; need "any" or "time" for windows of type'
            ' "tumbling"',
        ),
        (
            GLOBAL + 'trigger = {type = "purging", of = {type = "custom", class = "own:Spikes"}}',
            "window.trigger.of.class: no class Spikes in ",
        ),
    ],
)
def test_classes_that_do_not_fit(folder: Path, window: str, message: str) -> None:
    assert refused(definition(folder, window)).startswith(message)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("json", "json is the name of one of Python's own modules; rename your module"),
        ("calendar", "calendar is the name of one of Python's own modules; rename your module"),
        ("windowlib", "windowlib is already the name of a module in use ("),
    ],
)
def test_names_that_are_taken(folder: Path, module: str, message: str) -> None:
    (folder / f"{module}.py").write_text(OWN, encoding="utf-8")
    loaded = sys.modules.get(module)
    problem = refused(definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = "{module}:Spike"}}'))
    assert problem.startswith(f"window.trigger.class: {message}")
    assert sys.modules.get(module) is loaded


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("import sys\n\nsys.exit(0)\n", "ending cannot be imported: SystemExit: 0 ({file}, line 3)"),
        ("x = 1\ny = x / 0\n", "ending cannot be imported: ZeroDivisionError: division by zero ({file}, line 2)"),
        (
            "class Spike:\n    def __init__(self):\n        raise SystemExit\n",
            "ending:Spike cannot be created with no parameters: SystemExit ({file}, line 3)",
        ),
    ],
)
def test_code_that_ends_the_program_or_fails_is_named_by_file_and_line(folder: Path, module: str, message: str) -> None:
    file = folder / "ending.py"
    file.write_text(module, encoding="utf-8")
    problem = refused(definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = "ending:Spike"}}'))
    assert problem == f"window.trigger.class: {message.format(file=file)}"


def test_a_name_of_an_installed_package_that_is_not_in_use_yet(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = folder.parent / "installed"
    (installed / "packed").mkdir(parents=True)
    (installed / "packed" / "__init__.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(own_code, "INSTALLED", [installed])
    (folder / "packed.py").write_text(OWN, encoding="utf-8")
    problem = refused(definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = "packed:Spike"}}'))
    assert problem == (
        f"window.trigger.class: packed is the name of an installed package (in {installed}); rename your module"
    )


# -- what is shipped ------------------------------------------------------------------------------------------------

ELSEWHERE = """
import importlib.util, pickle, sys
from windowlib import TriggerResult
assert not any(importlib.util.find_spec(name) for name in ("own", "limits", "packed"))
spec = pickle.load(sys.stdin.buffer)
answers = [spec.trigger.on_element({"value": value}, 0, None) for value in (39, 40, 41)]
assert answers[2] is TriggerResult.FIRE, answers
print([answer.name for answer in answers], type(spec.trigger).__module__)
"""


@pytest.mark.parametrize("module", ["own", "packed.of"])
def test_shipped_code_runs_where_its_file_is_not(folder: Path, module: str) -> None:
    """With a module next to it, and that of a package; classes of `windowlib` are those of the other process."""
    from pyspark import cloudpickle

    (folder / "limits.py").write_text(
        "LIMIT = 40\n\ndef limit(value):\n    return min(value, LIMIT)\n", encoding="utf-8"
    )
    own = f"import limits\n{OWN.replace('> self.limit', '> limits.limit(self.limit)')}"
    (folder / "packed").mkdir()
    (folder / "packed" / "of.py").write_text(own, encoding="utf-8")
    (folder / "own.py").write_text(own, encoding="utf-8")
    trigger = f'trigger = {{type = "custom", class = "{module}:Spike", parameters = {{limit = 99}}}}\n'
    found = definition(folder, GLOBAL + trigger)
    spec = found.spec
    by_name = pickle.dumps(spec)
    own_code.ship(found.own_classes, spec)
    by_value = cloudpickle.dumps(spec)  # type: ignore[no-untyped-call]
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(folder)
    assert _run(by_value, elsewhere) == (0, f"['CONTINUE', 'CONTINUE', 'FIRE'] {module}\n")
    assert _run(by_name, elsewhere)[0] == 1


def _run(pickled: bytes, folder: Path) -> tuple[int, str]:
    ended = subprocess.run([sys.executable, "-c", ELSEWHERE], input=pickled, cwd=folder, capture_output=True)
    return ended.returncode, ended.stdout.decode()


def test_shipping_leaves_installed_modules_where_they_are(folder: Path) -> None:
    from pyspark import cloudpickle

    spec = definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = "own:Spike"}}\n', AGGREGATES).spec
    own_code.ship(["own:Spike"], spec)
    shipped = cloudpickle.list_registry_pickle_by_value()
    assert "own" in shipped
    assert not {"windowlib", "tests"} & shipped
    assert b"windowlib.model.triggers" in cloudpickle.dumps(TriggerResult.FIRE)


@pytest.mark.parametrize(
    "own",
    [
        "import threading\nLOCK = threading.Lock()\n"
        + OWN.replace("self.limit = limit", "self.limit = limit\n\n    def held(self):\n        return LOCK"),
        "import threading\n" + OWN.replace("self.limit = limit", "self.limit = threading.Lock()"),
    ],
    ids=["of the module", "of the object"],
)
def test_code_that_cannot_be_shipped_is_named(folder: Path, own: str) -> None:
    (folder / "own.py").write_text(own, encoding="utf-8")
    spec = definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = "own:Spike"}}\n', AGGREGATES).spec
    with pytest.raises(
        InvalidSpec, match=r"^own:Spike cannot be sent to Spark's workers: .*lock.* Create locks, connections"
    ):
        own_code.ship(["own:Spike"], spec)


def test_prints_of_a_module_go_to_standard_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(
        "print('loaded')\n" + OWN.replace("self.limit = limit", "print('made')"), encoding="utf-8"
    )
    definition(folder, f'{GLOBAL}trigger = {{type = "custom", class = "own:Spike"}}\n', AGGREGATES).spec  # noqa: B018
    assert capsys.readouterr() == ("", "loaded\nmade\n")


def test_code_of_the_same_name_in_another_folder_is_not_used(folder: Path) -> None:
    other = folder.parent / "other"
    other.mkdir()
    for place in (folder, other):
        (place / "own.py").write_text(OWN, encoding="utf-8")
        definition(place, f'{GLOBAL}trigger = {{type = "custom", class = "own:Spike"}}\n', AGGREGATES).spec  # noqa: B018
    for place in (folder, other):
        assert [file.parent for file in own_code.code_files(["own:Spike"], place)] == [place]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (
            "set()",
            "must be JSON (numbers, strings, lists, dictionaries with strings as keys, None): Object of type set",
        ),
        (
            "{1: 0}",
            "must be JSON (numbers, strings, lists, dictionaries with strings as keys, None): the dictionary key 1",
        ),
        ("1 // 0", "cannot be created: ZeroDivisionError"),
    ],
)
def test_an_accumulator_that_cannot_be_kept_is_refused_before_any_batch(folder: Path, first: str, why: str) -> None:
    own = f"""
class Seen:
    def create_accumulator(self):
        return {first}
    def add(self, accumulator, value): ...
    def merge(self, a, b): ...
    def get_result(self, accumulator): ...
"""
    (folder / "own.py").write_text(own, encoding="utf-8")
    problem = refused(
        definition(folder, f'{TUMBLING}function = "own:Seen"\nreads = ["page"]\noutput = {{n = "bigint"}}')
    )
    assert f"window.function: the first accumulator of own:Seen {why}" in problem
