"""Raw values to typed specs: the four forms of a slot, parts inside options, defaults, and what is refused."""

import dataclasses

import pytest
from support.files import HYBRID, faults, model, part, reader

from zoo.declare.shape import Shape
from zoo.declare.signature import SameSpeed, Tunable, show
from zoo.declare.spec import MODEL_SLOTS, Node, Train
from zoo.registry import discover


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory):
    """A registry with variants that have parts among their options."""
    path = tmp_path_factory.mktemp("plugin") / "hybrid.py"
    path.write_text(HYBRID)
    return discover(files=[path])


FORMS = [
    ("rope", "rope rope rope rope rope", None),
    (["rope", "none"], "rope none rope none rope", None),
    (["rope"], "rope rope rope rope rope", None),
    ({"first": "learned", "repeat": ["rope", "none"]}, "learned rope none rope none", None),
    ({"first": ["learned", "alibi"], "repeat": "none"}, "learned alibi none none none", None),
    ({"repeat": ["rope", "none"]}, "rope none rope none rope", None),
    ({"encoder": "rope", "decoder": ["alibi", "none"]}, "rope rope rope rope rope", "alibi none alibi none alibi"),
    ({"encoder": {"first": ["none"], "repeat": ["rope"]}, "decoder": "none"}, "none rope rope rope rope",
     "none none none none none"),
]  # fmt: skip


@pytest.mark.parametrize("value, encoder, decoder", FORMS, ids=str)
def test_the_four_forms_of_a_slot(value, encoder, decoder):
    slot = model({"architecture": "encoder-decoder", "position": value}).slots["position"]
    for stack, names in (("encoder", encoder), ("decoder", decoder or encoder)):
        assert [slot.of(stack).at(i).name for i in range(5)] == names.split()
    again = model({"position": slot.plain()}).slots["position"]
    assert again == slot, "what it prints reads back to the same"


def test_which_entry_serves_a_layer():
    form = {"first": ["learned", "rope"], "repeat": ["rope", "none"]}
    layered = model({"position": form}).slots["position"].of("decoder")
    assert [layered.index(i) for i in range(7)] == [0, 1, 2, 3, 2, 3, 2], "a layer's place in the list, not its name"


@pytest.mark.parametrize(
    "value, said",
    [
        ([], "position is an empty list; it should name at least one"),
        ({"first": ["rope"]}, "position has 'first' and no 'repeat'"),
        ({"first": [], "repeat": ["rope"]}, "position is an empty list; it should name at least one"),
        ({"first": ["rope"], "repeat": ["none"], "then": "x"},
         "beside 'first' and 'repeat' nothing else may stand, and 'then' does"),
        ({"encoder": "rope", "base": 3}, "beside 'encoder' and 'decoder' nothing else may stand, and 'base' does"),
        ([["rope"]], 'position is ["rope"]; it should be a name, or a mapping with a \'name\''),
        (None, "position is null; it should be a name, or a mapping with a 'name'"),
        (3, "position is 3; it should be a name, or a mapping with a 'name'"),
        ({"name": ["rope"]}, 'position is {"name": ["rope"]}; it should be a name, or a mapping with a \'name\''),
        ({"encoder": {"encoder": "rope"}}, 'position is {"encoder": "rope"}; it should be a name, or a mapping with a '
                                           "'name'"),
    ],
)  # fmt: skip
def test_forms_that_are_none(value, said):
    assert [line.partition(": ")[2] or line for line in faults(lambda: model({"position": value}))] == [said]


@pytest.mark.parametrize("slot", ["architecture", "embedding", "head"])
def test_slots_that_a_model_has_once(slot):
    names = {"architecture": "decoder-only", "embedding": "plain", "head": "untied"}
    assert model({slot: [names[slot]]}).slots[slot].of("decoder").at(0).name == names[slot]
    (said,) = faults(lambda: model({slot: [names[slot], names[slot]]}))
    assert said == f"{slot}: {slot} is a list; a model has one, not one per layer"


def test_an_architecture_cannot_differ_by_stack():
    (said,) = faults(lambda: model({"architecture": {"encoder": "encoder-only", "decoder": "decoder-only"}}))
    assert said == "architecture: architecture is given by stack; a model has one"
    assert model({"head": {"encoder": "tied", "decoder": "untied"}}).slots["head"].of("decoder").at(0).name == "untied"


