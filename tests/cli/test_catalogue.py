"""`zoo list`, `zoo plugins`, completion: quick, free of torch, and no plugin can stop them."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import zoo
from zoo.cli import COMMANDS, main

BAD = "plugin 'bad' (zoo-bad 0.9) failed to load: ModuleNotFoundError: No module named 'zoo_nowhere'\n"


HEAVY = (
    "torch",
    "numpy",
    "scipy",
    "pydantic",
    "zoo.declare.spec",
    "zoo.parts",
    "zoo_plugins.position",
    "rich",
    "matplotlib",
)
SAY_HEAVY = f"import sys; print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)


def call(*arguments: str):
    return CliRunner().invoke(main, arguments)


def test_help_names_every_command():
    result = call("--help")
    assert result.exit_code == 0 and all(f"\n  {name} " in result.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_has_help(name):
    result = call(name, "--help")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"Usage: main {name}")


def test_list_as_json():
    rows = json.loads(call("list", "--json").stdout)
    assert [row for row in rows if row["slot"] == "position" and row["name"] == "rope"] == [
        {
            "slot": "position",
            "name": "rope",
            "summary": "Rotates queries and keys by their positions, so that scores see only distances.",
            "paper": "Su et al. 2021, arXiv:2104.09864",
            "plugin": "builtin",
            "distribution": "transformer-zoo",
            "version": zoo.__version__,
            "source": "zoo_plugins",
        }
    ]
    assert len(rows) == len({(row["slot"], row["name"]) for row in rows}) >= 67
    assert {row["name"] for row in json.loads(call("list", "norm", "*norm", "--json").stdout)} == {
        "layernorm", "rmsnorm", "scalenorm"
    }  # fmt: skip
    assert {row["slot"] for row in json.loads(call("list", "naive", "--json").stdout or "[]")} == set()


def test_list_as_text():
    lines = call("list", "norm", "r*").stdout.splitlines()
    assert lines[0].startswith("norm: ") and lines[1].startswith("  rmsnorm  Divides") and len(lines) == 2
    assert "[Zhang and Sennrich 2019, arXiv:1910.07467]" in lines[1]
    both = call("list", "fl*sh").stdout
    assert "attention: " in both and "kernel: " in both, "a pattern alone looks in all slots"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["list", "nrom"], "there is no slot 'nrom'; did you mean 'norm'?\n"),
        (["lst"], "there is no command 'lst'; did you mean 'list'?\n"),
        (["-p", "rope", "list"], "'rope' should be no:NAME\n"),
        (["list", "--jsno"], "No such option"),
    ],
)
def test_what_the_user_wrote_wrong(arguments, said):
    result = call(*arguments)
    assert result.exit_code == 2 and said in result.stderr.replace("Error: ", "") and result.stdout == ""
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "arguments", [["list", "norm"], ["list", "norm", "--json"], ["plugins"], ["plugins", "--json"]]
)
def test_a_broken_plugin_is_one_line_on_stderr(package, arguments):
    package("zoo-bad", "0.9", "bad", "import zoo_nowhere")
    result = call(*arguments)
    assert (result.exit_code, result.stderr) == (0, BAD)
    assert "rmsnorm" in result.stdout or "zoo-bad" in result.stdout
    for switch in (["-p", "no:bad"], ["-p", "no:zoo-bad"], ["--no-plugins"]):
        result = call(*switch, *arguments)
        assert (result.exit_code, result.stderr) == (0, "")
    result = call("--strict-plugins", *arguments)
    assert (result.exit_code, result.stderr, result.stdout) == (4, BAD, "")


def test_a_switch_that_names_no_plugin_says_so():
    result = call("-p", "no:bultin", "plugins")
    assert result.stderr == "-p no:bultin: there is no such plugin; did you mean 'builtin'?\n"


def test_plugins_as_json(package):
    package("zoo-bad", "0.9", "bad", "import zoo_nowhere")
    rows = json.loads(call("plugins", "--json").stdout)
    assert [row["status"] for row in rows] == ["ok", "broken"]
    assert rows[1]["cause"] == "ModuleNotFoundError: No module named 'zoo_nowhere'"
    assert rows[0]["distribution"] == "transformer-zoo" and rows[0]["variants"] >= 67


def test_names_that_clash_are_printed_as_they_have_to_be_written(package):
    package("zoo-more", "1.0", "more", "import zoo\n@zoo.hookimpl\ndef zoo_variants():\n"
            "    return [zoo.Variant('norm', 'rmsnorm', int, 'Other.'), zoo.Variant('norm', 'rmsother', int)]\n")  # fmt: skip
    names = [line.split()[0] for line in call("list", "norm", "rms*").stdout.splitlines()[1:]]
    assert names == ["builtin:rmsnorm", "more:rmsnorm", "rmsother"]


@pytest.mark.parametrize("words, word, expected", [
    ("zoo plug", 1, ["plugins"]), ("zoo list po", 2, ["position"]), ("zoo list position al", 3, ["alibi"]),
])  # fmt: skip
def test_completion(words, word, expected):
    environment = {"_ZOO_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(word)}
    code = f"from zoo.cli import main\ntry: main(prog_name='zoo')\nfinally: {SAY_HEAVY}"
    result = run(code, **environment)
    assert result.stdout.split() == [f"plain,{name}" for name in expected] and result.stderr == "[]\n"


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["plugins", "--json"], ["list", "norm", "--help"]])
def test_what_start_up_does_not_import(arguments):
    result = run(f"from zoo.cli import main; main(standalone_mode=False); {SAY_HEAVY}", *arguments)
    assert result.stderr == "[]\n"


def test_really_installed_packages(third_party, zoo_command):
    result = zoo_command("list", "position", "*:rope", path=third_party, ZOO_DISABLE_PLUGINS="logbias")
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["transformer-zoo:rope", "zoo-clash:rope"]
    assert result.stderr == (
        "plugin 'broken' (zoo-broken 1.0) failed to load: ModuleNotFoundError: No module named 'zoo_nowhere'\n"
        "plugin 'future' (zoo-future 1.2) was written for plugin API 2; this zoo has 1\n"
        "plugin 'misspelt' (zoo-misspelt 1.1) failed to load: "
        "'zoo_variant' is no hook of the zoo; did you mean 'zoo_variants'?\n"
    )
    quiet = zoo_command("plugins", "--json", path=third_party, ZOO_DISABLE_PLUGINS="broken,future misspelt,logbias")
    assert quiet.stderr == "" and [row["status"] for row in json.loads(quiet.stdout)].count("disabled") == 4
