"""The rules of the house, as far as a program can hold them."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from zoo.registry import discover

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "zoo").rglob("*.py"))
OURS = [*CORE, *sorted((ROOT / "plugins").glob("*.py"))]
TEMPLATES = sorted(path for path in (ROOT / "zoo" / "templates").glob("*/*") if path.suffix != ".pyc")
TABLES = sorted((ROOT / "plugins" / "families").glob("*.yaml"))
PAGE = sorted((ROOT / "zoo" / "reporting" / "forms").glob("page.*"))
BUILT_IN = discover(plugins=False).entries

ORDINARY = set(
    "additive auto byte char constant copy learned linear logits naive none normed nothing parallel plain reverse "
    "scaled sort table text tied tokens transform untied encoder-only decoder-only classification loss accuracy exact".split()
)
"""Names in the catalogue that are words of every program or of the field as a whole."""


def words(text: str) -> str:
    """Spellings to look for names in: of `RMSNorm`, `-rms-norm-` and `-rmsnorm-`; of `rms_norm`, the first."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", text)
    return " ".join(f"-{re.sub('[^a-z0-9]+', '-', spelling.lower())}-" for spelling in (parted, text))


def names() -> re.Pattern:
    """What the catalogue calls its variants, and the classes and functions behind them."""
    spoken = {entry.variant.name for entry in BUILT_IN}
    written = {words(entry.variant.target.partition(":")[2]).split()[0].strip("-") for entry in BUILT_IN}
    return re.compile(f"-({'|'.join(sorted((spoken | written) - ORDINARY))})-")


def said(tree: ast.Module):
    """Every identifier and every text of a program that is not a docstring, with its line."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for field in ("id", "attr", "arg", "name", "module"):
            if isinstance(text := getattr(node, field, None), str):
                yield text, line
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value, line


def named(source: str) -> list[str]:
    known = names()
    found = [(known.search(words(text)), text, line) for text, line in said(ast.parse(source))]
    return [f"line {line}: {text!r} names '{match[1]}'" for match, text, line in found if match]


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_core_names_no_variant(path):
    assert named(path.read_text()) == []


NAMED = ["if name == 'rope': pass", "rope_base = 1", "class RMSNorm: pass", "x(kind='swiglu')", "f'{x} gelu-tanh'"]
NAMED += ["from torch.nn import LayerNorm", "def pre_norm(): pass", "torch.optim.AdamW"]
UNNAMED = ['"""rope"""', "x = None", "def f():\n    'about rope'", "copy.copy(text)", "ropes = 1"]


@pytest.mark.parametrize("source", NAMED)
def test_a_name_in_the_core_would_be_seen(source):
    assert named(source)


@pytest.mark.parametrize("source", UNNAMED)
def test_words_that_are_no_names(source):
    assert named(source) == []


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_core_imports_no_plugin(path):
    for node in ast.walk(ast.parse(path.read_text())):
        modules = [alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)]
        modules.append(getattr(node, "module", None) or "")
        assert not any(module.split(".")[0] in ("plugins", "zoo_plugins") for module in modules), path


@pytest.mark.parametrize("path", OURS, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert [line for line in text.splitlines() if len(line) > 120] == []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{node.name} is {node.end_lineno - node.lineno + 1} lines long"


@pytest.mark.parametrize("path", OURS, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda e: f"{e.variant.slot}:{e.variant.name}")
def test_every_variant_has_a_summary(entry):
    variant = entry.variant
    assert re.fullmatch(r"\S.{15,110}\.", variant.summary), "one sentence"
    assert not variant.paper or re.search(r"\b(19|20)\d\d\b", variant.paper), "author and year"
    arxiv = re.search(r"(\d{4}), arXiv:(\d\d)(\d\d)\.(\d+)$", variant.paper)
    assert bool(arxiv) == ("arXiv" in variant.paper)
    if arxiv:  # the number begins with year and month, and has five digits since 2015
        year, yy, month, serial = arxiv.groups()
        assert year == "20" + yy and 1 <= int(month) <= 12 and len(serial) == (5 if int(yy) >= 15 else 4)


@pytest.mark.parametrize(
    "module", ["zoo", "zoo_plugins", "zoo.registry", "zoo.declare.yaml", "zoo.cli", "zoo.reporting"]
)
def test_imports_without_torch(module):
    code = f"import {module}, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_package_is_in_the_wheel():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = [".".join(p.parent.relative_to(ROOT).parts) for p in CORE if p.name == "__init__.py"]
    assert sorted(listed) == sorted([*there, "zoo_plugins"])
    deeper = [p for p in (ROOT / "plugins").rglob("*.py") if p.parent != ROOT / "plugins"]
    assert not deeper, "plugins/ is flat: a folder in it holds data alone"
    assert set(TABLES) == {p for p in (ROOT / "plugins").glob("*/*") if p.parent.name != "__pycache__"}


def test_the_wheel_holds_the_tree(tmp_path):
    """Built from the source distribution, as an index would serve it."""
    pytest.importorskip("build", reason="the package 'build' is not installed")
    source = tmp_path / "source"
    kept = shutil.ignore_patterns("__pycache__")
    for name in ("zoo", "plugins"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=kept)
    for name in ("pyproject.toml", "README.md", "registry.yaml"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, source]
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert wheel.read("zoo/registry.yaml") == (ROOT / "registry.yaml").read_bytes()
        points = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        assert b"[zoo]\nbuiltin = zoo_plugins" in wheel.read(points)
    there = {str(p.relative_to(ROOT)) for p in (*OURS, *TEMPLATES, *TABLES, *PAGE)} | {
        "zoo/registry.yaml",
        "zoo/py.typed",
    }
    assert held == {re.sub("^plugins/", "zoo_plugins/", name) for name in there}


def test_no_test_is_lost():
    """Two test functions of one name in a file: the first would never run."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        tests = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        assert len(tests) == len(set(tests)), path