def test_defaults_fill_what_nobody_wrote():
    spec = model({"ffn": "relu"})
    assert set(spec.slots) == set(MODEL_SLOTS) - {"cross"} and spec.given == {"ffn"} and spec.share is None
    assert spec.architecture.name == "decoder-only" and spec.slots["ffn"].plain()["name"] == "relu"
    assert spec.slots["ffn"].of("decoder").at(0).options == {"d_ff": None, "ratio": 4.0, "bias": False}


def test_options_alone_are_the_defaults():
    assert part({"vocab_size": 300}, "tokenizer").plain() == {"name": "bpe", "vocab_size": 300}
    assert part({"weight_decay": 0.0}, "optimizer").options["weight_decay"] == 0.0
    assert faults(lambda: part({"kv_heads": 2}, "attention")) == [
        "kv_heads: attention 'mha' has no option 'kv_heads'; did you mean 'head_dim'?"
    ]
    assert faults(lambda: part({"length": 2}, "task")) == [
        "task is {\"length\": 2}; it should be a name, or a mapping with a 'name'"
    ], "no task is a default"


def test_what_is_wrong_in_a_part():
    assert faults(lambda: part({"name": "rope", "bass": 3, "base": "x", "fraction": None}, "position")) == [
        "bass: position 'rope' has no option 'bass'; did you mean 'base'?",
        "base: position 'rope'.base is 'x'; it should be a number",
        "fraction: position 'rope'.fraction is null; it should be a number",
    ]
    assert faults(lambda: part("rpoe", "position")) == ["no position is called 'rpoe'; did you mean 'rope'?"]
    assert faults(lambda: part({"name": "text"}, "data")) == ["data 'text' needs 'files', text or a list of texts"]
    assert faults(lambda: part({"name": "none", "zzz": 1}, "norm")) == ["zzz: norm 'none' has no option 'zzz'"]
    assert faults(lambda: part({"name": "rmsnorm", "zzz": 1}, "norm")) == [
        "zzz: norm 'rmsnorm' has no option 'zzz'; it has eps, unit_offset"
    ]
    assert faults(lambda: part({"name": "flash", "kernel": "naive"}, "attention"))[0].startswith(
        "kernel: attention 'flash' has no option 'kernel'"
    ), "what the name settles is no option"


@pytest.mark.parametrize("key", [None, 3, True, 1.5])
def test_keys_that_are_no_text(key):
    assert faults(lambda: model({key: "rope"})) == [f"{key}: a model has no slot {show(key)}"]
    assert faults(lambda: part({"name": "none", key: 3}, "norm")) == [f"{key}: norm 'none' has no option {show(key)}"]


def test_parts_inside_options(hybrid):
    both = part({"name": "both", "one": {"name": "geglu", "ratio": 2.0}}, "ffn", registry=hybrid)
    assert both.options["one"].name == "geglu" and both.options["one"].options["ratio"] == 2.0
    assert both.options["other"] is None
    assert part({"name": "both", "other": None}, "ffn", registry=hybrid) == part("both", "ffn", registry=hybrid)
    assert both.plain() == {
        "name": "both", "one": {"name": "geglu", "d_ff": None, "ratio": 2.0, "bias": False}, "other": None, "mix": 0.5
    }  # fmt: skip
    assert part(both.plain(), "ffn", registry=hybrid) == both
    assert [p.name for p in both.parts()] == ["both", "geglu"]
    assert both.label() == "both one=geglu ratio=2.0"
    nested = part({"name": "both", "other": {"name": "both", "one": "gelu"}}, "ffn", registry=hybrid)
    assert [p.name for p in nested.parts()] == ["both", "relu", "both", "gelu"]
    assert part({"name": "both", "one": {"ratio": 2.0}}, "ffn", registry=hybrid).options["one"].name == "relu"


def test_a_part_that_the_variant_fixes(hybrid):
    fixed = part("both-swiglu", "ffn", registry=hybrid)
    assert fixed.fixed["other"].name == "swiglu" and "other" not in fixed.plain()
    assert [p.name for p in fixed.parts()] == ["both-swiglu", "relu", "swiglu"]
    flash = part("flash", "attention")
    assert flash.fixed["kernel"].name == "flash" and flash.fixed["kv_heads"] is None


