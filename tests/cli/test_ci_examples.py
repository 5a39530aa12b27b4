"""The workflow files under examples/ci: their own commands, run shard after shard on a comparison of two runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

CI = Path(__file__).parents[2] / "examples" / "ci"
TINY = """
comparisons:
  gate:
    shape: quick
    task: copy
    train: {steps: 2, batch_size: 2, eval_every: 2}
    seeds: 2
    test: paired-t
    rows:
      small: {model: gpt2-like}
"""


def document(name: str) -> dict:
    return yaml.safe_load((CI / name).read_text())


def github(job: dict) -> list[str]:
    """The scripts of a job that call zoo."""
    return [step["run"] for step in job["steps"] if re.search("^zoo ", step.get("run", ""), re.MULTILINE)]


def filled(script: str, **values: object) -> str:
    """A script with GitHub's expressions in it replaced; one that is not known is a fault."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: str(values[found[1].replace("-", "_").replace(".", "_")]), script)


def sh(script: str, place: Path, **env: str) -> int:
    """Run as both services do: bash that stops at the first command that fails."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **env}
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=place, env=env, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def worse(path: Path) -> None:
    """As if every seed had scored more before: the row's accuracy has fallen."""
    held = json.loads(path.read_text())
    scores = held["rows"]["small"]["scores"]
    held["rows"]["small"]["scores"] = {seed: score + 0.5 for seed, score in scores.items()}
    path.write_text(json.dumps(held))


@pytest.fixture
def place(tmp_path):
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "gate.yaml").write_text(TINY)
    return tmp_path


def checked(scripts: list[str], place: Path, **env: str) -> None:
    """The report's scripts against a baseline that is the same, and then against a better one."""
    base = place / "ci" / "gate.json"
    assert sh("\n".join(scripts), place, **env) == 2, "there is no baseline yet"
    (place / "new-baseline.json").rename(base)
    assert len(json.loads(base.read_text())["rows"]["small"]["scores"]) == 2, "one seed of each shard"
    assert sh("\n".join(scripts), place, **env) == 0
    assert ElementTree.parse(place / "junit.xml").getroot().get("failures") == "0"
    worse(base)
    assert sh("\n".join(scripts), place, **env) == 1
    assert ElementTree.parse(place / "junit.xml").getroot().get("failures") == "1"


def test_github_trains_in_shards_and_fails_on_a_regression(place):
    workflow = document("github.yml")
    env, jobs = workflow["env"], workflow["jobs"]
    shards = jobs["train"]["strategy"]["matrix"]["shard"]
    assert shards == [*range(1, len(shards) + 1)]
    for shard in shards:
        [script] = github(jobs["train"])
        assert sh(filled(script, matrix_shard=shard, strategy_job_total=len(shards)), place, **env) == 0
        shutil.copytree(
            place / "runs", place / "shards" / f"runs-{shard}", ignore=shutil.ignore_patterns("*.safetensors")
        )
        shutil.rmtree(place / "runs")
    summary = place / "summary.md"
    checked(list(map(filled, github(jobs["report"]))), place, **env, GITHUB_STEP_SUMMARY=str(summary))
    assert summary.read_text().count("**Compared to ci/gate.json: no regression.**") == 1
    assert "**Compared to ci/gate.json: 1 regression.**" in (place / "comment.md").read_text()
    assert json.loads((place / "badge.json").read_text())["message"] == "1 regression"


def test_gitlab_trains_in_shards_and_fails_on_a_regression(place):
    pipeline = document("gitlab-ci.yml")
    env, count = pipeline["variables"], pipeline["train"]["parallel"]
    for index in range(1, count + 1):
        node = {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(count)}
        assert sh("\n".join(pipeline["train"]["script"]), place, **env, **node) == 0
    checked(pipeline["report"]["script"], place, **env)
    assert "1 regression" in (place / "badge.svg").read_text()


def test_what_runs_code_of_a_fork_can_write_nothing():
    first = document("github.yml")
    assert first["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in first["jobs"].values()) and "pull_request_target" not in first[True]
    steps = [step for job in first["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout")]
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts) and len(checkouts) == 2
    assert "secrets." not in (CI / "github.yml").read_text()


