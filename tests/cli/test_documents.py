"""`zoo validate`, `config`, `show`, `schema` and `plan` as a user meets them, and what they must not cost."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
import torch
from click.testing import CliRunner
from support.files import shortened, write
from torch.utils._python_dispatch import TorchDispatchMode

from zoo import numbers
from zoo.cli import main
from zoo.compare.comparison import read_comparison
from zoo.compare.prepared import Prepared
from zoo.declare.library import open_library
from zoo.declare.yaml import load, load_file
from zoo.hooks import SLOTS
from zoo.model.builder import build_on_meta
from zoo.model.cost import count_cost
from zoo.registry import discover

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "registry.yaml"


def call(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def said(*arguments) -> list[str]:
    """The lines on stderr of a command that ends with exit code 2."""
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    return [shortened(line) for line in result.stderr.splitlines()]


# validate


def test_a_file_without_faults():
    result = call("validate", REGISTRY)
    assert result.exit_code == 0 and result.stderr == ""
    assert result.stdout == f"{REGISTRY}: no faults in 2 shapes, 75 models, 2 comparisons\n"


MISTAKES = """
shapes:
  small: {d_model: 32, n_heads: 5, dropuot: 0.1}
  right: {d_model: 32, n_heads: 4, n_layers: 1, max_len: 16}
defaults: {head: teid}
models:
  llama-like:
    position: {name: rope, bass: 10000.0}
    norm: rmsnrom
    attention: {name: gqa, kv_heads: 2.5}
comparisons:
  lengths:
    model: {position: learned, ffn: {name: gelu, ratio: 0}}
    shape: right
    task: {name: language-modeling, length: 17}
    train: {steps: 10, lr: fast}
  pairs:
    models: [gpt2-like, t5-like]
    shape: {like: right, n_heads: 3}
    task: language-modeling
    train: {steps: 10}
    vary: {postion: [none]}
    seeds: three