def test_faults_inside_a_nested_part(hybrid):
    assert faults(lambda: part({"name": "both", "one": "rleu", "mix": True}, "ffn", registry=hybrid)) == [
        "one: no ffn is called 'rleu'; did you mean 'relu'?",
        "mix: ffn 'both'.mix is true; it should be a number",
    ]
    assert faults(lambda: part({"name": "both", "one": None}, "ffn", registry=hybrid)) == [
        "one: ffn is null; it should be a name, or a mapping with a 'name'"
    ], "null stands for nothing only where nothing is the default"
    assert faults(lambda: part("crooked", "position", registry=hybrid)) == [
        "position 'crooked' cannot be used: its constructor asks for 'surprise'; a position may ask for shape"
    ]


def test_requests_that_are_slots_can_be_written_as_options():
    task = part({"name": "language-modeling", "tokenizer": "byte"}, "task")
    assert (task.options["tokenizer"].name, task.options["data"].name) == ("byte", "python-docs")
    assert part({"name": "language-modeling", "tokenizer": "byte", "data": None}, "task") == task
    own = part({"name": "mha", "kernel": "naive"}, "attention")
    assert own.options["kernel"].name == "naive" and own.plain()["kernel"] == "naive"
    assert part("mha", "attention").options["kernel"] is None, "the model's"
    assert "kernel" not in part("mha", "attention").plain()


def test_labels_hold_what_is_not_the_default():
    assert part("rope", "position").label() == "rope"
    assert part({"name": "rope", "base": 10000.0}, "position").label() == "rope"
    assert part({"name": "rope", "base": 500, "pairing": "interleaved"}, "position").label() == (
        "rope base=500.0 pairing='interleaved'"
    )
    slot = model({"ffn": {"first": ["relu"], "repeat": [{"name": "gelu", "ratio": 2}, "none"]}}).slots["ffn"]
    assert slot.label() == "relu, then gelu ratio=2.0 / none"
    assert model({"ffn": {"encoder": "relu", "decoder": "gelu"}}).slots["ffn"].label() == "encoder: relu, decoder: gelu"


def test_a_faulty_slot_does_not_hide_the_others_and_makes_up_no_faults():
    read = reader()
    spec = read.model(Node({"ffn": "rleu", "attention": {"name": "mha"}, "kernel": "naive"}))
    assert len(read.faults) == 1 and spec.slots["attention"], "the default stands in, so that the rest can be checked"
    read = reader()
    assert read.model(Node({"architecture": "encodr-decoder", "cross": "mha"})) is None
    assert [f.text for f in read.faults] == [
        "no architecture is called 'encodr-decoder'; did you mean 'encoder-decoder'?"
    ], "without its architecture nothing is known of a model"


def test_the_keys_of_a_model():
    assert model({"share": 2}).share == 2 and model({"share": 2}).plain()["share"] == 2
    for value in (0, -1, True, 2.0, "2", None):
        assert faults(lambda value=value: model({"share": value}))[0].endswith("it should be an integer of at least 1")
    assert faults(lambda: model({"fnn": "relu"})) == ["fnn: a model has no slot 'fnn'; did you mean 'ffn'?"]
    assert faults(lambda: model([])) == ["model is []; it should be a mapping"]


def test_a_model_reads_back():
    two = ["mha", {"name": "gqa", "kv_heads": 1}]
    spec = model({"attention": two, "cross": "mqa", "share": 2, "position": "alibi"})
    assert model(spec.plain()) == spec
    assert model({"ffn": "relu"}) != model({"ffn": "gelu"})


def record(cls, value):
    read = reader()
    out = getattr(read, cls)(Node(value))
    read.finish()
    return out


