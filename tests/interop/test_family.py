"""Tables of other libraries' names, and folders in their form: read, written, refused."""

import json
import math
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from support.hub_configs import CONFIGS

import zoo
from zoo import SpecError, build
from zoo.cli import main
from zoo.compare.comparison import read_comparison
from zoo.compare.schema import schema
from zoo.declare import yaml
from zoo.declare.library import open_library
from zoo.declare.spec import Node
from zoo.execute.describe import describe_weights
from zoo.execute.trained import Trained
from zoo.interop import folders, tensor_names
from zoo.interop.family import Family
from zoo.interop.template import Matcher, Mismatch, Settings, fill, gather_layers, shorten_layers
from zoo.model.builder import make
from zoo.model.weights import match_tensors
from zoo_plugins.tokenizer import Bpe

LIBRARY = open_library()
SIZES = {"d_model": 24, "n_heads": 4, "n_layers": 3, "max_len": 32, "vocab_size": 37}


def family(name: str) -> Family:
    return folders.find_family(LIBRARY.registry, name)


def trained(model, sizes=None) -> Trained:
    """A model with its first weights."""
    reader = LIBRARY.reader()
    spec = reader.model(LIBRARY.expand("model", Node(model), reader))
    shape = reader.shape(Node({**SIZES, **(sizes or {})}))
    reader.finish()
    return Trained(spec, make(spec, shape, registry=LIBRARY.registry).eval(), LIBRARY)


PLAIN_LLAMA = {"like": "llama-like", "embedding": "plain"}
PLAIN_GPT2 = {"like": "gpt2-like", "embedding": "plain"}


@pytest.fixture
def folder(tmp_path) -> Path:
    """A small GPT-2 in the form of transformers."""
    path = tmp_path / "small"
    folders.export_model(family("gpt2"), trained(PLAIN_GPT2), path)
    return path


