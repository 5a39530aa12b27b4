"""Comparisons: which rows there are and what they are called, their seeds and references, and the ids of their runs."""

import dataclasses
import json
import textwrap

import pytest
import torch
from click.testing import CliRunner
from support.comparisons import BASE, SHAPE, comparison
from support.files import faults, write

from zoo.cli import main
from zoo.compare.comparison import read_comparison
from zoo.compare.prepared import Prepared
from zoo.compare.run_spec import read_run
from zoo.declare.library import open_library, own_registry
from zoo.declare.yaml import dump
from zoo.execute.describe import describe_run
from zoo.execute.materialise import materialise, reopen
from zoo.execute.stages import write_comparison
from zoo.hooks import Variant
from zoo.parts import Position
from zoo.record import Plugins, RunRecord, parse
from zoo.registry import Entry, Registry


def recorded(parts: dict) -> RunRecord:
    """The record of a run as another process reads it."""
    return parse(json.loads(json.dumps({"format": 1, "id": "a", **parts})), RunRecord)


def names(tmp_path, body, **given):
    return [row.name for row in comparison(tmp_path, textwrap.dedent(body), **given).lines]


def slots(found, slot):
    return [row.runs[0].model.slots[slot].label() for row in found.rows]


# Rows


@pytest.mark.parametrize(
    "body, expected",
    [
        ("model: gpt2-like", ["gpt2-like"]),
        ("models: [gpt2-like, llama-like]", ["gpt2-like", "llama-like"]),
        ("model: {like: gpt2-like, ffn: relu}", ["gpt2-like ffn=relu"]),
        ("model: gpt2-like\nvary: {position: [none, rope]}", ["none", "rope"]),
        ("models: [gpt2-like, llama-like]\nvary: {position: [none, rope], norm: [rmsnorm, none]}",
         ["gpt2-like, none, rmsnorm", "gpt2-like, none, none", "gpt2-like, rope, rmsnorm", "gpt2-like, rope, none",
          "llama-like, none, rmsnorm", "llama-like, none, none", "llama-like, rope, rmsnorm",
          "llama-like, rope, none"]),
        ("model: llama-like\nvary: {attention.kv_heads: [1, 2], train.lr: [1e-3, 3e-3]}",
         ["kv_heads=1, lr=0.001", "kv_heads=1, lr=0.003", "kv_heads=2, lr=0.001", "kv_heads=2, lr=0.003"]),
        ("model: {}\nvary: {position: [{name: rope, base: 500.0}, [rope, none]]}",
         ["rope base=500.0", 'position=["rope", "none"]']),
        ("model: {}\nvary: {train.schedule: [linear, cosine], share: [1, 2]}",
         ["linear, share=1", "linear, share=2", "cosine, share=1", "cosine, share=2"]),
        ("rows: {mine: {model: gpt2-like}, 'a|b': {model: {ffn: relu}, train: {steps: 9}}}", ["mine", "a|b"]),
        ("models: [gpt2-like, {like: gpt2-like, position: none}]\n"
         "references: [n-gram, {name: n-gram, order: 2}]\n"
         "task: {name: language-modeling, tokenizer: byte}",
         ["gpt2-like", "gpt2-like position=none", "n-gram", "n-gram order=2"]),
    ],
)  # fmt: skip
def test_which_rows_there_are_and_what_they_are_called(tmp_path, body, expected):
    base = BASE.replace("task: copy\n", "") if "task:" in body else BASE
    assert names(tmp_path, body, base=base) == expected


def test_a_row_replaces_the_sides_that_it_names(tmp_path):
    own = "{model: llama-like, shape: {d_model: 32, n_heads: 4, max_len: 32}, task: reverse, train: {tokens: 50}}"
    found = comparison(tmp_path, f"rows: {{plain: {{model: gpt2-like}}, own: {own}}}")
    plain, own = (row.runs[0] for row in found.rows)
    assert (plain.shape.d_model, plain.task.name, plain.train.steps) == (16, "copy", 3)
    assert (own.shape.d_model, own.shape.n_layers, own.task.name) == (32, 2, "reverse")
    assert (own.train.steps, own.train.tokens) == (None, 50)


