"""Where names lead, what a file may override of the zoo's own, plugin files, and values from the command line."""

import shutil
from pathlib import Path

import pytest
from support.files import faults, write

from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library
from zoo.declare.override import apply_overrides
from zoo.declare.spec import Node
from zoo.declare.yaml import load
from zoo.registry import PluginError

SMALL = """
    shapes: {small: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 24}}
    models: {mine: {like: gpt2-like, attention: {bias: false}}}
    comparisons:
      one:
        model: mine
        shape: small
        task: copy
        train: {steps: 3, lr: 0.1}
      two:
        models: [mine, llama-like]
        shape: {like: small, d_ff: 8}
        task: {name: copy, symbols: 5}
        train: {steps: 4}
        vary: {position: [rope, none]}
    """


@pytest.fixture
def small(tmp_path):
    return write(tmp_path, SMALL)


def read(library, name):
    return read_comparison(library, name).rows


def expanded(library, kind, value):
    reader = library.reader()
    out = library.expand(kind, Node(value), reader)
    reader.finish()
    return out.plain()


# Names


def test_names_of_the_user_come_before_the_zoos_own(tmp_path):
    text = "models: {llama-like: {ffn: relu}}\nshapes: {quick: {d_model: 8}}\ndefaults: {norm: rmsnorm}"
    library = open_library(write(tmp_path, text))
    assert expanded(library, "model", "llama-like") == {"ffn": "relu"}
    assert expanded(library, "shape", "quick") == {"d_model": 8}
    assert expanded(library, "shape", "tiny")["d_model"] == 128, "other names of the zoo are still there"
    assert library.reader().defaults.get("norm").value == "rmsnorm"
    assert library.reader().defaults.get("optimizer").value == "adamw"
    assert open_library().reader().defaults.get("norm").value == "layernorm", "and the zoo's own are as they were"


def test_a_default_can_be_changed_by_an_option_alone(tmp_path):
    path = write(tmp_path, "defaults: {tokenizer: {vocab_size: 300}, norm: {eps: 0.5}, position: {name: rope}}")
    reader = open_library(path).reader()
    model = reader.model(Node({}))
    reader.finish()
    assert model.slots["norm"].label() == "layernorm eps=0.5" and model.slots["position"].label() == "rope"
    assert reader.part(Node("language-modeling"), "task").options["tokenizer"].label() == "bpe vocab_size=300"


def test_like_takes_over_and_changes(tmp_path):
    path = write(
        tmp_path,
        """
        models:
          a: {ffn: {name: relu, ratio: 2.0}, norm: rmsnorm, attention: [mha, mqa]}
          b: {like: a, ffn: {bias: true}, position: rope}
          c: {like: b, ffn: {name: gelu, bias: true}, norm: {eps: 1.0e-3}}
          d: {like: {like: c, position: none}, attention: {name: gqa, kv_heads: 1}}
          e: b
        """,
    )
    library = open_library(path)
    assert expanded(library, "model", "b") == expanded(library, "model", "e") == {
        "ffn": {"name": "relu", "ratio": 2.0, "bias": True}, "norm": "rmsnorm", "attention": ["mha", "mqa"],
        "position": "rope",
    }  # fmt: skip
    assert expanded(library, "model", "d") == {
        "ffn": {"name": "gelu", "bias": True}, "norm": {"name": "rmsnorm", "eps": 1e-3},
        "attention": {"name": "gqa", "kv_heads": 1}, "position": "none",
    }  # fmt: skip
    assert expanded(library, "shape", {"like": "quick", "d_ff": 5})["d_ff"] == 5


@pytest.mark.parametrize("kind", ["model", "shape"])
def test_what_is_like_itself(tmp_path, kind):
    path = write(
        tmp_path,
        f"""
        {kind}s:
          a: {{like: b}}
          b: {{like: {{like: c}}}}
          c: a
        """,
    )
    library = open_library(path)
    reader = library.reader()
    library.expand(kind, library.find(f"{kind}s", "b"), reader)
    assert faults(reader.finish) == [f"a.yaml:3:20: {kind} 'c' is like itself: c -> a -> b -> c"]


def test_names_that_lead_nowhere(small):
    library = open_library(small)
    assert faults(lambda: library.find("models", "llama-lik")) == [
        "no model is called 'llama-lik'; did you mean 'llama-like'?"
    ]
    assert faults(lambda: library.find("shapes", "zzzz")) == ["no shape is called 'zzzz'; there are quick, tiny, small"]
    assert faults(lambda: expanded(library, "model", 3)) == ["model is 3; it should be a name or a mapping"]
    assert faults(lambda: expanded(library, "model", {"like": None})) == [
        "like: model is null; it should be a name or a mapping"
    ]


