"""Settings chosen by trials: as many for every row, on dev, before other seeds are scored on test."""

import json
import textwrap

import pytest
from click.testing import CliRunner
from support.comparisons import BASE, comparison
from support.files import faults, write
from support.trials import ARMS, TUNE, document, opened, score

from zoo import reporting
from zoo.cli import main
from zoo.compare.comparison import warnings
from zoo.compare.prepared import Prepared
from zoo.declare.library import open_library
from zoo.execute.merge import merge
from zoo.execute.shard import Shard
from zoo.execute.stages import write_comparison, write_trials


def tried(tmp_path, scores, body=ARMS + TUNE):
    """The jobs of the second stage, after trials that scored as `scores` say by name."""
    found, library = opened(tmp_path, body)
    for job in write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml"):
        got = scores[job.name]
        score(job.run, got) if isinstance(got, float) else score(job.run, *got)
    return write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml")


def named(**by_row):
    return {
        f"ffn={row} · lr={lr} · {seed}": value
        for row, values in by_row.items()
        for lr, pair in zip((0.001, 0.002, 0.004), values, strict=True)
        for seed, value in zip((1000, 1001), pair, strict=True)
    }


SCORES = named(relu=[(0.1, 0.9), (0.6, 0.6), (0.2, 0.2)], gelu=[(0.1, 0.1), (0.2, 0.2), (0.3, 0.3)])


def lrs(jobs):
    return {job.name: job.run.read().spec["train"]["lr"] for job in jobs}


def test_every_row_is_tried_alike_with_seeds_of_its_own(tmp_path):
    found, library = opened(tmp_path)
    jobs = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    asked = [job.run.read() for job in jobs]
    assert len(jobs) == 2 * 3 * 2 == len({job.run.id for job in jobs})
    assert {(job.name.split()[0], r.spec["train"]["lr"], r.seed) for job, r in zip(jobs, asked, strict=True)} == {
        (ffn, lr, seed) for ffn in ("ffn=relu", "ffn=gelu") for lr in (0.001, 0.002, 0.004) for seed in (1000, 1001)
    }
    assert [row["runs"] for row in document(tmp_path)["rows"]] == [[], []], "not known yet"
    assert write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml") == []


def test_the_mean_on_dev_chooses_and_other_seeds_run(tmp_path):
    """On test, where the scores are the other way about, another value would win."""
    jobs = tried(tmp_path, SCORES)
    assert lrs(jobs) == {"ffn=relu · 0": 0.002, "ffn=gelu · 0": 0.004, "ffn=relu · 1": 0.002, "ffn=gelu · 1": 0.004}
    relu, gelu = document(tmp_path)["rows"]
    assert relu["tuning"]["chosen"] == {"lr": 0.002} and gelu["tuning"]["chosen"] == {"lr": 0.004}
    assert [trial["dev"] for trial in relu["tuning"]["trials"]] == pytest.approx([0.5, 0.6, 0.2])
    assert [run["id"] for run in relu["runs"]] == [jobs[0].run.id, jobs[2].run.id]
    assert gelu["differs"]["train.lr"] == "0.004"


@pytest.mark.parametrize("lost", [("diverged",), ("failed",)])
def test_a_trial_without_an_end_never_wins(tmp_path, lost):
    scores = SCORES | {"ffn=relu · lr=0.002 · 1001": (1.0, *lost)}
    assert lrs(tried(tmp_path, scores))["ffn=relu · 0"] == 0.001
    trial = document(tmp_path)["rows"][0]["tuning"]["trials"][1]
    assert (trial["status"], trial["dev"]) == (lost[0], None)


def test_nothing_is_chosen_before_every_trial_has_ended(tmp_path):
    for status in ("running", "interrupted", "not run"):
        assert tried(tmp_path, SCORES | {"ffn=gelu · lr=0.004 · 1001": (0.9, status)}) == []
        assert document(tmp_path)["rows"][0]["tuning"]["chosen"] is None


def test_who_comes_back_finds_the_same_choice(tmp_path):
    first = tried(tmp_path, SCORES)
    before = document(tmp_path)
    found, library = opened(tmp_path)
    write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    again = write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert [job.run.id for job in again] == [job.run.id for job in first] and document(tmp_path) == before


def test_more_seeds_leave_the_trials_as_they_are(tmp_path):
    tried(tmp_path, SCORES)
    trials = [row["tuning"] for row in document(tmp_path)["rows"]]
    found, library = opened(tmp_path, ARMS.replace("2", "9") + TUNE)
    jobs = write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert len(jobs) == 18 and [row["tuning"] for row in document(tmp_path)["rows"]] == trials


def test_a_row_whose_trials_all_fail_says_why(tmp_path):
    scores = SCORES | {name: (0.5, "diverged") for name in SCORES if "relu" in name}
    jobs = tried(tmp_path, scores)
    assert {job.name for job in jobs} == {"ffn=gelu · 0", "ffn=gelu · 1"}
    relu = document(tmp_path)["rows"][0]
    assert relu["runs"] == [] and relu["tuning"]["chosen"] is None
    row = next(row for row in reporting.read(tmp_path / "runs", "c").rows if row.name == "ffn=relu")
    assert (row.status, row.reason) == ("failed in trials", relu["tuning"]["reason"])
    assert relu["tuning"]["reason"] == (
        "no trial has a finite score on dev: lr=0.001: diverged; lr=0.002: diverged; lr=0.004: diverged"
    )