"""


def test_all_mistakes_at_once_in_the_order_of_their_places(tmp_path):
    assert said("validate", write(tmp_path, MISTAKES, "bad.yaml")) == [
        "bad.yaml:2:36: shape has no option 'dropuot'; did you mean 'dropout'?",
        "bad.yaml:4:18: no head is called 'teid'; did you mean 'tied'?",
        "bad.yaml:7:28: position 'rope' has no option 'bass'; did you mean 'base'?",
        "bad.yaml:8:11: no norm is called 'rmsnrom'; did you mean 'rmsnorm'?",
        "bad.yaml:9:38: attention 'gqa'.kv_heads is 2.5; it should be an integer or null",
        "bad.yaml:15:28: train.lr is 'fast'; it should be a number above 0",
        "bad.yaml:18:35: n_heads 3 does not divide d_model 32; choose another or give head_dim",
        "bad.yaml:21:12: vary has no 'postion'; did you mean 'position'?",
        "bad.yaml:22:12: seeds is 'three'; it should be a number of seeds, at most 1000, or a list of different "
        "integers from 0",
    ]


def test_defaults_are_read_even_if_nothing_uses_them(tmp_path):
    text = "defaults: {norm: rmsnrom, tokenizer: {name: bpe, size: 3}, cross: mhaa}"
    assert said("validate", write(tmp_path, text)) == [
        "a.yaml:1:18: no norm is called 'rmsnrom'; did you mean 'rmsnorm'?",
        "a.yaml:1:50: tokenizer 'bpe' has no option 'size'; did you mean 'vocab_size'?",
        "a.yaml:1:67: no attention is called 'mhaa'; did you mean 'mha'?",
    ]


CROSS_PART = {
    "heads divide d_model": (
        "model: llama-like\nshape: {d_model: 30, n_heads: 4}",
        "2:31: n_heads 4 does not divide d_model 30; choose another or give head_dim",
    ),
    "kv_heads divide heads": (
        "model: {attention: {name: gqa, kv_heads: 3}}",
        "1:20: attention 'gqa': kv_heads 3 does not divide n_heads 4; the nearest that do: 2 and 4",
    ),
    "an even rotary width": (
        "model: {position: rope}\nshape: {like: quick, d_model: 28}",
        "1:19: position 'rope': a rotary width of 7 is odd, and only pairs can be rotated: it is the head width 7 "
        "(d_model 28, n_heads 4) times fraction 1.0; make it even",
    ),
    "lengths against a table": (
        "model: {position: learned}\nshape: {like: quick, max_len: 20}",
        "1:19: position 'learned': it has 20 positions, and task 'copy' needs 21 of architecture 'decoder-only'; "
        "raise max_len or shorten the task",
    ),
    "a task without a source": (
        "model: {architecture: encoder-decoder}\ntask: {name: language-modeling, tokenizer: byte}\nshape: quick",
        "2:7: architecture 'encoder-decoder' reads a source, and task 'language-modeling' has none; give it "
        "'prefix: 32', or use 'decoder-only'",
    ),
    "questions inside the target": (
        "model: {architecture: encoder-only}\ntask: associative-recall",
        "2:7: task 'associative-recall' asks its questions inside the target, which architecture 'encoder-only' does "
        "not read; use 'decoder-only' or 'encoder-decoder'",
    ),
    "a kernel and what it carries": (
        "model: {attention: {name: mha, softcap: 5.0}, kernel: flash}",
        "1:55: kernel 'flash': it does not support softcap, which is needed here; use 'additive', 'naive' or 'tiled'",
    ),
    "a kernel that nobody asks for": (
        "model: {attention: naive, kernel: flash}",
        "1:35: kernel 'flash': no attention of this model asks for a kernel",
    ),
    "cross-attention that is not there": (
        "model: {cross: mha}",
        "1:16: attention 'mha': architecture 'decoder-only' has no cross-attention",
    ),
}


@pytest.mark.parametrize("rule", CROSS_PART)
def test_rules_between_parts_are_faults_with_a_place(tmp_path, rule):
    body, expected = CROSS_PART[rule]
    lines = body.splitlines() + ([] if "task:" in body else ["task: copy"]) + ["train: {steps: 1}"]
    text = "comparisons:\n  c:\n" + "".join(f"    {line}\n" for line in lines)
    line, column, rest = expected.split(":", 2)
    place = f"{int(line) + 2}:{int(column) + 4}"
    (found,) = said("validate", write(tmp_path, text))
    assert found == f"a.yaml:{place}:{rest}"


class NoStorage(TorchDispatchMode):
    """Fails as soon as a tensor with memory of its own is made."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor) and not tensor.is_meta:
                raise AssertionError(f"{func} made {tuple(tensor.shape)} on {tensor.device}")
        return out


def test_the_watch_for_storage_is_awake():
    with pytest.raises(AssertionError, match="on cpu"), NoStorage():
        torch.nn.Embedding(2, 3)
    with NoStorage(), torch.device("meta"):
        torch.nn.Embedding(2, 3)


@pytest.mark.parametrize("text", [None, MISTAKES], ids=["right", "wrong"])
def test_faults_are_found_before_any_tensor_is_made(tmp_path, text):
    path = REGISTRY if text is None else write(tmp_path, text)
    with NoStorage():
        assert call("validate", path).exit_code == (0 if text is None else 2)


def test_a_model_of_any_size_costs_nothing(tmp_path):
    """GPT-3: 96 layers, 12,288 wide, 175 billion parameters (Brown et al. 2020, table 2.1)."""
    path = write(
        tmp_path,
        """
        shapes: {gpt3: {d_model: 12288, n_heads: 96, n_layers: 96, max_len: 2048}}
        comparisons:
          big:
            model: gpt2-like
            shape: gpt3
            task: {name: language-modeling, tokenizer: {name: bpe, vocab_size: 50257}}
            train: {steps: 1}
        """,
    )
    call("validate", path)  # what is imported once is not counted
    start = time.process_time()
    assert call("validate", path).exit_code == 0
    assert time.process_time() - start < 5
    (run, *_) = read_comparison(open_library(path), "big").rows[0].runs
    model = build_on_meta(run.model, run.shape)
    d, layers, vocabulary = 12288, 96, run.shape.vocab_size
    per_layer = 12 * d * d + 13 * d
    assert sum(p.numel() for p in model.parameters()) == layers * per_layer + (vocabulary + 2048 + 2) * d


# What the user wrote is what is used, or an error with its place (pitfalls CFG-1 to CFG-5)