def test_whole_sides_can_vary(tmp_path):
    found = comparison(tmp_path, "vary: {model: [gpt2-like, {ffn: relu}], shape: [quick, tiny], task: [copy, sort]}")
    assert len(found.rows) == 8 and found.rows[0].name == "gpt2-like, quick, copy"
    assert found.rows[7].name == "ffn=relu, tiny, sort"
    last = found.rows[7].runs[0]
    assert (last.shape.d_model, last.task.name) == (128, "sort") and last.model.slots["ffn"].label() == "relu"
    found = comparison(tmp_path, "model: {}\nvary: {train: [{steps: 1}, {steps: 2, lr: 0.5}]}")
    assert [(row.name, row.runs[0].train.lr) for row in found.rows] == [("steps=1", 3e-3), ("steps=2 lr=0.5", 0.5)]


def test_the_whole_is_set_before_what_is_in_it(tmp_path):
    """Whatever the order in which they are written, no value is lost."""
    found = comparison(tmp_path, "vary: {attention.bias: [true], attention: [mha, mqa], model: [llama-like]}")
    assert slots(found, "attention") == ["mha bias=true", "mqa bias=true"]
    assert [row.name for row in found.rows] == ["bias=true, mha, llama-like", "bias=true, mqa, llama-like"]
    found = comparison(tmp_path, "model: {}\nvary: {shape.d_ff: [8], shape: [quick]}")
    assert found.rows[0].runs[0].shape.d_ff == 8 and found.rows[0].runs[0].shape.d_model == 64


def test_options_alone_vary_the_part_that_is_there(tmp_path):
    found = comparison(tmp_path, "model: llama-like\nvary: {attention: [{kv_heads: 1}, {bias: true}]}")
    assert slots(found, "attention") == ["gqa kv_heads=1", "gqa kv_heads=2 bias=true"]
    found = comparison(tmp_path, "model: {}\nvary: {ffn.ratio: [1.0, 2.0], train.optimizer.eps: [0.1]}")
    assert slots(found, "ffn") == ["gelu ratio=1.0", "gelu ratio=2.0"], "a part that comes by default"
    assert found.rows[0].runs[0].train.optimizer.label() == "adamw eps=0.1"


def test_a_task_can_be_a_default(tmp_path):
    base = BASE.replace("task: copy\n", "")
    found = comparison(tmp_path, "model: {}", base=base, head="defaults: {task: {name: copy, symbols: 7}}")
    assert found.rows[0].runs[0].task.options["symbols"] == 7
    assert faults(lambda: comparison(tmp_path, "model: {}", base=base)) == ["a.yaml:4:5: there is no task"]


# What is wrong