# What a file consists of


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "a.yaml:1:1: the file holds null; it should be a mapping of sections"),
        ("- 1", "a.yaml:1:1: the file holds [1]; it should be a mapping of sections"),
        ("modles: {}", "a.yaml:1:1: there is no section 'modles'; did you mean 'models'?"),
        ("models: 3", "a.yaml:1:9: models is 3; it should be a mapping"),
        ("shapes: null", "a.yaml:1:9: shapes is null; it should be a mapping"),
        ("shapes: {quick: {}, 3: {}}", "a.yaml:1:21: the name 3 is no text; put it in quotes"),
        ("models: {~: {}}", "a.yaml:1:10: the name null is no text; put it in quotes"),
        ("3: {}", "a.yaml:1:1: there is no section 3"),
        ("defaults: {fnn: relu}", "a.yaml:1:12: no slot that can be left out is called 'fnn'; did you mean 'ffn'?"),
        ("defaults: {reference: n-gram}",
         "a.yaml:1:12: no slot that can be left out is called 'reference'; did you mean 'kernel'?"),
        ("comparisons: {a/b: {}}", "a.yaml:1:15: a comparison called 'a/b' cannot have a folder of its name; leave out "
                                   "slashes and dots"),
        ("comparisons: {'..': {}}", "a.yaml:1:15: a comparison called '..' cannot have a folder of its name; leave out "
                                    "slashes and dots"),
        ("plugins: 3", "a.yaml:1:10: files is 3; it should be a list of texts"),
        ("plugins: [mine.py, 3]", "a.yaml:1:10: files is [\"mine.py\", 3]; it should be a list of texts"),
        ("plugins: {flies: []}", "a.yaml:1:11: plugins has no 'flies'; did you mean 'files'?"),
        ("plugins: [mine.py]", "a.yaml:1:11: no file 'mine.py' stands beside this document"),
        ("plugins: {require: [zoo-nowhere>=1]}",
         "a.yaml:1:21: 'zoo-nowhere>=1' is required and not installed; pip install 'zoo-nowhere>=1' brings it"),
        ("plugins: {require: [transformer-zoo, '!']}",
         "a.yaml:1:38: '!' is no requirement; write it as for pip, for example 'zoo-x>=0.2'"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path, text, said):
    assert faults(lambda: open_library(write(tmp_path, text))) == [said]


def test_all_faults_of_the_frame_at_once(tmp_path):
    said = faults(lambda: open_library(write(tmp_path, "modles: {}\nshapes: []\nmodels: {3: {}, 4: {}}")))
    assert [line.split(": ")[0] for line in said] == ["a.yaml:1:1", "a.yaml:2:9", "a.yaml:3:10", "a.yaml:3:17"]


def test_empty_sections_are_fine(tmp_path):
    library = open_library(write(tmp_path, "plugins: []\nmodels: {}\ndefaults: {}"))
    assert "llama-like" in library.section("models")


# Plugins

LOG_BIAS = Path(__file__).parents[1] / "third_party" / "zoo-logbias" / "zoo_logbias.py"
WITH_FILE = """
    plugins: [./plugins/log_bias.py]
    comparisons:
      c:
        model: {position: {name: log-bias, strength: 0.5}}
        shape: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 24}
        task: copy
        train: {steps: 1}
    """


def test_a_plugin_file_stands_beside_the_document(tmp_path, monkeypatch):
    """The plugin of the design document as one file, wherever the command is started."""
    (tmp_path / "plugins").mkdir()
    shutil.copy(LOG_BIAS, tmp_path / "plugins" / "log_bias.py")
    monkeypatch.chdir(tmp_path.parent)
    library = open_library(write(tmp_path, WITH_FILE))
    run = read(library, "c")[0].runs[0]
    (position,) = run.model.slots["position"].parts()
    assert position.options == {"strength": 0.5} and position.entry.distribution == "log_bias.py"
    assert {p["source"].split(" ")[0] for p in run.provenance() if p["name"] == "log-bias"} == {
        str(tmp_path / "plugins" / "log_bias.py")
    }
    wishes = library.describe_discovery()
    assert wishes == {"files": [str(tmp_path / "plugins" / "log_bias.py")], "disable": [], "plugins": True}


