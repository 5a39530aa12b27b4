"""The JSON schema of a file, as an editor uses it: it takes what the reader takes, refuses what it refuses, and
knows the names of all variants.
"""

import json
from pathlib import Path

import jsonschema
import pytest
from support.files import HYBRID, write

from zoo import SpecError
from zoo.compare.comparison import read_comparison
from zoo.compare.schema import schema
from zoo.declare.library import Library, open_library
from zoo.declare.spec import MODEL_SLOTS
from zoo.declare.yaml import load, load_file
from zoo.hooks import SLOTS
from zoo.registry import discover

ROOT = Path(__file__).parents[2]
SHAPE = "{d_model: 16, n_heads: 2, n_layers: 2, max_len: 32}"
REST = f"shape: {SHAPE}, task: copy, train: {{steps: 3}}"


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "hybrid.py"
    path.write_text(HYBRID)
    return discover(files=[path])


@pytest.fixture(scope="module")
def validator(registry):
    made = json.loads(json.dumps(schema(registry), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def taken(validator, text) -> bool:
    return validator.is_valid(load(text).value)


def read(tmp_path, registry, text) -> bool:
    """Whether the reader takes every default, model, shape and comparison of a file."""
    try:
        library = open_library(write(tmp_path, text), registry=None if text.startswith("plugins") else registry)
        reader = library.reader()
        for slot, node in library.section("defaults").items():
            reader.slot(node, slot) if slot in MODEL_SLOTS else reader.part(node, slot)
        for kind in ("shape", "model"):
            for node in Library(library.documents[:1], library.registry).section(f"{kind}s").values():
                getattr(reader, kind)(library.expand(kind, node, reader))
        reader.finish()
        for name in library.documents[0].value.get("comparisons", {}):
            read_comparison(library, name)
    except SpecError:
        return False
    return True


def model(text):
    return f"models: {{m: {text}}}"


def comparison(text):
    return f"comparisons: {{c: {{{text}, {REST}}}}}"


LEGAL = [
    "{}",
    "plugins: []",
    "plugins: {disable: [x], require: [transformer-zoo]}",
    "defaults: {norm: rmsnorm, tokenizer: {name: byte}, task: copy, cross: mha, optimizer: {eps: 0.1}}",
    f"shapes: {{a: {SHAPE}, b: {{like: a, d_ff: null}}, c: quick, d: {{like: {{like: quick, d_model: 8}}}}}}",
    "models: {a: llama-like, b: {like: a}, c: {like: {like: b, share: 2}}}",
    model("{position: rope}"),
    model("{position: builtin:rope}"),
    model("{position: {name: transformer-zoo:rope, base: 3}}"),
    model("{position: [rope, none]}"),
    model("{position: {first: alibi, repeat: [rope, {name: none}]}}"),
    model("{position: {repeat: rope}}"),
    model("{position: {encoder: [rope], decoder: {first: [rope], repeat: [none]}}, architecture: encoder-decoder}"),
    model("{attention: {bias: [q, v], kernel: {name: tiled, block: 4}}}"),
    model("{attention: {name: mha, kernel: null, norm: scalenorm, scale: 1}}"),
    model("{like: llama-like, attention: {kv_heads: 1}}"),
    model("{ffn: {name: both, one: relu, other: {name: both, one: {ratio: 2}}}}"),
    model("{ffn: {name: both-swiglu, mix: 1}}"),
    model("{position: {name: far, reach: 3, marks: [1]}}"),
    model("{embedding: {name: normed, norm: {name: rmsnorm, eps: 1e-3}}, head: [untied]}"),
    model("{architecture: {repeat: [decoder-only]}}"),
    comparison("model: llama-like"),
    comparison("model: {ffn: relu}, seeds: 3, baseline: null"),
    comparison("models: [llama-like, {ffn: relu}], seeds: [3, 5], baseline: llama-like"),
    comparison("vary: {model: [llama-like], shape: [quick], train.lr: [0.1], share: [1], ffn: [{bias: true}, relu]}"),
    comparison("model: {}, vary: {position: [[rope, none], {decoder: none}]}"),
    comparison("model: {}, vary: {ffn: [relu, gelu], norm: [none, rmsnorm]}, design: pairwise, only: [{ffn: relu}], "
               "except: [{ffn: relu, norm: none}, {ffn: gelu}]"),
    comparison("model: {}, match: tokens, tune: {lr: [1e-3, 1], seeds: 2}"),
    comparison("model: {}, match: {what: seconds, to: 60}"),
    comparison("model: {}, match: {what: parameters, by: d_model, to: 1e6}, tune: {optimizer.weight_decay: [0, 0.1]}"),
    comparison("model: {}, match: {what: flops-per-token, to: baseline}, tune: {clip: [null, 1.0], seeds: [7, 8]}"),
    "comparisons: {c: {rows: {a: {model: llama-like, task: copy, train: {tokens: 5, clip: null}}}}}",
    "comparisons: {c: {model: {}, task: {name: language-modeling, tokenizer: byte}, train: {steps: 1}, "
    "references: [{name: n-gram, discount: 0.5}, n-gram]}}",
]  # fmt: skip

ILLEGAL = [
    "[]",
    "modles: {}",
    "plugins: 3",
    "plugins: {flies: []}",
    "defaults: {fnn: relu}",
    "defaults: {norm: 3}",
    "defaults: {reference: n-gram}",
    "shapes: {a: {d_modle: 3}}",
    "shapes: {a: {d_model: 3.5}}",
    "shapes: {a: {dropout: x}}",
    "shapes: {a: 3}",
    "shapes: {a: {d_model: 0}}",
    "models: {a: null}",
    comparison("model: {}, vary: {ffn: [relu, gelu]}, design: pairwize"),
    comparison("model: {}, vary: {ffn: [relu, gelu]}, only: {ffn: relu}"),
    comparison("model: {}, vary: {ffn: [relu, gelu]}, except: [relu]"),
    comparison("rows: {a: {model: {}}}, design: grid"),
    comparison("model: {}, match: second"),
    comparison("model: {}, match: {what: tokens, by: d_ff}"),
    comparison("model: {}, match: {by: d_ff}"),
    comparison("model: {}, match: {what: parameters, to: 0}"),
    comparison("model: {}, tune: {}"),
    comparison("model: {}, tune: {seeds: 1}"),
    comparison("model: {}, tune: {steps: [1, 2]}"),
    comparison("model: {}, tune: {lr: 0.1}"),
    comparison("model: {}, tune: {lr: [0.1], seeds: 0}"),
    model("{fnn: relu}"),
    model("{share: 0}"),
    model("{position: rpoe}"),
    model("{position: crooked}"),
    model("{position: other:rope}"),
    model("{norm: rope}"),
    model("{position: []}"),
    model("{position: [[rope]]}"),
    model("{position: {first: rope}}"),
    model("{position: {first: rope, repeat: none, then: none}}"),
    model("{position: {encoder: rope, base: 3}}"),
    model("{architecture: {encoder: encoder-only}}"),
    model("{head: [tied, untied]}"),
    model("{position: {name: rope, bass: 3}}"),
    model("{position: {name: rope, base: x}}"),
    model("{position: {name: rope, base: null}}"),
    model("{position: {name: rope, pairing: halves}}"),
    model("{position: {name: far}}"),
    model("{position: {name: far, reach: 3, marks: [x]}}"),
    model("{position: {name: far, reach: true}}"),
    model("{attention: {name: flash, kernel: naive}}"),
    model("{attention: {name: mha, kernel: {name: naive, block: 3}}}"),
    model("{attention: {heads: 3}}"),
    model("{ffn: {name: both, one: null}}"),
    model("{ffn: {name: both, one: rope}}"),
    model("{ffn: {name: both-swiglu, other: relu}}"),
    comparison("model: {}, modle: {}"),
    comparison("seeds: 3"),
    comparison("model: {}, models: [llama-like]"),
    comparison("model: {}, vary: {model: [llama-like]}"),
    comparison("model: {}, rows: {a: {}}"),
    comparison("rows: {a: {}}, vary: {ffn: [relu]}"),
    comparison("rows: {}"),
    comparison("rows: {a: {mdoel: x}}"),
    comparison("models: []"),
    comparison("model: {}, seeds: 0"),
    comparison("model: {}, seeds: []"),
    comparison("model: {}, seeds: 20240101"),
    comparison("model: {}, vary: {lr: [0.1]}"),
    comparison("model: {}, vary: {position: rope}"),
    comparison("model: {}, vary: {position: [rpoe]}"),
    comparison("model: {}, baseline: 3"),
    comparison("model: {}, references: [n-grm]"),
    "comparisons: {c: {model: {}, task: {length: 3}, train: {steps: 3}}}",
    "comparisons: {c: {model: {}, task: copy, train: {setps: 3}}}",
    "comparisons: {c: {model: {}, task: copy, train: {steps: 3, precision: fp16}}}",
    "comparisons: {c: {model: {}, task: copy, train: {steps: 3, lr: 0}}}",
    "comparisons: {c: {model: {}, task: copy, train: {steps: 3, optimizer: {weight_decay: -1}}}}",
    "comparisons: {c: {model: {}, task: copy, train: {steps: 3, schedule: cosin}}}",
]


@pytest.mark.parametrize("text", LEGAL)
def test_what_is_legal_is_taken(tmp_path, registry, validator, text):
    assert read(tmp_path, registry, text), "by the reader"
    assert [error.message for error in validator.iter_errors(load(text).value)] == []


@pytest.mark.parametrize("text", ILLEGAL)
def test_what_is_illegal_is_refused(tmp_path, registry, validator, text):
    assert not read(tmp_path, registry, text), "by the reader"
    assert not taken(validator, text)


FILES = [ROOT / "registry.yaml", *sorted((ROOT / "examples").glob("*.yaml"))]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_files_of_the_zoo_are_taken(path):
    library = open_library(path)
    validator = jsonschema.Draft202012Validator(schema(library.registry))
    assert [error.message for error in validator.iter_errors(load_file(path).value)] == []


def test_what_zoo_config_prints_is_taken(validator):
    library = open_library()
    for name in library.section("comparisons"):
        printed = {"comparisons": {name: read_comparison(library, name).plain()}}
        assert [error.message for error in validator.iter_errors(printed)] == []


def completions(made, *pointer) -> dict[str, str]:
    """The constants that an editor offers at a place of the schema, with what it says of each."""
    found, refs = {}, set()

    def at(steps):
        node = made
        for step in steps:
            node = node[step]
        return node

    def collect(node):
        if "const" in node:
            found[node["const"]] = node.get("description", "")
        for each in node.get("anyOf", ()):
            collect(each)
        if "$ref" in node and node["$ref"] not in refs:
            refs.add(node["$ref"])
            collect(at(node["$ref"].removeprefix("#/").split("/")))

    collect(at(pointer))
    return found


def test_an_editor_completes_the_names_of_variants(registry):
    made = schema(registry)
    for slot in SLOTS:
        known = {e.variant.name: e.variant.summary for e in registry.variants(slot) if e.variant.name != "crooked"}
        assert completions(made, "$defs", slot) == known
        assert made["$defs"][slot]["description"] == SLOTS[slot].role
    model = ("$defs", "model", "properties")
    assert set(completions(made, *model, "position")) >= {"rope", "alibi", "far"}
    assert set(completions(made, *model, "cross")) >= {"mha", "gqa"}
    vary = ("$defs", "comparison", "properties", "vary", "properties")
    assert set(completions(made, *vary, "position", "items")) >= {"rope", "alibi", "far"}
    assert set(completions(made, *vary, "task", "items")) >= {"copy", "language-modeling"}


def test_options_carry_their_types_and_defaults(registry):
    forms = schema(registry)["$defs"]["position"]["anyOf"]
    (far,) = [f for f in forms if "reach" in f.get("required", ())]
    assert far["properties"]["reach"] == {"type": "integer"} and far["required"] == ["name", "reach"]
    assert far["properties"]["kind"] == {"default": "flat", "enum": ["flat", "steep"], "type": "string"}


def test_names_that_clash_are_written_with_their_plugin(package, tmp_path):
    package("zoo-more", "1.0", "more", "import zoo\ndef own(dim, *, more: int = 3): ...\n@zoo.hookimpl\n"
            "def zoo_variants():\n    return [zoo.Variant('norm', 'rmsnorm', own, 'Other.')]\n")  # fmt: skip
    registry = discover()
    made = schema(registry)
    assert {"builtin:rmsnorm", "more:rmsnorm"} <= set(completions(made, "$defs", "norm"))
    validator = jsonschema.Draft202012Validator(made)
    assert taken(validator, model("{norm: {name: more:rmsnorm, more: 4}}"))
    assert taken(validator, model("{norm: {name: zoo-more:rmsnorm, more: 4}}"))
    assert not taken(validator, model("{norm: {name: builtin:rmsnorm, more: 4}}"))
    assert not taken(validator, model("{norm: rmsnorm}")) and not read(tmp_path, registry, model("{norm: rmsnorm}"))


def test_the_tests_that_a_rule_names_are_those_there_are():
    from typing import get_args, get_type_hints

    from zoo.claims import WAYS
    from zoo.compare.rules import Judging, WrittenClaim
    from zoo.statistics import TESTS

    assert get_args(get_type_hints(Judging)["test"]) == tuple(TESTS)
    assert get_args(get_type_hints(WrittenClaim)["is_"]) == WAYS
