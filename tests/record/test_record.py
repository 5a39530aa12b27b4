"""What folders of runs hold: records are read, refused with one line, and written back to the byte."""

import copy
import json
import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import record_page

import zoo
from zoo import record
from zoo.cli import main
from zoo.execute.engines import local
from zoo.files import dumps, write_json
from zoo.record.folder import Run

FILE = """
comparisons:
  c:
    models: [{ffn: relu}, {ffn: gelu}]
    shape: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 16}
    task: {name: copy, symbols: 4, min_length: 2, max_length: 3}
    train: {steps: 2, batch_size: 4}
"""
DEEP = "[" * 100_000 + "]" * 100_000
STRANGE = [None, True, -1, 0, 1.5, 10**30, "", "text", "../x", "\0", [], [1], {}, {"a": {"b": [None]}}]
"""What a value is replaced by, unless it is taken away."""
TEXTS = ["", "{", "[]", "null", "3", '"text"', "nul", DEEP, '{"format": 1e999}', "\ud800", '{"format": NaN}']
"""What a whole file is replaced by."""
MUTATIONS = 100


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a comparison that has been run."""
    home = tmp_path_factory.mktemp("home")
    (home / "a.yaml").write_text(FILE)
    found = CliRunner().invoke(main, ["run", str(home / "a.yaml"), "--out", str(home / "runs")])
    assert found.exit_code == 0, found.output
    return home


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """No run starts, and no picture is drawn: what is held here is what is read before."""

    def start(run):
        raise OSError("nothing starts in this test")

    monkeypatch.setattr(local, "start_locally", start)
    monkeypatch.setattr("zoo.reporting.writing.draw", lambda *given: {})


def paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        yield from paths(inside, (*path, key))


def mutate(document, chance: random.Random) -> str:
    """A text of the document in which one thing is wrong, or strange."""
    if chance.random() < 0.2:
        text = dumps(document)
        return chance.choice([*TEXTS, text[: chance.randrange(len(text))], text.replace("1", "NaN", 1)])
    document = copy.deepcopy(document)
    *above, key = chance.choice([path for path in paths(document) if path])
    holder = document
    for step in above:
        holder = holder[step]
    if chance.random() < 0.2:
        del holder[key]
    else:
        holder[key] = chance.choice(STRANGE)
    return json.dumps(document)


def invoke(*words: object) -> None:
    """Call the command: it ends well, or with faults of a line each."""
    found = CliRunner().invoke(main, [str(word) for word in words])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code in (0, 2, 3) and "Traceback" not in found.output
    if found.exit_code == 2:
        assert 1 <= len(found.output.strip().splitlines()) <= 8, (
            found.output
        )  # an export names each part without equivalent


def load(folder: Path) -> None:
    try:
        zoo.load(folder)
    except zoo.SpecError as error:
        assert str(error).count("\n") < 3


def first_run(out: Path) -> str:
    return json.loads((out / "c" / "comparison.json").read_text())["rows"][0]["runs"][0]["id"]


COMMANDS = {
    "report": lambda home, out, id: invoke("report", "--out", out),
    "merge": lambda home, out, id: invoke("merge", home / "merged", out),
    "run": lambda home, out, id: invoke("run", home / "a.yaml", "--out", out, "--workers", 1),
    "load": lambda home, out, id: load(out / id),
    "export": lambda home, out, id: invoke("export", out / id, "--to", home / "exported"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("document", ["run.json", "comparison.json"])
def test_a_spoiled_record_is_no_traceback(home, tmp_path, document, command):
    if document == "comparison.json" and command in ("load", "export"):
        pytest.skip("it is not read")
    chance, id = random.Random(f"{document} {command}"), first_run(home / "runs")
    shutil.copy(home / "a.yaml", tmp_path / "a.yaml")
    good = json.loads((home / "runs" / (id if document == "run.json" else "c") / document).read_text())
    for number in range(MUTATIONS):
        shutil.rmtree(tmp_path / "merged", ignore_errors=True)
        shutil.copytree(home / "runs", tmp_path / "runs", dirs_exist_ok=True)
        path = tmp_path / "runs" / (id if document == "run.json" else "c") / document
        text = mutate(good, chance)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            COMMANDS[command](tmp_path, tmp_path / "runs", id)
        except BaseException as error:
            raise AssertionError(f"mutation {number}: {text[:3000]}") from error


def test_a_spoiled_baseline_is_no_traceback(home, tmp_path):
    chance, path = random.Random(0), tmp_path / "baseline.json"
    invoke("baseline", "update", home / "runs", "c", "--to", path)
    good = json.loads(path.read_text())
    for _ in range(MUTATIONS):
        text = mutate(good, chance)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        found = CliRunner().invoke(main, ["report", "c", "--out", str(home / "runs"), "--baseline", str(path)])
        assert isinstance(found.exception, SystemExit | None) and found.exit_code in (0, 1, 2, 3), text


def test_what_is_written_is_what_was_read(home):
    for path in (*(home / "runs").glob("*/run.json"), *(home / "runs").glob("*/comparison.json")):
        read = record.read_run if path.name == "run.json" else record.read_comparison
        assert dumps(record.plain(read(path.parent)), indent=1) + "\n" == path.read_text()


def test_a_record_belongs_to_its_folder(home, tmp_path):
    run = shutil.copytree(home / "runs" / first_run(home / "runs"), tmp_path / "other")
    with pytest.raises(
        zoo.SpecError, match=r"run.json cannot be read: it is of '\w{16}', and lies in the folder 'other'"
    ):
        zoo.load(run)
    (tmp_path / "linked").mkdir()
    link = tmp_path / "linked" / "newest"
    link.symlink_to(home / "runs" / first_run(home / "runs"))
    assert Run(link).read().status == "done"


@pytest.mark.parametrize(("text", "why"), [
    ({"format": 2, "id": "a"}, "format 2, and this version reads 1; a newer version of the zoo wrote it"),
    ({"id": "a"}, "format None, and this version reads 1"),
    ({"format": 1, "id": "a", "seed": "x"}, "seed: Input should be a valid integer"),
    ({"format": 1, "id": "a", "train": {"seconds": []}}, "train.seconds"),
    ([], "it holds no object, but list"),
])  # fmt: skip
def test_why_a_record_cannot_be_read(tmp_path, text, why):
    (tmp_path / "a").mkdir()
    write_json(tmp_path / "a" / "run.json", text)
    with pytest.raises(record.Unreadable) as caught:
        Run(tmp_path / "a").read()
    assert caught.value.why.startswith(why) and str(tmp_path / "a" / "run.json") in str(caught.value)


def test_a_key_of_a_later_version_is_passed_over(tmp_path):
    (tmp_path / "a").mkdir()
    write_json(tmp_path / "a" / "run.json", {"format": 1, "id": "a", "surprise": 1, "train": {"steps": 1, "new": 2}})
    assert Run(tmp_path / "a").read().train.steps == 1
    with pytest.raises(ValueError, match="a record of a run has no surprise"):
        Run(tmp_path / "a").update(surprise=1)


def test_the_page_is_up_to_date():
    page = Path(__file__).parents[2] / "docs" / "record.md"
    assert page.read_text("utf-8") == record_page.write_page(), "run `make record`"