def file_of(tmp_path, **changes):
    """A small comparison; `changes` are texts that stand in for parts of it."""
    parts = {"train": "{steps: 2}", "model": "llama-like", "shape": "quick", "task": "copy", "more": "", **changes}
    more = parts.pop("more")
    return write(tmp_path, "comparisons:\n  c:\n" + "".join(f"    {k}: {v}\n" for k, v in parts.items()) + more)


def resolved(path, *arguments):
    result = call("config", path, *arguments)
    assert result.exit_code == 0, result.stderr
    (comparison,) = load(result.stdout).value["comparisons"].values()
    return comparison


@pytest.mark.parametrize("text, value", [("1e-3", 1e-3), ("2e-4", 2e-4), ("1e5", 1e5), ("3", 3.0), (".5", 0.5)])
def test_numbers_with_exponents_are_numbers(tmp_path, text, value):
    (row,) = resolved(file_of(tmp_path, train=f"{{steps: 2, lr: {text}}}"))["rows"].values()
    assert row["train"]["lr"] == value and isinstance(row["train"]["lr"], float)
    (row,) = resolved(file_of(tmp_path), "--set", f"train.lr={text}")["rows"].values()
    assert row["train"]["lr"] == value


def test_misspelt_keys_are_refused(tmp_path):
    path = file_of(tmp_path, shape="{d_model: 16, n_heads: 2, dropuot: 0.1, num_head: 8}", train="{stesp: 2, steps: 1}")
    for command in ("validate", "config", "plan", "run"):
        assert said(command, path) == [
            "a.yaml:3:13: train has no option 'stesp'; did you mean 'steps'?",
            "a.yaml:5:38: shape has no option 'dropuot'; did you mean 'dropout'?",
            "a.yaml:5:52: shape has no option 'num_head'; did you mean 'n_heads'?",
        ]


def test_keys_that_stand_twice_are_refused(tmp_path):
    path = write(tmp_path, "models:\n  m:\n    norm: rmsnorm\n    ffn: relu\n    norm: layernorm\n")
    assert said("validate", path) == ["a.yaml:5:5: key 'norm' is already set in line 3"]
    path = write(
        tmp_path,
        """
        models:
          a: &a {norm: rmsnorm, ffn: relu}
          b: {<<: *a, ffn: gelu}
        """,
    )
    assert call("validate", path).exit_code == 0, "what is merged in may be overridden"
    model = open_library(path).find("models", "b").plain()
    assert model == {"norm": "rmsnorm", "ffn": "gelu"}


def test_words_that_yaml_1_1_takes_for_booleans_are_words(tmp_path):
    assert said("validate", file_of(tmp_path, model="{ffn: {name: relu, bias: no}, norm: off}")) == [
        "a.yaml:4:37: ffn 'relu'.bias is 'no'; it should be true or false",
        "a.yaml:4:48: no norm is called 'off'",
    ]
    assert said("validate", file_of(tmp_path, train="{steps: 1, device: false}")) == [
        "a.yaml:3:31: train.device is false; it should be text"
    ]
    path = write(
        tmp_path,
        """
        comparisons:
          on:
            rows: {no: {model: gpt2-like}, off: {model: llama-like}, y: {model: {ffn: relu}}}
            shape: quick
            task: copy
            train: {steps: 2}
        """,
    )
    assert list(resolved(path)["rows"]) == ["no", "off", "y"]


@pytest.mark.parametrize(
    "seeds, expected", [("[010]", [10]), ("[08, 9]", [8, 9]), ("[0o10]", [8]), ("[1:30]", None), ("[1_000]", None)]
)
def test_integers_are_those_of_yaml_1_2(tmp_path, seeds, expected):
    path = file_of(tmp_path, seeds=seeds)
    if expected:
        assert resolved(path)["seeds"] == expected
    else:
        assert said("validate", path)[0].startswith(f'a.yaml:7:12: seeds is ["{seeds[1:-1]}"]; it should be')