def test_shapes():
    assert record("shape", {"d_model": 32, "n_heads": 2}) == Shape(d_model=32, n_heads=2)
    assert faults(lambda: record("shape", {"d_model": 30, "n_heads": 4})) == [
        "n_heads: n_heads 4 does not divide d_model 30; choose another or give head_dim"
    ]
    assert faults(lambda: record("shape", {"d_model": 30})) == [
        "n_heads 4 does not divide d_model 30; choose another or give head_dim"
    ]
    assert record("shape", {"d_model": 30, "n_heads": 4, "head_dim": 7}).head_width == 7
    assert faults(lambda: record("shape", {"d_model": 0, "dropout": 1, "n_layers": -1, "pad": -1, "num_head": 8})) == [
        "num_head: shape has no option 'num_head'; did you mean 'n_heads'?",
        "d_model: shape.d_model is 0; it should be an integer of at least 1",
        "n_layers: shape.n_layers is -1; it should be an integer of at least 1",
        "dropout: shape.dropout is 1; it should be a number of at least 0 and below 1",
        "pad: shape.pad is -1; it should be an integer of at least 0",
    ]
    assert faults(lambda: record("shape", {"d_model": 0, "dropout": 1, "n_layers": -1, "pad": -1})) == [
        "d_model: shape.d_model is 0; it should be an integer of at least 1",
        "n_layers: shape.n_layers is -1; it should be an integer of at least 1",
        "dropout: shape.dropout is 1; it should be a number of at least 0 and below 1",
        "pad: shape.pad is -1; it should be an integer of at least 0",
    ]
    assert faults(lambda: record("shape", {"dropuot": 0.1}))[0].endswith("no option 'dropuot'; did you mean 'dropout'?")


@pytest.mark.parametrize(
    "value, said",
    [
        ({}, "train needs one budget: either 'steps' or 'tokens'"),
        ({"steps": 3, "tokens": 3}, "train needs one budget: either 'steps' or 'tokens'"),
        ({"steps": 0}, "steps: train.steps is 0; it should be an integer of at least 1 or null"),
        ({"steps": 1, "lr": 0}, "lr: train.lr is 0; it should be a number above 0"),
        ({"steps": 1, "lr": "1e-3"}, "lr: train.lr is '1e-3'; it should be a number above 0"),
        ({"steps": 1, "lr": float("inf")}, "lr: train.lr is .inf; it should be a number above 0"),
        ({"steps": 1, "clip": -1}, "clip: train.clip is -1; it should be a number above 0 or null"),
        ({"steps": 1, "warmup": -1}, "warmup: train.warmup is -1; it should be an integer of at least 0"),
        ({"steps": 1, "eval_every": 0}, "eval_every: train.eval_every is 0; it should be an integer of at least 1 or null"),
        ({"steps": 1, "precision": "fp16"},
         "precision: train.precision is 'fp16'; it should be one of auto, fp32, bf16; did you mean 'bf16'?"),
        ({"steps": 1, "schedule": "cosin"}, "schedule: no schedule is called 'cosin'; did you mean 'cosine'?"),
    ],
)  # fmt: skip
def test_training_settings_that_cannot_be(value, said):
    assert faults(lambda: record("train", value)) == [said]


def test_training_settings_have_parts_by_default():
    train = record("train", {"steps": 3, "schedule": {"name": "linear", "floor": 0.5}, "lr": 1})
    assert (train.optimizer.name, train.schedule.name, train.schedule.options) == ("adamw", "linear", {"floor": 0.5})
    assert train.lr == 1.0 and train.clip == 1.0
    assert record("train", {"steps": 3, "schedule": None}).schedule.name == "cosine"
    assert record("train", train.plain()) == train
    assert set(train.plain()) == {f.name for f in dataclasses.fields(Train)}


def test_what_others_know_of_a_setting_is_marked_on_it():
    assert list(Train.marked(Tunable)) == ["lr", "warmup", "schedule", "optimizer", "clip"]
    train = Train(tokens=99, warmup=5, eval_every=4, log_every=3)
    short = train.shortened(30, 4)
    assert (short.steps, short.tokens, short.warmup, short.eval_every, short.log_every) == (8, None, 2, 1, 3)
    assert train.of_steps(7) == dataclasses.replace(train, steps=7, tokens=None)
    timed = {f.name for f in dataclasses.fields(Train)} - set(Train.marked(SameSpeed))
    assert timed == {
        "batch_size", "accumulate", "schedule", "optimizer", "clip", "precision", "device", "compile", "threads",
        "processes", "parallel",
    }  # fmt: skip
    assert train.of_one_step() == Train(steps=1, lr=1.0, log_every=1, checkpoint_seconds=0.0)
