"""Packages that `zoo new-plugin` writes: for every slot one, installed by pip, with its own tests run."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from click.testing import CliRunner
from conftest import installed

from zoo import SpecError
from zoo.cli import main
from zoo.declare import yaml
from zoo.declare.spec import MODEL_SLOTS
from zoo.hooks import SLOTS
from zoo.registry import discover
from zoo.templates import scaffold

REGISTRY = discover(plugins=False)


def call(*arguments):
    return CliRunner().invoke(main, ["--no-plugins", "new-plugin", *map(str, arguments)])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a package for every slot."""
    folder = tmp_path_factory.mktemp("written")
    for slot in SLOTS:
        scaffold.write(f"my-{slot}", slot, folder, REGISTRY)
    return folder


@pytest.fixture(scope="module")
def path(written, tmp_path_factory):
    """Where they are installed."""
    pytest.importorskip("setuptools", reason="building a package needs setuptools")
    return installed(tmp_path_factory.mktemp("installed"), sorted(written.iterdir()))


def run(path, *command, **given):
    env = {**os.environ, "PYTHONPATH": str(path), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, **given)


def passing(path, *folders):
    """Run the packages' own tests, all in one process: they have files of different names."""
    done = run(path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *folders)
    assert done.returncode == 0, done.stdout[-5000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= len(folders)


ALL = """
import sys
from click.testing import CliRunner
from zoo.cli import main
from zoo.declare.spec import MODEL_SLOTS
from zoo.testing import CHECKS, check_variant
for file in sys.argv[1:]:
    slot = file.split("/")[-2].removeprefix("zoo-my-")
    only = [*CHECKS, "options", "ranges"] if slot in MODEL_SLOTS else ()
    check_variant(slot, f"my-{slot}", partners=1, only=only)
    done = CliRunner().invoke(main, ["validate", file])
    assert done.exit_code == 0, done.output
"""


def test_every_package_is_found_and_right(written, path):
    """With one partner for each; the tests of those that are no part of a model, and of a norm, as they are written."""
    done = run(path, "-c", ALL, *sorted(written.glob("*/examples.yaml")))
    assert done.returncode == 0, done.stderr[-5000:]
    passing(path, *(written / f"zoo-my-{slot}" for slot in SLOTS if slot not in MODEL_SLOTS or slot == "norm"))


@pytest.mark.exhaustive
def test_every_package_passes_its_own_tests(written, path):
    passing(path, *sorted(written.iterdir()))


@pytest.mark.parametrize("slot", SLOTS)
def test_a_package_is_complete(written, slot):
    folder = written / f"zoo-my-{slot}"
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    module, test = f"zoo_my_{slot}/__init__.py", f"tests/test_my_{slot}.py"
    assert files - {f"zoo_my_{slot}/table.yaml"} == {
        "pyproject.toml", "README.md", "LICENSE", ".gitignore", ".github/workflows/test.yml", "examples.yaml", module, test,
    }  # fmt: skip
    open_words = [n for n in files if n.endswith((".py", ".toml", ".md")) and "$" in (folder / n).read_text()]
    assert not open_words
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["zoo"] == {f"my-{slot}": f"zoo_my_{slot}"}
    assert "test" in project["project"]["optional-dependencies"]
    steps = yaml.load((folder / ".github/workflows/test.yml").read_text()).value["jobs"]["test"]["steps"]
    assert steps[-1] == {"run": "pytest"}
    code = (folder / module).read_text().partition("class ")[2].partition("@zoo.hookimpl")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 30
    assert len((folder / test).read_text().strip().splitlines()) <= 8


def test_it_says_what_was_written(tmp_path):
    done = call("log-bias", "--slot", "position", "--to", tmp_path)
    assert done.exit_code == 0, done.output
    assert "position 'log-bias'" in done.output and "zoo check position:log-bias" in done.output
    assert "class LogBias(" in (tmp_path / "zoo-log-bias" / "zoo_log_bias" / "__init__.py").read_text()


def test_the_prefix_is_not_doubled(tmp_path):
    assert call("zoo-log-bias", "--slot", "position", "--to", tmp_path).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["zoo-log-bias"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("Log_Bias", "did you mean 'log-bias'?"),
        ("log bias", "did you mean 'log-bias'?"),
        ("2d", "words in small letters"),
        ("../up", "did you mean 'up'?"),
        ("", "words in small letters"),
        ("true", "words in small letters"),
        ("rope", "there is a position 'rope' already"),
    ],
)
def test_a_name_that_cannot_be_is_refused(tmp_path, name, fault):
    done = call(name, "--slot", "position", "--to", tmp_path)
    assert done.exit_code == 2 and fault in done.output
    assert not list(tmp_path.iterdir())


def test_a_slot_that_is_none_is_refused_with_the_nearest(tmp_path):
    done = call("mine", "--slot", "positon", "--to", tmp_path)
    assert (done.exit_code, done.output) == (2, "there is no slot 'positon'; did you mean 'position'?\n")


def test_a_folder_that_is_there_stays_as_it_is(tmp_path):
    (tmp_path / "zoo-mine").mkdir()
    done = call("mine", "--slot", "norm", "--to", tmp_path)
    assert done.exit_code == 2 and "is there already" in done.output
    assert list(tmp_path.rglob("*")) == [tmp_path / "zoo-mine"]


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    done = call("mine", "--slot", "norm", "--to", tmp_path / "away")
    assert done.exit_code == 2 and "there is no folder" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_half_written_stays(tmp_path, monkeypatch, error):
    whole = scaffold.filled

    def broken(text, given):
        if "import" in text:
            raise error
        return whole(text, given)

    monkeypatch.setattr(scaffold, "filled", broken)
    with pytest.raises((SpecError, KeyboardInterrupt)) as stopped:
        scaffold.write("mine", "norm", tmp_path, REGISTRY)
    assert isinstance(stopped.value, KeyboardInterrupt) or "No space left on device" in str(stopped.value)
    assert not list(tmp_path.iterdir())