def test_what_looks_like_a_date_or_a_version_stays_text_or_is_refused(tmp_path):
    path = write(
        tmp_path,
        """
        shapes: {2024-01-02: {d_model: 16, n_heads: 2, max_len: 32}}
        comparisons:
          2024-01-02: {model: llama-like, shape: 2024-01-02, task: copy, train: {steps: 2}}
          c: {model: llama-like, shape: 2024-01-02, task: copy, train: {steps: 2, device: 3.10}}
          d: {model: llama-like, task: {name: language-modeling, tokenizer: {vocab_size: 1_000}}, train: {steps: 2}}
        """,
    )
    assert said("validate", path) == [
        "a.yaml:4:83: train.device is 3.1; it should be text",
        "a.yaml:5:82: tokenizer 'bpe'.vocab_size is '1_000'; it should be an integer",
    ]
    assert call("config", path, "2024-01-02").stdout.splitlines()[1] == "  2024-01-02:"


# config, and choosing a comparison


def test_config_reads_back_to_itself(tmp_path):
    first = call("config", REGISTRY, "quickstart").stdout
    again = call("config", write(tmp_path, first)).stdout
    assert again == first
    name, comparison = load(first).value["comparisons"].popitem()
    assert name == "quickstart" and len(comparison["rows"]) == 5 and comparison["baseline"] == "gpt2-like"
    row = comparison["rows"]["llama-like"]
    assert row["model"]["position"] == {"name": "rope", "base": 10000.0, "fraction": 1.0, "pairing": "half"}
    assert row["train"]["optimizer"]["name"] == "adamw" and row["shape"]["d_model"] == 64


def test_config_keeps_the_plugins_of_the_file(tmp_path):
    (tmp_path / "deep").mkdir()
    source = ROOT / "tests" / "third_party" / "zoo-logbias" / "zoo_logbias.py"
    (tmp_path / "deep" / "mine.py").write_text(source.read_text())
    path = file_of(tmp_path / "deep", model="{position: {name: log-bias, strength: 2}}")
    path.write_text("plugins: {files: [mine.py], disable: [nobody]}\n" + path.read_text())
    printed = call("config", path).stdout
    assert load(printed).value["plugins"] == {"files": [str(tmp_path / "deep" / "mine.py")], "disable": ["nobody"]}
    assert call("config", write(tmp_path, printed, "elsewhere.yaml")).stdout == printed


def test_which_comparison_is_meant(tmp_path):
    path = file_of(tmp_path)
    assert call("config", path).stdout == call("config", path, "c").stdout
    assert said("config", path, "d") == ["no comparison is called 'd'; there are quickstart, positions, c"]
    assert said("config", REGISTRY, "quikstart") == ["no comparison is called 'quikstart'; did you mean 'quickstart'?"]
    assert said("config", REGISTRY) == ["registry.yaml: it holds quickstart, positions; name one"]
    assert said("config", write(tmp_path, "{}")) == ["a.yaml: it holds no comparison"]
    assert said("validate", tmp_path / "no.yaml") == ["no.yaml: cannot be read: no such file or directory"]
    assert said("validate", tmp_path) == [f"{tmp_path.name}: cannot be read: is a directory"]


def test_faults_of_a_value_from_the_command_line(tmp_path):
    path = file_of(tmp_path)
    assert said("validate", path, "--set", "train.lr=fast", "--set", "model.ffn=rleu") == [
        "--set model.ffn=rleu: no ffn is called 'rleu'; did you mean 'relu'?",
        "--set train.lr=fast: train.lr is 'fast'; it should be a number above 0",
    ]
    assert said("plan", path, "--set", "train.lr") == ["--set train.lr: it should be path=value"]


# show, schema


@pytest.mark.parametrize("slot", SLOTS)
def test_show_explains_every_variant(slot):
    for entry in discover(plugins=False).variants(slot):
        text = call("--no-plugins", "show", f"{slot}:{entry.variant.name}").stdout
        first, *lines = text.splitlines()
        assert first == f"{slot}:{entry.variant.name}  {entry.variant.summary}"
        assert f"paper: {entry.variant.paper or 'none'}" in lines
        assert lines[-1].startswith("from: transformer-zoo ") and "\noptions:" in text