def edited(folder: Path, **settings) -> Path:
    config = json.loads((folder / "config.json").read_text()) | settings
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def told(*arguments) -> str:
    """What the command writes to stderr as it refuses."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 2, (result.output, result.exception)
    return result.stderr


# Templates


@pytest.mark.parametrize(
    "template, settings, value",
    [
        ("$a", {"a": 3}, 3),
        ("$a.b", {"a.b": 3}, 3),
        ("$a - 2", {"a": 514}, 512),
        ("$a / 2 + 1", {"a": 6}, 4),
        ("$a ** -0.5", {"a": 24}, 24**-0.5),
        ("$a *ln 40 * 0.1 + 1 ** 2", {"a": 3}, (0.3 * math.log(40) + 1) ** 2),
        ("$a ** -0.5", {"a": None}, None),
        ({"$a": {True: "tied", False: "untied"}}, {"a": False}, "untied"),
        ({"$a": {"x": {"$b": {1: "one"}}, "y": "$c"}}, {"a": "y", "c": 2}, 2),
    ],
)
def test_a_template_is_read_in_both_directions(template, settings, value):
    assert fill(template, settings) == value
    found = Settings()
    Matcher(LIBRARY.registry).match(template, value, "here", found)
    assert found.found == settings


def test_a_template_of_many_parts():
    template = {"name": "rope", "base": "$a.b", "more": ["$c", "plain"]}
    assert fill(template, {"a": {"b": 1e4}, "c": None}) == {"name": "rope", "base": 1e4, "more": [None, "plain"]}


def test_a_reckoning_waits_for_its_operands():
    found = Settings()
    matcher = Matcher(LIBRARY.registry)
    matcher.match("$a / $b", 0.5, "fraction", found)
    matcher.match("$b", 8, "width", found)
    found.solve_waiting()
    assert found.found == {"a": 4, "b": 8}


def test_what_cannot_be_reckoned_back_is_told():
    found = Settings()
    Matcher(LIBRARY.registry).match("$a / $b", 0.5, "fraction", found)
    with pytest.raises(Mismatch, match="fraction"):
        found.solve_waiting()


def test_one_setting_has_one_value():
    found = Settings()
    Matcher(LIBRARY.registry).match("$a", 1e-5, "norm.eps", found)
    with pytest.raises(Mismatch) as error:
        Matcher(LIBRARY.registry).match("$a", 1e-6, "head.eps", found)
    assert error.value.text("llama") == "head.eps is 1e-06; llama has 1e-05, as elsewhere"


@pytest.mark.parametrize(
    "layers, written",
    [
        ("aaa", "a"),
        ("abab", ["a", "b"]),
        ("abcab", ["a", "b", "c"]),
        ("abbbb", {"first": ["a"], "repeat": ["b"]}),
        ("abcbc", {"first": ["a"], "repeat": ["b", "c"]}),
        ("a", "a"),
    ],
)
def test_layers_are_written_as_shortly_as_can_be(layers, written):
    assert shorten_layers(layers) == written


def test_layer_by_layer():
    template = {"each $kinds": {"full": "mha", "slow": {"name": "mha", "window": "$w"}}}
    settings = {"kinds": ["slow", "full"], "w": 4}
    slow = {"name": "mha", "window": 4}
    assert fill(template, settings, 5) == [slow, "mha"]
    assert gather_layers({"kinds[1]": "full", "kinds[0]": "slow", "w": 4}) == settings


# Names


def numbered(*shapes) -> dict[str, torch.Tensor]:
    """Tensors a, b, c, … whose numbers are all different."""
    total = sum(torch.Size(s).numel() for s in shapes)
    flat = torch.arange(total).split([torch.Size(s).numel() for s in shapes])
    return {name: x.view(s) for name, x, s in zip("abcdef", flat, shapes)}


@pytest.mark.parametrize(
    "rule, shapes, theirs",
    [
        ("x = a", [(2, 2)], [[0, 1], [2, 3]]),
        ("x = a : T", [(2, 3)], [[0, 3], [1, 4], [2, 5]]),
        ("x = a : T", [(3,)], [0, 1, 2]),
        ("x = a : row", [(3,)], [[0, 1, 2]]),
        ("x = a + b", [(1, 2), (2, 2)], [[0, 1], [2, 3], [4, 5]]),
        ("x = a + b : T", [(1, 2), (2, 2)], [[0, 2, 4], [1, 3, 5]]),
        ("x = a + b + c : heads", [(4,), (4,), (4,)], [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]),
        # two query heads to each head of keys: [q q k] [q q k]
        ("x = a + b : heads", [(8,), (4,)], [0, 1, 2, 3, 8, 9, 4, 5, 6, 7, 10, 11]),
        ("x = a + b : stride", [(3,), (3,)], [0, 3, 1, 4, 2, 5]),
    ],
)
def test_tensors_are_laid_out_and_taken_apart(rule, shapes, theirs):
    ours = numbered(*shapes)
    (pair,) = tensor_names.pair_names(tensor_names.read_rules(rule), ours)
    made = pair.join(ours, head_dim=2)
    assert made.tolist() == theirs
    again = pair.split(made, {name: x.shape for name, x in ours.items()}, head_dim=2)
    assert all(torch.equal(again[name], x) for name, x in ours.items())


def test_experts_are_stacked_in_the_order_of_their_numbers():
    ours = {f"e.{i}.w": torch.full((1, 2), i) for i in (0, 10, 2, 1)}
    (pair,) = tensor_names.pair_names(tensor_names.read_rules("x = e.{e}.w"), ours)
    assert pair.join(ours, 1)[:, 0, 0].tolist() == [0, 1, 2, 10]
    assert torch.equal(
        pair.split(pair.join(ours, 1), {n: x.shape for n, x in ours.items()}, 1)["e.10.w"], ours["e.10.w"]
    )


def test_a_tensor_of_another_size_is_told():
    ours = numbered((2, 3))
    (pair,) = tensor_names.pair_names(tensor_names.read_rules("x = a : T"), ours)
    with pytest.raises(ValueError, match=r"x is \[2, 3\]; it should be \[3, 2\]"):
        pair.split(torch.zeros(2, 3), {"a": torch.Size([2, 3])}, 1)


@pytest.mark.parametrize("line", ["x", "= a", "x = a : twice", "x ="])
def test_a_line_that_is_no_rule(line):
    with pytest.raises(ValueError, match="is no rule"):
        tensor_names.read_rules(line)


# Tables


@pytest.mark.parametrize(
    "text, said",
    [
        ("nmaes: a = b", "table.yaml:1:1: a table has no 'nmaes'; did you mean 'names'?"),
        ("names: a", "'a' is no rule"),
        ("like: nothing", "nothing.yaml: cannot be read"),
        ("[]", "a table is a mapping of sections"),
    ],
)
def test_a_table_that_cannot_be(tmp_path, text, said):
    (tmp_path / "table.yaml").write_text(text)
    with pytest.raises(SpecError) as error:
        Family(tmp_path / "table.yaml")
    assert said in str(error.value)


def test_a_table_changes_the_one_that_it_is_like(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "config: {model_type: a, other: 1}\n"
        "shape: {d_model: $width}\n"
        "model: {norm: {name: rmsnorm, eps: $eps}, ffn: gelu}\n"
        "names: |\n  x = a\n  y = b\n"
    )
    (tmp_path / "b.yaml").write_text(
        "like: a\nconfig: {model_type: b}\nmodel: {norm: {unit_offset: true}, ffn: relu}\nnames: x = c\n"
    )
    b = Family(tmp_path / "b.yaml")
    assert b.table["config"] == {"model_type": "b", "other": 1} and b.table["shape"] == {"d_model": "$width"}
    assert b.table["model"] == {"norm": {"name": "rmsnorm", "eps": "$eps", "unit_offset": True}, "ffn": "relu"}
    assert [(rule.theirs, rule.ours) for rule in b.rules] == [("x", ("c",)), ("y", ("b",))]


# Configurations as they lie on disk

LLAMA2 = CONFIGS["llama-7b"] | {"rope_scaling": None, "pretraining_tp": 1}


def test_old_spellings_are_read_as_new_ones():
    model, sizes = family("llama").read(CONFIGS["llama-3.2-1b"] | {"eos_token_id": [128001, 128008]})
    assert model["position"] == {
        "name": "rope-llama3", "base": 500000.0, "factor": 32.0, "original_max_len": 8192, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    }  # fmt: skip
    assert sizes["eos"] == 128001
    linear = family("llama").read(LLAMA2 | {"rope_scaling": {"type": "linear", "factor": 2.0}})[0]
    assert linear["position"] == {"name": "rope-linear", "base": 10000.0, "factor": 2.0}


@pytest.mark.parametrize(
    "changed, said",
    [
        (
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "rope_parameters.rope_type is 'dynamic'; the zoo can read",
        ),
        ({"hidden_act": "mish"}, "hidden_act is 'mish'"),
        ({"logit_scale": 0.5}, "logit_scale is 0.5, and nothing is known of that setting"),
        ({"quantization_config": {"bits": 4}}, "quantization_config is"),
        ({"model_type": "mistral"}, "model_type is 'mistral'; llama has 'llama'"),
    ],
)
def test_a_setting_that_would_change_the_model_is_not_passed_over(changed, said):
    with pytest.raises(SpecError) as error:
        family("llama").read(LLAMA2 | changed)
    assert said in str(error.value)


def test_a_setting_may_be_passed_over_by_name():
    assert family("llama").read(LLAMA2 | {"logit_scale": 0.5}, ignore=["logit_scale"])


def test_a_setting_that_is_needed_and_missing_is_told():
    config = {k: v for k, v in LLAMA2.items() if k not in ("hidden_size", "vocab_size")}
    with pytest.raises(SpecError, match="no 'hidden_size'(.|\n)*no 'vocab_size'"):
        family("llama").read(config)


# Folders


def same(a, b) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def imported(path: Path, name: str | None = None):
    taken = folders.import_model(folders.read_folder(path), LIBRARY, name)
    return folders.load_model(taken, LIBRARY.registry)


def test_the_family_is_that_of_the_folder(folder):
    assert same(imported(folder), trained(PLAIN_GPT2).model)


def test_reserved_tokens_come_from_the_tokenizer_where_the_configuration_is_silent(folder):
    words = {"[PAD]": 7, "[MASK]": 9, "[SEP]": 8}
    tokens = [{"content": word, "id": id, "special": True} for word, id in words.items()]
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens}))
    named = {"mask_token": "[MASK]", "pad_token": {"content": "[PAD]"}, "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    sizes = folders.import_model(folders.read_folder(folder), LIBRARY).sizes
    assert (sizes["mask"], sizes["pad"], sizes["eos"]) == (9, 0, 2)
    edited(folder, pad_token_id=None)
    assert folders.import_model(folders.read_folder(folder), LIBRARY).sizes["pad"] == 7


def test_one_file_with_its_configuration_beside_it(folder):
    assert same(imported(folder / "model.safetensors"), trained(PLAIN_GPT2).model)


def test_a_sharded_folder(folder):
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    files = {"a.safetensors": names[:5], "b.safetensors": names[5:]}
    for file, held in files.items():
        save_file({n: tensors[n] for n in held}, folder / file)
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {n: file for file, held in files.items() for n in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert same(imported(folder), trained(PLAIN_GPT2).model)
    (folder / "b.safetensors").unlink()
    assert "names b.safetensors, and that is not there" in told("import", folder)


def test_names_of_a_model_without_a_head_and_constants_in_the_file(folder):
    tensors = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("transformer."): x for name, x in tensors.items()}
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 4, 4) for i in range(3)}
    save_file({**bare, **masks}, folder / "model.safetensors")
    assert same(imported(folder), trained(PLAIN_GPT2).model)


def test_a_tied_head_in_the_file_is_the_table_or_a_fault(folder):
    tensors = load_file(folder / "model.safetensors")
    table = tensors["transformer.wte.weight"]
    save_file({**tensors, "lm_head.weight": table.clone()}, folder / "model.safetensors")
    assert same(imported(folder), trained(PLAIN_GPT2).model)
    save_file({**tensors, "lm_head.weight": table + 1}, folder / "model.safetensors")
    assert "lm_head.weight is another tensor than the one that it should be tied to" in told("import", folder)


def test_what_is_missing_over_or_misshapen_is_told_at_once(folder):
    tensors = load_file(folder / "model.safetensors")
    changed = {k: x for k, x in tensors.items() if "ln_f" not in k} | {"extra.weight": torch.zeros(2)}
    save_file(changed, folder / "model.safetensors")
    said = told("import", folder)
    assert "transformer.ln_f.weight is missing" in said and "transformer.ln_f.bias is missing" in said
    assert "extra.weight is left over" in said
    save_file({**tensors, "transformer.wpe.weight": torch.zeros(3, 24)}, folder / "model.safetensors")
    assert "transformer.wpe.weight is [3, 24]; it should be [32, 24]" in told("import", folder)


def test_folders_that_cannot_be_read(folder, tmp_path):
    assert "nowhere is not there" in told("import", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "config.json cannot be read: no such file" in told("import", tmp_path / "empty")
    assert "the families are" in told("import", edited(folder, model_type="unheard"))
    assert "model_type is 'unheard'; gpt2 has 'gpt2'" in told("import", folder, "--as", "gpt2")
    assert "did you mean 'gpt2'" in told("import", folder, "--as", "gtp2")
    edited(folder, model_type="gpt2")
    (folder / "config.json").write_text("{")
    assert "config.json is no JSON" in told("import", folder)


def test_weights_that_cannot_be_read(folder):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:1000])
    assert "model.safetensors cannot be read" in told("import", folder)
    (folder / "model.safetensors").unlink()
    assert "should hold one file of safetensors, and holds none" in told("import", folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    said = told("import", folder)
    assert "can run code while it is read" in said and "safe_serialization" in said
    for name in "ab":
        (folder / f"{name}.safetensors").write_bytes(whole)
    assert "holds several: a.safetensors, b.safetensors; name the file" in told("import", folder)


# Out


def test_all_that_has_no_equivalent_is_told_at_once():
    run = trained({"like": "gpt2-like", "attention": {"softcap": 3.0}})
    with pytest.raises(SpecError) as error:
        family("llama").export_config(run.spec, run.model, LIBRARY.registry)
    assert {fault.text for fault in error.value.faults} == {
        "embedding is 'scaled'; llama has 'plain'",
        "position is 'learned'; llama has 'rope' or 'rope-linear' or 'rope-llama3' or 'rope-yarn'",
        "norm is 'layernorm'; llama has 'rmsnorm'",
        "attention.softcap is 3.0; llama has null",
        "ffn is 'gelu-tanh'; llama has 'swiglu' or 'geglu' or 'reglu'",
    }


@pytest.mark.parametrize(
    "model, said",
    [
        ({**PLAIN_LLAMA, "position": {"name": "rope", "pairing": "interleaved"}}, "position.pairing is 'interleaved'"),
        ({**PLAIN_LLAMA, "norm": [{"name": "rmsnorm", "eps": 1e-3}, "rmsnorm"]}, "norm.eps is 1e-06; llama has 0.001"),
        ({**PLAIN_LLAMA, "attention": {"qk_norm": "head"}}, "attention.qk_norm is 'head'; llama has 'none'"),
        ({**PLAIN_LLAMA, "share": 1}, "share is 1; llama has null"),
        ({**PLAIN_LLAMA, "head": {"name": "tied", "bias": True}}, "head.bias is true; llama has false"),
        ({**PLAIN_LLAMA, "ffn": ["swiglu", "geglu"]}, "ffn is 'geglu'"),
        ({**PLAIN_LLAMA, "residual": ["pre-norm", "sandwich-norm", "pre-norm"]}, "residual is 'sandwich-norm'"),
    ],
)
def test_a_model_that_the_family_cannot_hold(model, said):
    run = trained(model)
    with pytest.raises(SpecError) as error:
        family("llama").export_config(run.spec, run.model, LIBRARY.registry)
    assert said in str(error.value)


LATENT = {
    "embedding": "plain", "position": {"name": "rope", "pairing": "interleaved"}, "norm": "rmsnorm", "head": "untied",
    "attention": {"name": "mla", "kv_rank": 8, "norm": {"name": "rmsnorm", "eps": 1e-6}},
}  # fmt: skip
EXPERTS = {"name": "moe-softmax", "experts": 4, "expert": {"name": "swiglu", "d_ff": 8}}
EXPERTS |= {"shared": {"name": "swiglu", "d_ff": 16}}


@pytest.mark.parametrize("dense", [0, 1, 2])
def test_first_layers_are_counted(dense):
    ffn = {"first": ["swiglu"] * dense, "repeat": [EXPERTS]} if dense else EXPERTS
    run = trained({**LATENT, "ffn": ffn}, {"d_ff": 40, "head_dim": 6})
    table = family("deepseek-v2")
    config = table.export_config(run.spec, run.model, LIBRARY.registry)
    assert config["first_k_dense_replace"] == dense and "dense" not in config
    assert (config["n_shared_experts"], config["moe_intermediate_size"]) == (2, 8)
    layers = trained(*table.read(config)).spec.slots["ffn"].of("decoder")
    assert [layers.at(i).name for i in range(3)] == ["swiglu"] * dense + ["moe-softmax"] * (3 - dense)


def test_layers_that_should_come_first_and_do_not():
    run = trained({**LATENT, "ffn": [EXPERTS, "swiglu"]}, {"d_ff": 40, "head_dim": 6})
    with pytest.raises(SpecError, match="layer 0 is not as those after it; deepseek-v2 has such layers first"):
        family("deepseek-v2").export_config(run.spec, run.model, LIBRARY.registry)


def test_an_ffn_that_is_wider_in_some_layers_is_told(tmp_path):
    widths = [{"name": "swiglu", "d_ff": 32}, {"name": "swiglu", "d_ff": 48}]
    with pytest.raises(SpecError, match=r"decoder.layers.1.ffn.down.weight is \[24, 48\]; llama has \[24, 32\]"):
        folders.export_model(family("llama"), trained({**PLAIN_LLAMA, "ffn": widths}), tmp_path)


def test_a_kernel_that_has_weights_of_its_own_is_told(tmp_path):
    run = trained({**PLAIN_GPT2, "kernel": "additive"})
    with pytest.raises(SpecError, match="gpt2 has no name for the model's decoder.layers.0.attention.kernel"):
        folders.export_model(family("gpt2"), run, tmp_path)


def test_names_do_not_matter_where_the_part_is_the_same():
    """mha is gqa with as many heads; the width of the FFN is what its tensors have."""
    run = trained({**PLAIN_LLAMA, "attention": "mha", "ffn": {"name": "swiglu", "ratio": 2.0}})
    config = family("llama").export_config(run.spec, run.model, LIBRARY.registry)
    assert config["num_key_value_heads"] is None and config["intermediate_size"] == 48


def test_the_command_finds_the_family(folder, tmp_path):
    run = CliRunner().invoke
    assert run(main, ["import", str(folder), "--to", str(tmp_path / "mine")]).exit_code == 0
    out = run(main, ["export", str(tmp_path / "mine"), "--to", str(tmp_path / "again")])
    assert out.exit_code == 0 and "gpt2, GPT2LMHeadModel" in out.output
    before, after = (load_file(p / "model.safetensors") for p in (folder, tmp_path / "again"))
    assert before.keys() == after.keys() and all(torch.equal(x, after[k]) for k, x in before.items())
    assert same(zoo.load(tmp_path / "mine").model, trained(PLAIN_GPT2).model)
    assert "holds no trained model" in told("export", folder, "--to", tmp_path / "nothing")


# Starting from weights


@pytest.fixture
def start(folder, tmp_path) -> Path:
    """A file that includes an imported model and compares it with a changed one."""
    folders.write_folder(
        folders.import_model(folders.read_folder(folder), LIBRARY), folders.read_folder(folder), tmp_path / "mine"
    )
    file = tmp_path / "file.yaml"
    file.write_text(
        "include: [mine/model.yaml]\n"
        "models:\n"
        "  changed: {like: mine, norm: rmsnorm, attention: {bias: false}}\n"
        "  fresh: {like: mine, weights: null}\n"
        "comparisons:\n"
        "  c:\n"
        "    models: [mine, changed, fresh]\n"
        "    task: {name: copy}\n"
        "    train: {steps: 1}\n"
    )
    return file


def runs(file: Path) -> dict:
    library = open_library(file)
    return {row.name: row.runs[0] for row in read_comparison(library, "c").rows}


def test_a_run_starts_from_the_tensors_that_fit(start):
    made = runs(start)
    task = made["mine"].make_task()
    task.vocab_size = SIZES["vocab_size"]
    reference = trained(PLAIN_GPT2).model.state_dict()
    assert same(made["mine"].make_model(task), trained(PLAIN_GPT2).model)
    changed = made["changed"].make_model(task).state_dict()
    assert torch.equal(changed["decoder.layers.1.ffn.up.weight"], reference["decoder.layers.1.ffn.up.weight"])
    assert "decoder.layers.1.attention.q.bias" not in changed


def test_the_content_of_the_file_is_part_of_the_run(start):
    before = {name: run.id() for name, run in runs(start).items()}
    assert len(set(before.values())) == 3
    moved = start.with_name("elsewhere")
    start.with_name("mine").rename(moved)
    start.write_text(start.read_text().replace("mine/model", "elsewhere/model"))
    assert {name: run.id() for name, run in runs(start).items()} == before
    weights = load_file(moved / "weights.safetensors")
    save_file({name: x + 1 for name, x in weights.items()}, moved / "weights.safetensors")
    after = {name: run.id() for name, run in runs(start).items()}
    assert [name for name in before if before[name] == after[name]] == ["fresh"]


def test_the_content_of_a_tokenizer_is_part_of_the_run(tmp_path):
    tokenizer = Bpe(vocab_size=270)
    tokenizer.train(["the same text, the same text"])
    paths = [tmp_path / name for name in ("one.json", "two.json")]
    for path in paths:
        path.write_text(tokenizer.shared())
    task = "language-modeling, tokenizer: {name: pretrained, file: %s}"

    def id(path: Path) -> str:
        file = tmp_path / "file.yaml"
        train = "train: {steps: 1}"
        file.write_text(f"comparisons: {{c: {{model: gpt2-like, task: {{name: {task % path.name}}}, {train}}}}}")
        return runs(file)["gpt2-like"].id()

    assert id(paths[0]) == id(paths[1])
    paths[1].write_text(tokenizer.shared() + " ")
    assert id(paths[0]) != id(paths[1])


def test_build_starts_from_weights_too(start):
    weights = str(start.parent / "mine" / "weights.safetensors")
    model = build({**PLAIN_GPT2, "weights": weights}, shape=SIZES, seed=5)
    assert same(model, trained(PLAIN_GPT2).model)


def test_weights_that_are_not_there_are_told_where_they_are_named(start):
    text = start.read_text().replace("weights: null", "weights: none.safetensors")
    start.write_text(text)
    line = 1 + text.splitlines().index("  fresh: {like: mine, weights: none.safetensors}")
    said = told("validate", start)
    assert said.startswith(f"{start}:{line}:") and f"there is no file {start.parent / 'none.safetensors'}" in said


def test_weights_of_which_nothing_fits_are_refused(start, tmp_path):
    start.write_text(
        start.read_text().replace("task: {name: copy}", "task: {name: copy}\n    shape: {d_model: 16, n_heads: 2}")
    )
    said = told("run", start, "--out", tmp_path / "runs")
    assert "has none of the model's tensors" in said


def test_a_run_tells_what_it_draws_and_what_it_leaves(start):
    run = runs(start)["changed"]
    task = run.make_task()
    task.vocab_size = SIZES["vocab_size"]
    facts = describe_weights(run.model, match_tensors(run.make_model(task), run.model.weights))
    assert facts["drawn"] == [] and "decoder.layers.0.attention.q.bias" in facts["unused"]
    assert facts["filled"] == len(run.make_model(task).state_dict()) - 1  # the tied table has two names


def test_an_included_model_comes_before_one_of_the_zoo_of_the_same_name(start):
    model = start.parent / "mine" / "model.yaml"
    model.write_text(model.read_text().replace("mine:", "gpt2:"))
    start.write_text("include: [mine/model.yaml]\n")
    assert open_library(start).find("models", "gpt2").document.name == str(model)


@pytest.mark.parametrize(
    "text, said",
    [
        ("models: {m: {like: gpt2-like, weights: 3}}", "1:40: weights is 3; it should be the path of a file"),
        ("include: x.yaml", "1:10: include is 'x.yaml'; it should be a list of files"),
        ("include: [3]", "1:10: include is [3]; it should be a list of files"),
    ],
)
def test_slips_in_a_file(tmp_path, text, said):
    (tmp_path / "file.yaml").write_text(text)
    assert said in told("validate", tmp_path / "file.yaml")


def test_the_schema_knows_what_a_file_may_say(start):
    jsonschema = pytest.importorskip("jsonschema", reason="the package 'jsonschema' is not installed")
    for file in (start, start.parent / "mine" / "model.yaml"):
        jsonschema.validate(yaml.load_file(file).value, schema(LIBRARY.registry))


def test_an_included_file_that_is_not_there(tmp_path):
    file = tmp_path / "file.yaml"
    file.write_text("include: [none.yaml]\n")
    assert f"{file}:1:11: " in told("validate", file)