def test_what_can_write_runs_no_code_of_a_fork():
    first, second = document("github.yml"), document("github-comment.yml")
    assert list(second[True]) == ["workflow_run"] and second[True]["workflow_run"]["workflows"] == [first["name"]]
    [job] = second["jobs"].values()
    assert second["permissions"] == {} and job["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert [step.get("uses", "run").partition("@")[0] for step in job["steps"]] == [
        "actions/download-artifact", "actions/github-script",
    ]  # fmt: skip
    assert "${{" not in job["steps"][1]["with"]["script"], "what a fork wrote would become part of the script"
    shown = [step["with"]["name"] for step in first["jobs"]["report"]["steps"] if "upload" in step.get("uses", "")]
    assert job["steps"][0]["with"]["name"] in shown


POSTED = """
const fs = require('fs');
const given = JSON.parse(fs.readFileSync(0, 'utf8'));
const done = [];
const github = {
  rest: {
    pulls: { list: async asked => { done.push(['list', asked.head]); return { data: given.open }; } },
    issues: { listComments: null, updateComment: async asked => done.push(['update', asked.comment_id, asked.body]),
              createComment: async asked => done.push(['create', asked.issue_number, asked.body]) },
  },
  paginate: async () => given.comments,
};
const context = { repo: { owner: 'us', repo: 'zoo' }, payload: { workflow_run: given.run } };
script(github, context, { info: text => done.push(['info', text]) }).then(() => console.log(JSON.stringify(done)));
"""
RUN = {"head_repository": {"owner": {"login": "them"}}, "head_branch": "a`$(b)", "head_sha": "abc"}
BOT, USER = {"type": "Bot"}, {"type": "User"}
MARK = "<!-- zoo report -->"
OPEN = [{"number": 4, "head": {"sha": "old"}}, {"number": 7, "head": {"sha": "abc"}}]
MINE = [
    {"id": 1, "user": USER, "body": MARK},
    {"id": 2, "user": BOT, "body": "hello"},
    {"id": 3, "user": BOT, "body": MARK},
]
ASKED = ["list", "them:a`$(b)"]


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.parametrize(
    "text, pulls, comments, done",
    [
        ("new", OPEN, [], [ASKED, ["create", 7, f"{MARK}\nnew"]]),
        ("new", OPEN, MINE, [ASKED, ["update", 3, f"{MARK}\nnew"]]),
        ("new", OPEN, MINE[:2], [ASKED, ["create", 7, f"{MARK}\nnew"]]),
        ("new", OPEN[:1], MINE, [ASKED, ["info", "the pull request is closed, or has moved on"]]),
        ("x" * 65_537, OPEN, [], [["info", "no report to show"]]),
        (None, OPEN, [], [["info", "no report to show"]]),
    ],
)
def test_one_comment_under_the_right_pull_request(tmp_path, text, pulls, comments, done):
    [*_, step] = document("github-comment.yml")["jobs"]["comment"]["steps"]
    (tmp_path / "comment").mkdir()
    if text is not None:
        (tmp_path / "comment" / "comment.md").write_text(text)
    (tmp_path / "a.js").write_text(
        f"const script = async (github, context, core) => {{\n{step['with']['script']}\n}};{POSTED}"
    )
    given = json.dumps({"open": pulls, "comments": comments, "run": RUN})
    env = {**os.environ, "RUNNER_TEMP": str(tmp_path)}
    told = subprocess.run(["node", tmp_path / "a.js"], input=given, env=env, check=True, capture_output=True, text=True)
    assert json.loads(told.stdout) == done


def test_the_comparison_of_the_example_is_valid_and_has_seeds_enough(tmp_path):
    assert sh(f'zoo validate "{CI / "gate.yaml"}"', tmp_path) == 0
    from zoo.statistics import ALPHA, fewest

    given = yaml.safe_load((CI / "gate.yaml").read_text())["comparisons"]["gate"]
    assert given["seeds"] > fewest("sign-flip", ALPHA / len(given["models"]))