@pytest.mark.parametrize(
    "body, said",
    [
        ("model: {}\nmodle: {}", "8:5: a comparison has no 'modle'; did you mean 'model'?"),
        ("seeds: [0]", "4:5: a comparison needs either 'model' or 'models' (or 'rows')"),
        ("model: {}\nmodels: [gpt2-like]", "4:5: a comparison needs either 'model' or 'models' (or 'rows')"),
        ("model: {}\nvary: {model: [gpt2-like]}", "4:5: a comparison needs either 'model' or 'models' (or 'rows')"),
        ("models: []", "7:13: it is []; it should be a list of at least one"),
        ("models: gpt2-like", "7:13: it is 'gpt2-like'; it should be a list of at least one"),
        ("model: gpt2-lik", "7:12: no model is called 'gpt2-lik'; did you mean 'gpt2-like'?"),
        ("model: {}\nvary: [rope]", '8:11: vary is ["rope"]; it should be a mapping'),
        ("model: {}\nvary: {position: rope}", "8:22: it is 'rope'; it should be a list of at least one"),
        ("model: {}\nvary: {postion: [rope]}", "8:12: vary has no 'postion'; did you mean 'position'?"),
        ("model: {}\nvary: {lr: [1]}", "8:12: vary has no 'lr'; a path begins with a slot of the model or with model, "
                                       "shape, task, train"),
        ("model: {}\nvary: {3: [1]}",
         "8:12: vary has no 3; a path begins with a slot of the model or with model, shape, task, train"),
        ("model: {}\nvary: {position: [rope], model.position: [none]}", "8:30: vary has 'model.position' twice"),
        ("model: {}\nvary: {train.setps: [1]}", "8:26: train has no option 'setps'; did you mean 'steps'?"),
        ("model: {}\nvary: {train.lr.x: [1]}", '8:25: train.lr is {"x": 1}; it should be a number above 0'),
        ("model: {}\nvary: {position: [rope, rope]}", "4:5: two rows are called 'rope'; give them names of their own "
                                                      "under 'rows'"),
        ("rows: {}", "7:11: rows is empty; it should have one at least"),
        ("rows: {a: 3}", "7:15: a row is 3; it should be a mapping"),
        ("rows: {a: {mdoel: x}}", "7:16: a row has no 'mdoel'; did you mean 'model'?"),
        ("rows: {1e3: {}}", "7:12: the name 1000.0 is no text; put it in quotes"),
        ("rows: {a: {}}\nmodel: {}", "8:5: beside 'rows' there can be no 'model'"),
        ("rows: {a: {}}\nvary: {}", "8:5: beside 'rows' there can be no 'vary'"),
        ("model: {}\nbaseline: gtp2", "8:15: no row is called 'gtp2'"),
        ("model: {}\nbaseline: defualt", "8:15: no row is called 'defualt'; did you mean 'default'?"),
        ("models: [gpt2-like]\nbaseline: gpt2", "8:15: no row is called 'gpt2'; did you mean 'gpt2-like'?"),
        ("model: {}\nseeds: []",
         "8:12: seeds is []; it should be a number of seeds, at most 1000, or a list of different integers from 0"),
        ("model: {}\nreferences: [n-grm]", "8:18: no reference is called 'n-grm'; did you mean 'n-gram'?"),
        ("model: {kernel: naive, attention: none}",
         "7:21: kernel 'naive': no attention of this model asks for a kernel"),
        ("model: {cross: mha}", "7:20: attention 'mha': architecture 'decoder-only' has no cross-attention"),
        ("model: {position: {encoder: rope, decoder: none}}", "7:24: architecture 'decoder-only' has no encoder"),
        ("model: {architecture: decoder-only}\nvary: {shape.n_layers: [10001]}",
         "7:27: architecture 'decoder-only': 10,001 layers in one stack; at most 10,000 can be built"),
        ("model: {architecture: encoder-decoder, ffn: {encoder: relu}}", "7:49: ffn says nothing of the decoder"),
        ("model: {}\nvary: {shape.vocab_size: [9]}",
         "8:31: a comparison takes vocab_size from its tokenizer; leave it out"),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(tmp_path, body, said):
    lines = faults(lambda: comparison(tmp_path, body))
    assert f"a.yaml:{said}" in lines
    assert len(lines) == 1


@pytest.mark.parametrize(
    "seeds, expected",
    [("3", [0, 1, 2]), ("[5]", [5]), ("[2, 0]", [2, 0]), ("1", [0]), ("[0, 9223372036854775807]", [0, 2**63 - 1])],
)
def test_seeds(tmp_path, seeds, expected):
    assert [run.seed for run in comparison(tmp_path, f"model: {{}}\nseeds: {seeds}").rows[0].runs] == expected


NO_SEEDS = "0 -1 [] [0,0] [-1] [1.5] true [true] x null 1.0 20240101 [18446744073709551616]"


@pytest.mark.parametrize("seeds", NO_SEEDS.split())
def test_seeds_that_are_none(tmp_path, seeds):
    (said,) = faults(lambda: comparison(tmp_path, f"model: {{}}\nseeds: {seeds}"))
    assert said.startswith("a.yaml:8:12: seeds is ")


def test_rows_that_no_one_metric_can_rank(tmp_path):
    body = "model: {}\nvary: {task: [copy, language-modeling]}"
    assert faults(lambda: comparison(tmp_path, body)) == [
        "a.yaml:8:25: task 'language-modeling': row 'language-modeling' has no accuracy, which ranks 'copy'; "
        "it has bpb, loss, perplexity"
    ]
    body = "model: {}\nvary: {task.tokenizer: [char, byte]}"
    base = BASE.replace("task: copy", "task: language-modeling")
    assert names(tmp_path, body, base=base) == ["char", "byte"], "every row has the loss"


def test_the_same_fault_in_many_rows_is_one(tmp_path):
    body = "models: [gpt2-like, llama-like]\nvary: {norm: [rmsnorm, layernorm], ffn: [rleu, gelu]}\nseeds: 3"
    assert faults(lambda: comparison(tmp_path, body)) == ["a.yaml:8:46: no ffn is called 'rleu'; did you mean 'relu'?"]


def test_a_fault_in_one_row_does_not_make_up_others(tmp_path):
    base = BASE.replace("task: copy", "task: {name: language-modeling, tokenizer: byte}")
    body = "model: {ffn: rleu}\nreferences: [n-gram]\nbaseline: n-gram"
    assert len(faults(lambda: comparison(tmp_path, body, base=base))) == 1


# Baseline, differences, references


def test_what_differs_from_the_baseline(tmp_path):
    body = """
    rows:
      one: {model: gpt2-like}
      two: {model: {like: gpt2-like, position: {name: rope, base: 500.0}, share: 1}, train: {steps: 3, lr: 1.0}}
      three: {model: {like: gpt2-like, attention: flash}, task: {name: copy, symbols: 9}, shape: {like: quick, d_ff: 8}}
    """
    found = comparison(tmp_path, textwrap.dedent(body))
    assert found.baseline == "one" and found.rows[0].differs == {}
    assert found.rows[1].differs == {"position": "rope base=500.0", "share": "1", "train.lr": "1.0"}
    assert found.rows[2].differs == {
        "attention": "flash", "task": "copy symbols=9", "shape.d_model": "64", "shape.n_heads": "4",
        "shape.max_len": "64", "shape.d_ff": "8",
    }  # fmt: skip
    found = comparison(tmp_path, textwrap.dedent(body) + "baseline: two")
    assert found.baseline == "two" and found.rows[1].differs == {}
    assert found.rows[0].differs == {"position": "learned", "share": "null", "train.lr": "0.003"}


def test_a_reference_stands_on_the_task_of_the_first_row(tmp_path):
    base = BASE.replace("task: copy", "task: {name: language-modeling, tokenizer: byte}")
    found = comparison(tmp_path, "model: {}\nreferences: [{name: n-gram, order: 3}]\nseeds: 4", base=base)
    (row,) = found.references
    (run,) = row.runs
    assert (row.name, run.seed, run.reference.options["order"]) == ("n-gram order=3", 0, 3)
    assert (run.task, run.shape) == (found.rows[0].first.task, found.rows[0].first.shape) and row.differs == {}
    assert [line.name for line in found.lines] == [found.rows[0].name, row.name]
    found = comparison(tmp_path, "model: {}\nreferences: [n-gram]\nbaseline: n-gram", base=base)
    assert found.baseline == "n-gram"


# What is printed reads back


HYBRID = """
models:
  hybrid:
    architecture: {name: encoder-decoder, decoder_layers: 1}
    position: {encoder: [alibi, none], decoder: {first: [alibi], repeat: [t5-bias]}}
    attention: [mqa, {name: gqa, kv_heads: 1, kernel: tiled}]
    cross: {name: mha, bias: [q, out]}
    share: 1
  alias: {attention: flash}
"""
SAMPLES = {
    "own": None,
    "hybrid": "models: [hybrid, alias, {attention: none, ffn: gelu}]\nseeds: [3, 1]\nbaseline: alias",
    "varied": "model: hybrid\nvary: {ffn: [[relu, none], swiglu], train.clip: [null, 0.5], shape: [quick]}",
    "rows": "rows: {'1e3': {model: alias}, 'no': {model: {like: alias, kernel: naive, attention: mha}}, 'a: b': {}}",
}


def resolved(tmp_path, sample):
    """A comparison, and the same read from what `zoo config` prints."""
    if SAMPLES[sample] is None:
        library, name = open_library(), "quickstart"
    else:
        body = textwrap.indent(BASE + SAMPLES[sample], "    ")
        library, name = open_library(write(tmp_path, f"{HYBRID}\ncomparisons:\n  c:\n{body}")), "c"
    first = read_comparison(library, name)
    path = write(tmp_path, dump({"comparisons": {name: first.plain()}}), "again.yaml")
    return first, read_comparison(open_library(path), name)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_resolved_comparison_reads_back_to_itself(tmp_path, sample):
    first, again = resolved(tmp_path, sample)
    assert again == first and again.plain() == first.plain()
    assert [run.id() for row in again.rows for run in row.runs] == [run.id() for row in first.rows for run in row.runs]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_run_reads_back_from_its_record(tmp_path, sample):
    first, _ = resolved(tmp_path, sample)
    for row in first.rows:
        spec = json.loads(json.dumps(row.runs[0].plain()))
        again = read_run(spec, open_library())
        assert again == row.runs[0] and again.id() == row.runs[0].id()


@pytest.mark.parametrize("model", ["{attention: flash}", "{attention: none}", "{attention: [naive, mha]}"])
def test_a_model_without_a_use_for_the_kernel_can_be_made_from_its_record(tmp_path, model):
    """A default that serves nothing is no mistake of the user, and is not written down as if it were his."""
    path = write(tmp_path, f"comparisons:\n  c:\n    model: {model}" + textwrap.indent(BASE, "    "))
    library = open_library(path)
    run = read_comparison(library, "c").rows[0].runs[0]
    described = describe_run(run, Prepared(library))
    made = materialise(recorded(described))
    assert sum(p.numel() for p in made.model.parameters()) == described["model"]["parameters"]
    assert ("kernel" in run.plain()["model"]) == ("mha" in model)


# Ids


def run_of(tmp_path, body="model: llama-like", **given):
    return comparison(tmp_path, body, **given).rows[0].runs[0]


CHANGES = {
    "a model option": {"body": "model: {like: llama-like, position: {base: 500.0}}"},
    "a slot": {"body": "model: {like: llama-like, norm: layernorm}"},
    "sharing": {"body": "model: {like: llama-like, share: 1}"},
    "the form of a slot": {"body": "model: {like: llama-like, norm: [rmsnorm, layernorm]}"},
    "the shape": {"base": BASE.replace("n_layers: 2", "n_layers: 3")},
    "a default of the shape": {"base": BASE.replace("max_len: 32", "max_len: 32, d_ff: 8")},
    "the task": {"base": BASE.replace("copy", "reverse")},
    "an option of the task": {"base": BASE.replace("copy", "{name: copy, eos: false}")},
    "the budget": {"base": BASE.replace("steps: 3", "steps: 4")},
    "a setting": {"base": BASE.replace("steps: 3", "steps: 3, accumulate: 2")},
    "an option of the optimizer": {"base": BASE.replace("steps: 3", "steps: 3, optimizer: {eps: 1.0e-7}")},
    "threads": {"base": BASE.replace("steps: 3", "steps: 3, threads: 2")},
    "the seed": {"body": "model: llama-like\nseeds: [1]"},
    "a default of the file": {"head": "defaults: {head: untied}"},
}
SAME = {
    "the name of the comparison": {"name": "other"},
    "the name of the model": {"head": "models: {mine: llama-like}", "body": "model: mine"},
    "the name of the row": {"body": "rows: {x: {model: llama-like}}"},
    "the name of the shape": {"head": f"shapes: {{s: {SHAPE}}}", "base": BASE.replace(SHAPE, "s")},
    "more seeds": {"body": "model: llama-like\nseeds: 3"},
    "more rows": {"body": "models: [llama-like, gpt2-like]\nbaseline: gpt2-like"},
    "a default written down": {"body": "model: {like: llama-like, residual: pre-norm, kernel: auto, head: tied}"},
    "a number written otherwise": {"base": BASE.replace("steps: 3", "steps: 3, lr: 3e-3, clip: 1")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_makes_another_run(tmp_path, change):
    assert run_of(tmp_path, **CHANGES[change]).id() != run_of(tmp_path).id()


@pytest.mark.parametrize("change", SAME)
def test_what_makes_no_other_run(tmp_path, change):
    assert run_of(tmp_path, **SAME[change]).id() == run_of(tmp_path).id()


def test_an_id_is_a_hash_and_says_which_text_was_read(tmp_path):
    run = run_of(tmp_path)
    assert len(run.id()) == 16 and int(run.id(), 16) >= 0
    assert dataclasses.replace(run, text="0").id() != run.id()


PLUGIN = """
import zoo
from zoo.parts import Position

class Own(Position):
    def __init__(self, shape, *, strength: float = 1.0):
        super().__init__(shape)

@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("position", "own", Own, "Own.")]
"""


def test_the_content_of_a_plugin_file_makes_another_run_and_its_folder_does_not(tmp_path):
    def id_of(folder, source, model="{position: own}"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "own.py").write_text(source)
        return run_of(tmp_path / folder, f"model: {model}", head="plugins: [own.py]").id()

    first = id_of("a", PLUGIN)
    assert id_of("b", PLUGIN) == first
    assert id_of("b", PLUGIN + "# changed\n") != first
    assert id_of("b", PLUGIN + "# changed\n", model="{}") == id_of("a", PLUGIN, model="{}"), "it is not in use"


class Own(Position):
    def __init__(self, shape, *, strength: float = 1.0):
        super().__init__(shape)


class Stronger(Position):
    def __init__(self, shape, *, strength: float = 2.0):
        super().__init__(shape)


def test_the_version_and_the_defaults_of_a_plugin_make_another_run(tmp_path):
    def id_of(version="1.0", target=Own, distribution="zoo-own", source="zoo_own", model="{position: own}"):
        entry = Entry("own", distribution, version, source, Variant("position", "own", target))
        registry = Registry([*own_registry().entries, entry], own_registry().plugins)
        return run_of(tmp_path, f"model: {model}", registry=registry).id()

    assert id_of() == id_of(source="elsewhere")
    assert len({id_of(), id_of("1.1"), id_of(target=Stronger), id_of(distribution="zoo-other")}) == 4
    assert id_of("1.1", model="{}") == id_of(model="{}")


# Records and jobs


def test_runs_are_queued_seed_by_seed_across_the_rows(tmp_path):
    body = "models: [{ffn: relu}, {ffn: gelu}]\nseeds: 2"
    path = write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(BASE + body, "    "))
    library = open_library(path)
    found = read_comparison(library, "c")
    jobs = write_comparison(found, Prepared(library), tmp_path / "runs", "a.yaml")
    assert [job.name for job in jobs] == ["ffn=relu · 0", "ffn=gelu · 0", "ffn=relu · 1", "ffn=gelu · 1"]
    document = json.loads((tmp_path / "runs" / "c" / "comparison.json").read_text())
    assert document["metric"] == {"name": "accuracy", "better": "higher", "unit": document["metric"]["unit"]}
    assert (document["name"], document["task"], document["baseline"]) == ("c", "copy", "ffn=relu")
    assert [row["differs"] for row in document["rows"]] == [{}, {"ffn": "gelu"}]
    assert [[run["seed"] for run in row["runs"]] for row in document["rows"]] == [[0, 1], [0, 1]]
    ids = [run["id"] for row in document["rows"] for run in row["runs"]]
    assert sorted(ids) == sorted(job.run.id for job in jobs) and len(set(ids)) == 4
    asked = jobs[0].run.read()
    assert (asked.id, asked.status, asked.seed, asked.threads) == (ids[0], "not run", 0, 1)
    run, _ = reopen(asked)
    assert run.plain() == found.rows[0].runs[0].plain()


def test_a_run_that_two_rows_share_is_one_job(tmp_path):
    body = "rows: {a: {model: gpt2-like}, b: {model: {like: gpt2-like}}, c: {model: llama-like}}"
    path = write(tmp_path, "comparisons:\n  c:\n" + textwrap.indent(BASE + body, "    "))
    library = open_library(path)
    jobs = write_comparison(read_comparison(library, "c"), Prepared(library), tmp_path / "runs", "a.yaml")
    assert [job.name for job in jobs] == ["a", "c"]


def test_a_record_finds_its_plugins_again(tmp_path):
    (tmp_path / "own.py").write_text(PLUGIN)
    body = textwrap.indent(BASE + "model: {position: own}", "    ")
    path = write(tmp_path, f"plugins: {{files: [own.py], disable: [nobody]}}\ncomparisons:\n  c:\n{body}")
    library = open_library(path)
    run = read_comparison(library, "c").rows[0].runs[0]
    asked = recorded(describe_run(run, Prepared(library)))
    assert asked.plugins == Plugins(files=(str(tmp_path / "own.py"),), disable=("nobody",), plugins=True)
    assert reopen(asked)[0].id() == run.id()
    (tmp_path / "own.py").unlink()
    assert "own.py cannot be read" in faults(lambda: reopen(asked))[0]


def test_nothing_is_left_of_torchs_random_state(tmp_path):
    before = torch.get_rng_state()
    run_of(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("residual", "warmup", "warns"), [("post-norm", 0, True), ("post-norm", 10, False), ("pre-norm", 0, False)]
)
def test_post_norm_without_a_warm_up_is_warned_of(residual, warmup, warns, tmp_path):
    """Deep post-norm stacks diverge without a warm-up (Xiong et al. 2020): said before anything runs."""
    file = tmp_path / "c.yaml"
    file.write_text(
        f"comparisons: {{c: {{model: {{residual: {residual}}}, shape: quick, task: copy, "
        f"train: {{steps: 1, warmup: {warmup}}}}}}}"
    )
    found = CliRunner().invoke(main, ["validate", str(file)])
    assert found.exit_code == 0
    assert ("residual 'post-norm' needs a warm-up, and train.warmup is 0" in found.stderr) is warns