def test_a_plugin_file_that_breaks_is_named_where_it_is_needed(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "log_bias.py").write_text("import zoo_nowhere")
    path = write(tmp_path, WITH_FILE)
    library = open_library(path)
    assert faults(lambda: read(library, "c")) == [
        "a.yaml:4:30: no position is called 'log-bias'; did you mean 't5-bias'?; plugin 'log_bias' (log_bias.py "
        f"{library.registry.broken[0].version}) failed to load: ModuleNotFoundError: No module named 'zoo_nowhere'"
    ]
    with pytest.raises(PluginError):
        open_library(path, strict=True)


def test_plugins_that_the_file_or_the_command_leaves_out(tmp_path, package):
    package("zoo-good", "1.0", "good", LOG_BIAS.read_text())
    path = write(tmp_path, "plugins: {disable: [other]}")
    assert open_library(path).registry.find("position", "log-bias")
    for library in (open_library(path, disable=("good",)), open_library(path, plugins=False)):
        assert faults(lambda library=library: library.registry.find("position", "log-bias"))
    assert open_library(path, disable=("good",)).describe_discovery()["disable"] == ["other", "good"]
    assert open_library(path, plugins=False).describe_discovery()["plugins"] is False


# --set


def runs(path, *sets, name="one"):
    return [row.runs[0] for row in read(open_library(path, name=name, overrides=sets), name)]


def test_values_from_the_command_line(small):
    """Relative to the comparison, or from the top of the file; read as YAML."""
    (run,) = runs(small, "train.steps=7", "shapes.small.d_model=32", "train.lr=3e-4", "shape.max_len=22")
    assert (run.train.steps, run.shape.d_model, run.train.lr, run.shape.max_len) == (7, 32, 3e-4, 22)
    (run,) = runs(small, "comparisons.one.train={tokens: 50}", "models.mine.ffn=relu", "defaults.norm=rmsnorm")
    assert (run.train.tokens, run.train.steps) == (50, None)
    assert run.model.slots["ffn"].label() == "relu"


def test_a_later_value_wins(small):
    (run,) = runs(small, "train.steps=7", "train.steps=8", "train={steps: 9}", "train.batch_size=2")
    assert (run.train.steps, run.train.batch_size, run.train.lr) == (9, 2, 3e-3)


def test_a_name_can_be_opened(small):
    """A path that goes into a name changes what the name stands for, here and not elsewhere."""
    (run,) = runs(small, "model.attention.qk_norm=head", "shape.d_ff=12", "task.symbols=6")
    assert run.model.slots["attention"].label() == "mha qk_norm='head'"
    assert (run.shape.d_ff, run.shape.d_model, run.task.options["symbols"]) == (12, 16, 6)
    library = open_library(small, name="one", overrides=["model.attention.qk_norm=head"])
    assert read(library, "two")[0].runs[0].model.slots["attention"].label() == "mha"
    (run,) = runs(small, "train.optimizer.weight_decay=0")
    assert run.train.optimizer.label() == "adamw weight_decay=0.0", "an option of the default"


def test_values_inside_lists(small):
    found = runs(small, "vary.position.0=alibi", name="two")
    assert [run.model.slots["position"].label() for run in found] == ["alibi", "none", "alibi", "none"]
    found = runs(small, "comparisons.two.models.1.ffn=relu", "vary={norm: [rmsnorm]}", name="two")
    assert [run.model.slots["ffn"].label() for run in found] == ["gelu-tanh bias=true", "relu"]
    assert [run.model.slots["norm"].label() for run in found] == ["rmsnorm", "rmsnorm"]


def test_every_comparison_is_meant_if_none_is_named(small):
    library = open_library(small, overrides=["train.steps=9"])
    assert {row.runs[0].train.steps for name in ("one", "two") for row in read(library, name)} == {9}
    library = open_library(small, name="two", overrides=["train.steps=9"])
    assert read(library, "one")[0].runs[0].train.steps == 3


def test_a_row_that_writes_the_same_side_is_meant_too(tmp_path):
    path = write(
        tmp_path,
        """
        comparisons:
          c:
            shape: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 24}
            task: copy
            train: {steps: 3}
            rows: {a: {model: gpt2-like}, b: {model: gpt2-like, train: {steps: 5, lr: 1.0}}}
        """,
    )
    assert [(r.train.steps, r.train.lr) for r in runs(path, "train.steps=1", name="c")] == [(1, 3e-3), (1, 1.0)]