TESTED_ELSEWHERE = {
    "__main__.py": "execute/test_end_to_end.py",
    "api": "test_api.py",
    "claims.py": "reporting/test_claims.py",
    "cli/check.py": "testing/test_harness.py",
    "cli/completion.py": "cli/test_catalogue.py",
    "cli/models.py": "model/test_card.py",
    "cli/runs.py": "cli/test_runs_command.py",
    "cli/scaffold.py": "templates/test_scaffold.py",
    "cli/tables.py": "reporting/test_report.py",
    "cli/weights.py": "interop/test_family.py",
    "compare/optuna_sampler.py": "compare/test_tune.py",
    "compare/rows.py": "compare/test_comparison.py",
    "compare/rules.py": "compare/test_comparison.py",
    "compare/run_spec.py": "compare/test_comparison.py",
    "declare/override.py": "declare/test_library.py",
    "declare/reader.py": "declare/test_spec.py",
    "declare/resize.py": "declare/test_spec.py",
    "declare/shape.py": "declare/test_spec.py",
    "execute/comparison.py": "test_api.py",
    "execute/describe.py": "compare/test_comparison.py",
    "execute/engines/local.py": "execute/test_pool.py",
    "execute/engines/remote.py": "execute/engines/test_ray.py",
    "execute/estimate.py": "compare/test_design.py",
    "execute/materialise.py": "compare/test_comparison.py",
    "execute/launcher.py": "train/test_parallel.py",
    "execute/perform.py": "execute/test_end_to_end.py",
    "execute/plan.py": "test_api.py",
    "execute/process.py": "execute/test_pool.py",
    "execute/progress.py": "execute/test_pool.py",
    "execute/stages.py": "execute/test_end_to_end.py",
    "execute/step_timer.py": "execute/test_match_seconds.py",
    "execute/trained.py": "interop/test_family.py",
    "execute/worker.py": "execute/test_pool.py",
    "faults.py": "declare/test_library.py",
    "files.py": "record/test_folder.py",
    "hooks.py": "test_registry.py",
    "interop/folders.py": "interop/test_family.py",
    "interop/template.py": "interop/test_family.py",
    "interop/tensor_names.py": "interop/test_family.py",
    "model/stack.py": "model/test_contracts.py",
    "model/weights.py": "train/test_loop.py",
    "numbers.py": "reporting/test_report.py",
    "record": "record/test_record.py",
    "parts": "model/test_contracts.py",
    "pytest_plugin.py": "testing/test_harness.py",
    "reporting": "reporting/test_report.py",
    "reporting/forms/html.py": "reporting/test_html.py",
    "reporting/judging": "reporting/test_verdict.py",
    "reporting/pictures": "reporting/test_pictures.py",
    "tasks.py": "plugins/test_task.py",
    "testing": "testing/test_planted.py",
}
"""A module, or all of a folder, and the file that tests it, where that is not the file of its name."""


def find_tests(module: str) -> Path:
    """Where the tests of `room/module.py` stand: in `room/test_module.py`, or where the table says."""
    path = Path(module)
    own = path.with_name(f"test_{path.name}")
    if (ROOT / "tests" / own).exists():
        return own
    named = next((key for key in (module, *map(str, path.parents)) if key in TESTED_ELSEWHERE), None)
    assert named, f"zoo/{module} has no tests: write tests/{own}, or name the file that tests it in TESTED_ELSEWHERE"
    return Path(TESTED_ELSEWHERE[named])


def test_every_module_has_tests_where_its_name_says():
    for path in sorted((ROOT / "zoo").rglob("*.py")):
        if path.name != "__init__.py" and "templates" not in path.parts:
            assert (ROOT / "tests" / find_tests(str(path.relative_to(ROOT / "zoo")))).exists(), path


def test_only_what_is_tested_elsewhere_is_in_the_table():
    for name in TESTED_ELSEWHERE:
        path = ROOT / "zoo" / name
        assert path.exists(), f"zoo/{name} is gone"
        if path.is_file():
            own = Path(name).with_name(f"test_{path.name}")
            assert not (ROOT / "tests" / own).exists(), f"tests/{own} is there: take zoo/{name} out of the table"