def test_show_tells_types_and_defaults():
    text = call("show", "position:rope").stdout
    assert "  base      a number (default 10000.0)\n" in text
    assert "  pairing   one of half, interleaved (default 'half')\n" in text and "paper: Su et al. 2021" in text
    text = call("show", "task:language-modeling").stdout
    assert "  tokenizer    a part for tokenizer (default bpe)\n" in text
    assert "  data         a part for data (default python-docs)\n" in text
    text = call("show", "attention:flash").stdout
    assert "fixes: kv_heads=null, kernel='flash'\n" in text and "\n  kernel" not in text
    assert "  kernel    a part for kernel (default: the model's)\n" in call("show", "attention:gqa").stdout
    assert "  files      text or a list of texts (required)\n" in call("show", "data:text").stdout


def test_show_of_what_is_not_there(package):
    assert said("show", "position:rpoe") == ["no position is called 'rpoe'; did you mean 'rope'?"]
    assert said("show", "postion:rope") == ["there is no slot 'postion'; did you mean 'position'?"]
    assert said("show", "rope") == ["'rope' names no slot; write SLOT:NAME, such as 'embedding:rope'"]
    package("zoo-odd", "1.0", "odd", "import zoo\ndef odd(surprise): ...\n@zoo.hookimpl\ndef zoo_variants():\n"
            "    return [zoo.Variant('norm', 'odd', odd, 'Odd.')]\n")  # fmt: skip
    assert said("show", "norm:odd") == [
        "norm:odd of plugin 'odd' cannot be used: its constructor asks for 'surprise'; a norm may ask for dim, shape"
    ]