@pytest.mark.parametrize(
    "override, said",
    [
        ("train.steps", "it should be path=value"),
        ("=3", "it should be path=value"),
        ("train.lr=[1", "expected ',' or ']', but got '<stream end>' (while parsing a flow sequence, from line 1)"),
        ("train.lr.x=1", "'comparisons.one.train.lr' is 0.1, which has nothing inside"),
        ("models.mien.ffn=relu", "the file has no model 'mien'; did you mean 'mine'?"),
        ("models.llama-like.ffn=relu", "the file has no model 'llama-like'"),
        ("shapes.big={d_model: 3}", "the file has no shape 'big'"),
        ("comparisons.there.seeds=[0]", "the file has no comparison 'there'; did you mean 'three'?"),
        ("comparisons.two.models.2=x", "'comparisons.two.models' is a list of 2, counted from 0; '2' is none of it"),
        ("comparisons.two.models.²=x", "'comparisons.two.models' is a list of 2, counted from 0; '²' is none of it"),
        ("comparisons.two.models.x=x", "'comparisons.two.models' is a list of 2, counted from 0; 'x' is none of it"),
    ],
)
def test_paths_that_lead_nowhere(tmp_path, override, said):
    path = write(tmp_path, SMALL.replace("two:", "two: &two") + "  three: *two\n")
    (line,) = faults(lambda: open_library(path, name="one", overrides=[override]))
    assert line == f"--set {override}: {said}"


def test_a_comparison_that_is_not_in_the_file_cannot_be_changed(small):
    """The zoo's own comparisons can be run by name, but a value set for one must not be lost."""
    (line,) = faults(lambda: open_library(small, name="quickstart", overrides=["train.steps=1"]))
    assert line == (
        "--set train.steps=1: the file has no comparison 'quickstart', and the path begins with no section of it"
    )
    (line,) = faults(lambda: open_library(write(small.parent, "shapes: {}", "b.yaml"), overrides=["lr=1"]))
    assert line == "--set lr=1: the file has no comparison, and the path begins with no section of it"


def test_a_fault_of_a_value_from_the_command_line_is_shown_there(small):
    assert faults(lambda: runs(small, "train.stesp=7", "task.symbols=x")) == [
        "--set task.symbols=x: task 'copy'.symbols is 'x'; it should be an integer",
        "--set train.stesp=7: train has no option 'stesp'; did you mean 'steps'?",
    ]
    assert faults(lambda: runs(small, "shapes.small.n_heads=3")) == [
        "--set shapes.small.n_heads=3: n_heads 3 does not divide d_model 16; choose another or give head_dim"
    ]
    assert faults(lambda: runs(small, "train={steps: 1, lr: x}")) == [
        "--set train={steps: 1, lr: x}: train.lr is 'x'; it should be a number above 0"
    ], "the path of the fault is longer than that of the value"
    assert faults(lambda: open_library(small, overrides=["models=3"])) == [
        "--set models=3: models is 3; it should be a mapping"
    ]


def test_the_document_itself_is_not_touched():
    document = load("comparisons: {c: {models: [a, b], train: {steps: 1}}}", "a.yaml")
    before = repr(document.value)
    new = apply_overrides(document, ("train.steps=2", "comparisons.c.models.0=z"), "c")
    assert new.value == {"comparisons": {"c": {"models": ["z", "b"], "train": {"steps": 2}}}}
    assert repr(document.value) == before and new.name == "a.yaml"
    assert new.where(("comparisons", "c", "models", 0)) == "--set comparisons.c.models.0=z"
    assert new.where(("comparisons", "c", "models", 1)) == "a.yaml:1:31"


def test_a_fault_is_shown_where_the_user_can_mend_it(tmp_path):
    """In the user's file, not in the zoo's, where a model or a default comes from."""
    path = write(
        tmp_path,
        """
        models: {mine: {like: llama-like}}
        comparisons:
          odd:
            model: mine
            vary: {norm: [rmsnorm, layernorm]}
            shape: {like: quick, d_model: 28}
            task: copy
            train: {steps: 3}
          short:
            model: gpt2-like
            shape: {like: quick, max_len: 8}
            task: copy
            train: {steps: 3}
          bare:
            model: {attention: {name: gqa, kv_heads: 3}}
            task: copy
            train: {steps: 3}
        """,
    )
    library = open_library(path)
    (said,) = faults(lambda: read(library, "odd"))
    assert said.startswith("a.yaml:1:23: position 'rope': a rotary width of 7 is odd")
    (said,) = faults(lambda: read(library, "short"))
    assert said.startswith("a.yaml:10:12: position 'learned': it has 8 positions, and task 'copy' needs 21")
    (said,) = faults(lambda: read(library, "bare"))
    assert said.startswith("a.yaml:15:24: attention 'gqa': kv_heads 3 does not divide n_heads 4")