LAYERS = (
    ("faults", "hooks", "numbers", "statistics", "claims", "files", "tasks"),
    ("registry",),
    ("record",),
    ("reporting",),
    ("declare",),
    ("parts",),
    ("model",),
    ("train",),
    ("compare",),
    ("execute",),
    ("interop",),
    ("testing", "templates", "api"),
    ("pytest_plugin", "cli"),
    ("__main__",),
)
"""The rooms of the core from the ground up: each imports from those below it alone."""
FLOOR = {room: floor for floor, rooms in enumerate(LAYERS) for room in rooms}
BESIDE = {("reporting", "declare")}
"""Rooms between which no import may run, though one stands above the other: a report stands on the base alone."""
CONTRACTS = {"zoo", "zoo.parts", "zoo.tasks", "zoo.testing", "zoo.interop"}
"""All that a plugin imports; docs/plugins.md lists what is there."""


def imported(path: Path) -> list[tuple[str, int]]:
    """The modules of the zoo that a file imports, inside functions and for type checks too, each with its line."""
    inside = path.relative_to(ROOT).with_suffix("").parts
    package = inside[:-1]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names if alias.name.split(".")[0] == "zoo"]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module.split(".")[0] == "zoo":
                for alias in node.names:
                    deeper = ROOT / module.replace(".", "/") / alias.name
                    is_module = deeper.is_dir() or deeper.with_suffix(".py").exists()
                    found.append((f"{module}.{alias.name}" if is_module else module, node.lineno))
    return found


def room(module: str) -> str:
    """The room that a module of the zoo stands in; "" for the package itself, which is a face for all."""
    return (*module.split(".")[1:2], "")[0]


def wrong_arrows(path: Path) -> list[str]:
    """Imports of a file of the core that run up, or to a room beside its own."""
    here = room(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if here == "__init__":
        return []
    found = []
    for module, line in imported(path):
        there = room(module)
        if (
            there
            and there != here
            and (FLOOR[there] >= FLOOR[here] or (here, there) in BESIDE or (there, here) in BESIDE)
        ):
            found.append(f"{path.relative_to(ROOT)}:{line}: '{here}' imports '{there}'")
    return found


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_down(path):
    assert wrong_arrows(path) == []


def test_an_import_that_runs_up_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "zoo" / "declare" / "spec.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "def f():\n    from zoo.model import builder\nfrom zoo.reporting import x\nfrom .shape import Shape\n"
    )
    said = ["zoo/declare/spec.py:2: 'declare' imports 'model'", "zoo/declare/spec.py:3: 'declare' imports 'reporting'"]
    assert sorted(wrong_arrows(path)) == said


def test_every_room_has_a_floor():
    there = {
        p.name.removesuffix(".py")
        for p in (ROOT / "zoo").iterdir()
        if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert there - {"__init__"} <= FLOOR.keys()


def test_no_modules_import_each_other_in_a_circle():
    """Inside rooms too."""
    known = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in CORE}
    arrows = {
        name: {m for m, _ in imported(path) if m in known and m != "zoo"} - {name} for name, path in known.items()
    }
    free: set[str] = set()
    while grounded := {name for name, below in arrows.items() if name not in free and below <= free}:
        free |= grounded
    assert sorted(arrows.keys() - free) == []


PLUGINS = [
    *(ROOT / "plugins").glob("*.py"), *(p for p in TEMPLATES if p.suffix == ".txt" and p.stem != "pyproject"), *(ROOT / "examples").glob("*.py"),
    *(ROOT / "tests/third_party").glob("*/*.py"),
]  # fmt: skip
"""All that is written as a plugin is: built in, as a template, as an example or by someone else."""


def taken_from_the_zoo(source: str) -> set[str]:
    """`module.name` of all that a plugin imports from the zoo."""
    taken = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            taken |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            taken |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in taken if name.split(".")[0] == "zoo"}


@pytest.mark.parametrize("path", sorted(PLUGINS), ids=lambda p: str(p.relative_to(ROOT)))
def test_plugins_import_the_contracts_alone(path):
    source = path.read_text().replace("$", "")
    offered = {f"{module}.{name}" for module in CONTRACTS for name in importlib.import_module(module).__all__}
    assert taken_from_the_zoo(source) <= CONTRACTS | offered


def test_the_page_lists_what_plugins_may_import():
    page = (ROOT / "docs/plugins.md").read_text()
    for module in CONTRACTS:
        table = page.partition(f"| from `{module}` | |\n")[2].partition("\n\n")[0]
        listed = [name for line in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", line.split(" | ")[0])]
        offered = set(importlib.import_module(module).__all__)
        assert len(listed) == len(set(listed))
        # `zoo` is also the face for those who run comparisons, which docs/plugins.md leaves out.
        assert set(listed) <= offered if module == "zoo" else set(listed) == offered, module