def test_the_schema_that_is_printed_is_one():
    made = json.loads(call("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(made)
    jsonschema.Draft202012Validator(made).validate(load_file(REGISTRY).value)


@pytest.mark.parametrize("command", [["validate"], ["config"], ["plan"], ["run"]])
def test_a_broken_plugin_is_a_line_unless_it_is_needed(package, tmp_path, command):
    package("zoo-bad", "0.9", "bad", "import zoo_nowhere")
    line = "plugin 'bad' (zoo-bad 0.9) failed to load: ModuleNotFoundError: No module named 'zoo_nowhere'"
    assert said(*command, file_of(tmp_path, model="{position: bad:x}")) == [
        line, f"a.yaml:4:23: plugin 'bad' offers no position 'x'; {line}"
    ]  # fmt: skip
    result = call("--strict-plugins", *command, file_of(tmp_path))
    assert (result.exit_code, result.stderr) == (4, line + "\n")


# plan


def plan_of(tmp_path, model, task="{name: language-modeling, data: python-docs, tokenizer: byte}"):
    path = file_of(tmp_path, model=model, task=task)
    (row,) = read_comparison(open_library(path), "c").rows
    task = row.runs[0].make_task()
    task.prepare()
    return path, count_cost(build_on_meta(row.runs[0].model, row.runs[0].shape_for(task)), task, 8), task


def test_the_counts_of_a_gpt2(tmp_path):
    """By hand, at d 64, 4 heads, 2 layers, 64 positions and a vocabulary of 256 bytes and 4 reserved ids."""
    path, counted, task = plan_of(tmp_path, "gpt2-like")
    d, layers, length, vocabulary, hidden = 64, 2, 64, 260, 256
    assert (task.vocab_size, task.target_len, task.source_len) == (vocabulary, length, 0)
    attention = 4 * (d * d + d)
    ffn = d * hidden + hidden + hidden * d + d
    norms = 2 * 2 * d
    table, positions, last = vocabulary * d, length * d, 2 * d
    assert counted.parameters == table + positions + layers * (attention + ffn + norms) + last == 120_832
    assert counted.kv_bytes_per_token == 2 * layers * 4 * 16 * 4 == 1024
    matrices = layers * (4 * d * d + 2 * d * hidden) + d * vocabulary
    scores = layers * (length + 1) * d  # a token sees (length + 1) / 2 on average, once for scores and once for sums
    assert counted.flops_per_token == 2 * (matrices + scores) == 246_528
    assert counted.memory_bytes > 16 * counted.parameters
    line = call("plan", path).stdout.splitlines()[2]
    assert re.split(r" {2,}", line)[:4] == ["gpt2-like", "120,832", "0.25 M", "1.0 KiB"]


def test_the_counts_of_a_llama(tmp_path):
    """Two key heads of 16; gated FFNs of 8/3 d, rounded up to a multiple of 8."""
    path, counted, _ = plan_of(tmp_path, "llama-like")
    d, layers, hidden = 64, 2, 176
    attention = 2 * d * d + 2 * d * 32
    assert counted.parameters == 260 * d + layers * (attention + 3 * d * hidden + 2 * d) + d == 109_120
    assert counted.kv_bytes_per_token == 2 * layers * 2 * 16 * 4 == 512
    assert counted.flops_per_token == 2 * (layers * (attention + 3 * d * hidden + (64 + 1) * d) + d * 260)
    assert "109,120" in call("plan", path).stdout and "512 B" in call("plan", path).stdout


def test_an_untied_head_and_a_shared_layer_count_once(tmp_path):
    tied = plan_of(tmp_path, "gpt2-like")[1].parameters
    assert plan_of(tmp_path, "{like: gpt2-like, head: untied}")[1].parameters == tied + 260 * 64
    assert plan_of(tmp_path, "{like: gpt2-like, share: 1}")[1].parameters == tied - 49_984
    assert plan_of(tmp_path, "{like: bert-like}", "{name: copy}")[1].kv_bytes_per_token is None


def test_the_plan_of_a_comparison(tmp_path):
    train = "{steps: 1000, batch_size: 16, accumulate: 2}"
    path = file_of(tmp_path, train=train, task="language-modeling", more="    seeds: 3\n    references: [n-gram]\n")
    head, _, line, runs, time, memory, warning = call("plan", path, "--out", str(tmp_path)).stdout.splitlines()
    assert head.split()[:5] == ["variant", "parameters", "FLOPs/token", "KV/token", "memory"]
    assert head.split()[5:] == ["kernel", "runs", "steps", "epochs"]
    cells = re.split(r" {2,}", line)
    assert cells[6:8] == ["3", "1,000"] and memory.startswith("memory is an estimate")
    assert re.match(r"about \d+ (s|min|h) to go.*: an estimate by a step of 'llama-like' timed now, ", time)
    assert call("plan", path, "--out", str(tmp_path), "--no-time").stdout.splitlines() == [
        *call("plan", path, "--out", str(tmp_path)).stdout.splitlines()[:4], memory, warning
    ]  # fmt: skip
    task = read_comparison(open_library(path), "c").rows[0].runs[0].make_task()
    task.prepare()
    assert float(cells[8]) == pytest.approx(1000 * 32 * 64 / task.train_tokens, abs=0.05)
    run = read_comparison(open_library(path), "c").rows[0].runs[0]
    row = count_cost(build_on_meta(run.model, run.shape_for(task)), task).flops_per_token * 64
    assert runs.startswith(f"4 runs, {numbers.flops(3 * row * 32 * 1000 * 3)} FLOPs: three forward passes")
    assert warning.startswith("more than 5 epochs")


def test_data_that_cannot_serve_is_a_fault_with_a_place(tmp_path):
    (tmp_path / "short.txt").write_text("too short")
    task = f"{{name: language-modeling, data: {{name: text, files: {tmp_path / 'short.txt'}}}, tokenizer: byte}}"
    (line,) = said("plan", file_of(tmp_path, task=task))
    assert line.startswith("a.yaml:6:11: task 'language-modeling': ")
    (line,) = said("validate", file_of(tmp_path, task=task.replace("short.txt", "none.txt")))
    assert line.startswith("a.yaml:6:43: data 'text': ") and "none.txt" in line


# What they do not import


@pytest.mark.parametrize("arguments", [["report"], ["report", "c"], ["report", "--format", "json"], ["--help"]])
def test_torch_is_not_imported(tmp_path, arguments):
    """Nor for a table: it is drawn from the folders of the runs."""
    from zoo.execute.stages import write_comparison

    library = open_library(file_of(tmp_path))
    write_comparison(read_comparison(library, "c"), Prepared(library), tmp_path / "runs", "a.yaml")
    if arguments[0] == "report":
        arguments = [*arguments, "--out", str(tmp_path / "runs")]
    code = "from zoo.cli import main; main(standalone_mode=False); import sys; sys.exit('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert ("llama-like" in result.stdout) == (arguments[0] == "report")