def test_the_lower_loss_wins_where_lower_is_better(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("".join(f"{n} and {n}\n" for n in range(200)))
    base = BASE.replace("task: copy", "task: {name: language-modeling, data: {name: text, files: text.txt, documents: "
                        "line}, tokenizer: byte}")  # fmt: skip
    found = comparison(tmp_path, "model: {}\ntune: {lr: [1e-3, 2e-3]}", base=base)
    library = open_library()
    for job, value in zip(write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml"), (2.0, 1.5), strict=True):
        job.run.update(status="done", best={"dev": {"bpb": value}})
    write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert document(tmp_path)["rows"][0]["tuning"]["chosen"] == {"lr": 0.002}


def test_the_edge_of_the_range_is_told(tmp_path):
    tried(tmp_path, SCORES)
    assert [row["tuning"]["edge"] for row in document(tmp_path)["rows"]] == [{}, {"lr": "largest"}]


def reported(tmp_path, **changes):
    """The report after trials, with what `changes` say of the first row."""
    tried(tmp_path, SCORES)
    path = tmp_path / "runs/c/comparison.json"
    document = json.loads(path.read_text())
    document["rows"][0] |= changes
    path.write_text(json.dumps(document))
    return reporting.read(tmp_path / "runs", "c")


def test_a_report_shows_the_trials_and_what_they_leave_open(tmp_path):
    text = reporting.to_markdown(reported(tmp_path))
    assert "Tuned: lr, 3 choices for every row, chosen on dev with seed 1000, 1001." in text
    assert "ffn=gelu: lr 0.004 is the largest value tried; a better may lie beyond." in text
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "(chosen)" in line]
    assert ["ffn=relu", "0.500", "0.600 (chosen)", "0.200"] in lines
    found = json.loads(reporting.to_json(reporting.read(tmp_path / "runs", "c")))["rows"]
    assert {row["name"]: row["tuning"]["chosen"]["lr"] for row in found} == {"ffn=relu": 0.002, "ffn=gelu": 0.004}


def test_a_report_claims_no_equality_that_is_not_there(tmp_path):
    match = {"what": "parameters", "by": "n_layers", "size": 3, "value": 1, "mismatch": 0.042}
    text = reporting.to_markdown(reported(tmp_path, match=match))
    assert "Matched in parameters by n_layers, within 4.2 %. NOT equal: ffn=relu +4.2 %." in text
    assert "| +4.2 % |" in " ".join(text.split())
    text = reporting.to_markdown(reported(tmp_path, match=match | {"mismatch": 0.004}))
    assert "Matched in parameters by n_layers, within 0.4 %." in text and "NOT equal" not in text


def test_trials_are_of_the_matched_model(tmp_path):
    found, library = opened(tmp_path, "models: [{ffn: relu}, {ffn: swiglu}]\nmatch: parameters\ntune: {lr: [1, 2]}")
    jobs = write_trials(found, Prepared(library), tmp_path / "runs", "a.yaml")
    widths = {job.name.split()[0]: job.run.read().spec["shape"]["d_ff"] for job in jobs}
    assert widths["ffn=relu"] is None and widths["ffn=swiglu"] > 0
    for job in jobs:
        score(job.run, 0.5)
    finals = write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert {job.name.split()[0]: job.run.read().spec["shape"]["d_ff"] for job in finals} == widths


def test_shards_agree_on_a_choice_once_they_are_merged(tmp_path):
    found, library = opened(tmp_path)
    folders = [tmp_path / "one", tmp_path / "two"]
    for i, out in enumerate(folders, 1):
        for job in write_trials(found, Prepared(library), out, "a.yaml", Shard(i, 2)):
            score(job.run, SCORES[job.name])
        assert write_comparison(found, Prepared(library), out, "a.yaml", Shard(i, 2)) == []
    merge(tmp_path / "runs", folders)
    jobs = [write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml", Shard(i, 2)) for i in (1, 2)]
    assert [job.name for part in jobs for job in part] == [
        f"ffn={ffn} · {n}" for n in (0, 1) for ffn in ("relu", "gelu")
    ]
    assert [row["tuning"]["chosen"]["lr"] for row in document(tmp_path)["rows"]] == [0.002, 0.004]


def test_a_seed_that_chooses_and_is_scored_is_warned_of(tmp_path):
    assert warnings(comparison(tmp_path, "model: {}\ntune: {lr: [1, 2]}\nseeds: 3")) == []
    (said,) = warnings(comparison(tmp_path, "model: {}\ntune: {lr: [1, 2], seeds: [1, 7]}\nseeds: 3"))
    assert said.startswith("seed 1 chooses settings")


def test_two_settings_are_tried_in_every_combination(tmp_path):
    found = comparison(tmp_path, "model: {}\ntune: {lr: [1, 2], optimizer.weight_decay: [0.0, 0.1]}")
    (row,) = found.rows
    assert [trial.name for trial in row.trials] == [
        "lr=1 weight_decay=0.0", "lr=1 weight_decay=0.1", "lr=2 weight_decay=0.0", "lr=2 weight_decay=0.1",
    ]  # fmt: skip
    train = row.trials[3].runs[0].train
    assert (train.lr, train.optimizer.options["weight_decay"], train.steps) == (2.0, 0.1, 3)
    assert found.plain()["tune"] == {"lr": [1, 2], "optimizer.weight_decay": [0.0, 0.1], "seeds": [1000]}


@pytest.mark.parametrize(
    "body, said",
    [
        ("tune: [1]", "8:11: tune is [1]; it should be a mapping"),
        ("tune: {seeds: 2}", "8:11: tune names no setting; it should have one at least, such as lr: [1e-3, 3e-3]"),
        ("tune: {rl: [1]}", "8:12: tune has no 'rl'; did you mean 'lr'?"),
        ("tune: {steps: [1]}", "8:12: tune has no 'steps'; did you mean 'seeds'?"),
        ("tune: {batch_size: [1]}",
         "8:12: tune has no 'batch_size'; trials choose lr, warmup, schedule, optimizer, clip, or what is in these"),
        ("tune: {lr: 1}", "8:16: it is 1; it should be a list of at least one"),
        ("tune: {lr: [x]}", "8:17: train.lr is 'x'; it should be a number"),
        ("tune: {lr: [1], seeds: -1}", "8:28: tune.seeds is -1; it should be a number of seeds, at most 1000, or "),
        ("tune: {lr: [1, 2]}\nvary: {train.lr: [3, 4]}", "9:12: 'train.lr' cannot vary: 'tune: lr' decides it"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_tune(tmp_path, body, said):
    (line,) = faults(lambda: comparison(tmp_path, f"model: {{}}\n{body}"))
    assert line.startswith(f"a.yaml:{said}")


def test_from_a_file_to_a_choice_as_a_user_runs_it(tmp_path):
    """Real processes; what is done is not repeated."""
    body = BASE.replace("steps: 3", "steps: 4, eval_every: 2") + "model: {}\ntune: {lr: [1e-3, 1e6]}\nseeds: 2"
    path = write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(body, "    "))
    words = ["run", str(path), "--out", str(tmp_path / "runs"), "--workers", "1"]
    first = CliRunner().invoke(main, words)
    assert first.exit_code == 0, first.output
    (row,) = document(tmp_path)["rows"]
    assert [trial["status"] for trial in row["tuning"]["trials"]] == ["done", "diverged"]
    assert row["tuning"]["chosen"] == {"lr": 0.001} and len(row["runs"]) == 2
    plan = CliRunner().invoke(main, ["plan", *words[1:]]).stdout
    assert "2 runs and 2 trials before them, " in plan and "all of them have ended" in plan
    plan = CliRunner().invoke(main, ["plan", *words[1:], "--set", "seeds=3"]).stdout
    assert "3 runs and 2 trials before them, " in plan and "an estimate by the 3 that are done" in plan
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/metrics.jsonl")}
    assert len(stamps) == 4
    assert CliRunner().invoke(main, words).exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps


@pytest.mark.exhaustive
def test_two_shards_that_are_merged_report_what_one_machine_reports(tmp_path):
    """Real processes: trials in two shards, merged and chosen, then the runs in two shards."""
    body = (
        BASE.replace("steps: 3", "steps: 4, eval_every: 2")
        + "models: [{ffn: relu}, {ffn: gelu}]\ntune: {lr: [1e-3, 1e-2]}\n"
    )
    path = write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(body, "    "))

    def zoo(*words):
        done = CliRunner().invoke(main, list(map(str, words)))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    assert zoo("run", path, "--out", tmp_path / "runs").exit_code == 0
    both, merged = [tmp_path / "one", tmp_path / "two"], tmp_path / "merged"
    for turn, code in enumerate((3, 0)):
        for i, out in enumerate(both, 1):
            if turn:
                zoo("merge", out, merged, "--allow-failures")
            assert zoo("run", path, "--out", out, "--shard", f"{i}/2").exit_code == 0
            assert len(list(out.glob("*/weights.safetensors"))) == (5 if turn else 2)
        said = zoo("merge", merged, *both)
        assert said.exit_code == code, said.output
    alone, found = (json.loads((out / "c/comparison.json").read_text()) for out in (tmp_path / "runs", merged))
    assert found == alone
    alone, found = (json.loads((out / "c/report.json").read_text()) for out in (tmp_path / "runs", merged))
    assert [found[key] for key in ("verdicts", "caption")] == [alone[key] for key in ("verdicts", "caption")]
    told = ("name", "test", "dev", "loss", "difference", "tuning", "status", "verdict")
    assert [[row[key] for key in told] for row in found["rows"]] == [
        [row[key] for key in told] for row in alone["rows"]
    ]
