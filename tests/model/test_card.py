"""The published models: their exact counts, their costs, and what is left of them at other sizes."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import jsonschema
import pytest
from click.testing import CliRunner
from support.files import faults, write

import zoo
from zoo.cli import main
from zoo.compare.comparison import read_comparison, warnings
from zoo.compare.schema import schema
from zoo.declare.library import open_library, own_document
from zoo.declare.shape import Shape
from zoo.declare.signature import Divides, EvenShare, Grows
from zoo.declare.spec import MODEL_SLOTS, Node
from zoo.model.builder import bind_on_meta, build_on_meta
from zoo.model.card import compare_with_published, count_by_part, list_differences, list_facts, make_card
from zoo.registry import discover

MODELS = own_document().value["models"]
PUBLISHED = [name for name, model in MODELS.items() if "published" in model]
SOUGHT = """gpt2 gpt2-xl gpt3 gpt1 transformer-base bert-base roberta-base t5-small bart-base llama-7b llama-3-8b palm-8b
bloom-560m mpt-7b mistral-7b mixtral-8x7b gemma2-2b qwen3-0.6b deepseek-v2-lite gpt-oss-20b""".split()
LIBRARY = open_library()


def read(name, library=LIBRARY):
    reader = library.reader()
    spec = reader.model(library.expand("model", Node(name), reader))
    reader.finish()
    return spec


def written(tmp_path, text, name="c"):
    """The comparison of a file."""
    return read_comparison(open_library(write(tmp_path, text)), name)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, (result.stdout, result.stderr, result.exc_info)
    return result.stdout if code == 0 else result.stderr


# exact counts


def test_the_models_that_the_field_knows_are_there():
    assert set(SOUGHT) <= set(PUBLISHED) and len(PUBLISHED) >= 60


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_to_the_last_digit(name):
    spec = read(name)
    model = bind_on_meta(spec, spec.shape)
    assert {p.device.type for p in model.parameters()} == {"meta"}
    assert sum(p.numel() for p in model.parameters()) == spec.published.parameters
    if spec.published.body is not None:
        kept = {id(p) for part, p in model.named_parameters(remove_duplicate=False) if not part.startswith("head.")}
        body = sum(p.numel() for p in model.parameters() if id(p) in kept)
        assert body + spec.published.pooler == spec.published.body
        assert spec.published.pooler in (0, spec.shape.d_model * (spec.shape.d_model + 1))


@pytest.mark.parametrize("name", PUBLISHED)
def test_no_default_of_a_file_changes_a_published_model(name):
    assert read(name).given >= set(MODEL_SLOTS) - {"kernel", "cross"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_papers_have_author_and_year(name):
    paper = MODELS[name]["published"]["paper"]
    year, number = re.search(r"\b(20\d\d), (.+)$", paper).groups()
    if arxiv := re.fullmatch(r"arXiv:(\d\d)(\d\d)\.\d{5}", number):
        assert "20" + arxiv[1] == year and 1 <= int(arxiv[2]) <= 12


# Figures of the papers' own tables, in the digits in which they are printed.
PRINTED = {
    "gpt3": (174_600e6, 1e8),  # Brown et al. 2020, table 2.1: 175.0B; worked out in the seed article: 174.6B
    "palm-8b": (8.63e9, 1e7),  # Chowdhery et al. 2022, table 1
    "llama-7b": (6.7e9, 1e8),  # Touvron et al. 2023, table 2
    "bloom-7b1": (7_069_016_064, 1),  # the model card
    "mixtral-8x7b": (47e9, 1e9),  # Jiang et al. 2024, section 2: 47B
    "deepseek-v2-lite": (15.7e9, 1e8),  # DeepSeek-AI 2024, appendix B
    "gpt-oss-20b": (20.9e9, 1e8),  # OpenAI 2025, table 1: 20.91B
}


@pytest.mark.parametrize("name", PRINTED)
def test_what_the_papers_print(name):
    printed, digit = PRINTED[name]
    assert abs(MODELS[name]["published"]["parameters"] - printed) <= digit / 2


# costs, held to numbers from elsewhere


def test_cache_of_llama_at_4096_tokens():
    made = make_card(LIBRARY, "llama-7b", context=4096)
    assert made.kv_bytes == 2 * 32 * 4096 * 4096 * 2 == 2.0 * 2**30
    assert made.kv_bytes_per_token == 2 * 32 * 4096 * 2
    assert make_card(LIBRARY, "llama-7b").kv_bytes == 2**30, "2048 tokens, as published"


def test_cache_of_latent_attention():
    """DeepSeek-AI 2024, section 2.1.4: (d_c + d_h^R) l numbers per token."""
    assert make_card(LIBRARY, "deepseek-v2-lite", context=64).kv_bytes_per_token == (512 + 64) * 27 * 2


def test_cache_of_an_encoder_decoder_holds_the_source_too():
    made = make_card(LIBRARY, "t5-small")
    assert made.kv_bytes_per_token == 2 * 6 * 512 * 2
    assert made.kv_bytes == 2 * made.kv_bytes_per_token * made.context


@pytest.mark.parametrize("name, used", [("llama-7b", "head"), ("gpt2", "embedding"), ("llama-3-8b", "head")])
def test_flops_are_twice_the_weights_and_the_attention(name, used):
    """2 N + 4 L T d per token (Kaplan et al. 2020, table 1), of which a causal mask lets (T + 1) / 2 T through: N the
    matrices, each used once."""
    made = make_card(LIBRARY, name)
    spec, shape, T = made.spec, made.shape, made.context
    model = bind_on_meta(spec, shape)
    matrices = sum(p.numel() for path, p in model.named_parameters() if ".layers." in path and p.ndim == 2)
    matrices += shape.vocab_size * shape.d_model
    assert made.flops_per_token == 2 * matrices + 2 * shape.n_layers * (T + 1) * shape.d_model
    assert made.parameters[used] == shape.vocab_size * shape.d_model


def test_a_mixture_computes_its_chosen_experts_alone():
    """Jiang et al. 2024, section 2: 13B of 47B parameters serve a token."""
    made = make_card(LIBRARY, "mixtral-8x7b", context=1024)
    attention = 2 * 32 * 1025 * 4096
    assert (made.flops_per_token - attention) / 2 == pytest.approx(13e9, abs=0.5e9)


def test_parameters_by_part():
    bert = make_card(LIBRARY, "bert-base")
    d, V = 768, 30522
    assert bert.parameters == {
        "embedding": V * d + 2 * d + 2 * d,
        "position": 512 * d,
        "attention": 12 * 4 * (d * d + d),
        "ffn": 12 * (8 * d * d + 5 * d),
        "residual": 12 * 4 * d,
        "head": d * d + d + 2 * d + V,
    }
    assert bert.total == 109_514_298 and bert.kv_bytes is None
    assert "known as 109,482,240, counted without the head and with a pooler of 590,592" in compare_with_published(bert)


def test_every_parameter_has_an_owner():
    for name in ("albert-base-v2", "opt-350m", "gemma3-1b", "t5-base", "gpt-oss-20b"):
        spec = read(name)
        assert "rest" not in count_by_part(bind_on_meta(spec, spec.shape))


@pytest.mark.parametrize("arguments", ["show model:gpt3", "diff gpt3 llama-7b"])
def test_a_model_of_175b_costs_nothing(arguments):
    # Not ru_maxrss, which begins with what the process that forks has.
    told = "print(time.process_time(), next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    code = f"import atexit, time; atexit.register(lambda: {told}); import zoo.cli; zoo.cli.main({arguments.split()})"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    seconds, _, kib, _ = found.split()[-4:]
    assert float(seconds) < 10, "of processor; half of it on a free machine"
    assert int(kib) < 1024**2


# other sizes


def test_rules_of_growth():
    own, new = Shape(d_model=4096, n_heads=32), Shape(d_model=128, n_heads=4)
    assert Grows("d_model", 8).fit(11008, own, new) == 344
    assert Grows("d_model", 8).fit(1, own, new) == 8
    assert Divides("n_heads").fit(8, own, new) == 1
    assert Divides("n_heads").fit(16, own, replace(own, n_heads=6, d_model=36)) == 3
    assert Divides("n_heads").fit(8, own, replace(own, n_heads=6, d_model=36)) == 1, "1.5: of two as near, the smaller"
    phi = Shape(d_model=2560, n_heads=32)
    assert EvenShare("head_width").fit(0.4, phi, new) * 32 == 12, "12.8 is odd once it is rounded"
    assert EvenShare("head_width").fit(0.25, phi, new) == 0.25


def test_a_named_shape_replaces_the_sizes_and_keeps_the_choices(tmp_path):
    text = "comparisons: {c: {models: [gpt2, llama-3-8b, gemma2-2b], shape: tiny, task: copy, train: {steps: 3}}}"
    gpt2, llama, gemma = (row.runs[0] for row in written(tmp_path, text).rows)
    for each in (gpt2, llama, gemma):
        assert (each.shape.d_model, each.shape.n_heads, each.shape.n_layers, each.shape.max_len) == (128, 4, 4, 128)
        assert each.shape.vocab_size == Shape.vocab_size, "the tokenizer's, later"
    assert gpt2.shape.d_ff is None and llama.shape.d_ff == 448 == 128 * 14336 / 4096
    assert [p.options["kv_heads"] for p in llama.model.slots["attention"].parts()] == [1]
    near, far = gemma.model.slots["attention"].parts()
    assert (near.options["window"], far.options["window"]) == (64, None), "half of max_len, as published"
    assert near.options["kv_heads"] == 2 and near.options["softcap"] == 50.0
    assert gemma.shape.head_dim == 28, "256 of 288 published, 28.4 of 32 here, and even"


def test_a_scale_multiplies_the_models_own_sizes(tmp_path):
    text = "comparisons: {c: {models: [gpt2, llama-7b], shape: {scale: 0.25}, task: copy, train: {steps: 3}}}"
    gpt2, llama = (row.runs[0].shape for row in written(tmp_path, text).rows)
    assert (gpt2.d_model, gpt2.n_heads, gpt2.n_layers, gpt2.max_len) == (192, 3, 3, 256)
    assert (llama.d_model, llama.n_heads, llama.n_layers, llama.max_len, llama.d_ff) == (1024, 8, 8, 512, 2752)


def test_sizes_beside_a_scale_are_as_they_are_written(tmp_path):
    text = "comparisons: {c: {model: llama-7b, shape: {scale: 0.1, max_len: 64, n_heads: 4}, task: copy, train: {steps: 3}}}"
    shape = written(tmp_path, text).rows[0].runs[0].shape
    assert (shape.d_model, shape.n_heads, shape.n_layers, shape.max_len) == (416, 4, 3, 64)
    assert shape.d_ff == 1120, "2.6875 of d_model, in eights"


def test_some_sizes_change_these_alone(tmp_path):
    text = "comparisons: {c: {model: gpt2, shape: {max_len: 64, n_layers: 2}, task: copy, train: {steps: 3}}}"
    shape = written(tmp_path, text).rows[0].runs[0].shape
    assert (shape.d_model, shape.n_heads, shape.n_layers, shape.max_len) == (768, 12, 2, 64)


def test_no_shape_at_all_is_the_models_own(tmp_path):
    text = "comparisons: {c: {model: nanogpt-char-cpu, task: copy, train: {steps: 3}}}"
    run = written(tmp_path, text).rows[0].runs[0]
    assert run.shape == replace(read("nanogpt-char-cpu").shape, vocab_size=Shape.vocab_size)


def test_depth_does_not_shrink_below_the_pattern_unless_asked(tmp_path):
    text = """
    comparisons:
      kept: {model: gemma3-1b, shape: {scale: 0.1}, task: copy, train: {steps: 3}}
      lost: {model: gemma3-1b, shape: tiny, task: copy, train: {steps: 3}}
    """
    kept, lost = written(tmp_path, text, "kept"), written(tmp_path, text, "lost")
    assert kept.rows[0].runs[0].shape.n_layers == 6 and warnings(kept) == []
    assert warnings(lost) == [
        "row 'gemma3-1b': position 'rope base=1000000.0' is in none of its 4 layers",
        "row 'gemma3-1b': attention 'mqa qk_norm='head'' is in none of its 4 layers",
    ]


@pytest.mark.parametrize("shape", ["tiny", {"scale": 0.04, "max_len": 48}], ids=str)
def test_every_published_model_can_be_shrunk(shape):
    for name in PUBLISHED:
        reader = LIBRARY.reader()
        sizes = LIBRARY.expand("shape", Node(shape), reader)
        spec, small = reader.sized(LIBRARY.expand("model", Node(name), reader), sizes)
        reader.finish()
        build_on_meta(spec, replace(small, vocab_size=512))
        names = [[part.name for part in model.parts()] for model in (spec, read(name))]
        assert names[0] == names[1], name


def test_what_a_comparison_writes_is_for_its_own_sizes(tmp_path):
    text = """
    models:
      mine: {like: llama-3-8b, attention: {kv_heads: 16}}
    comparisons:
      c:
        models: [mine, {like: mine, attention: {kv_heads: 4}}]
        shape: tiny
        task: copy
        train: {steps: 3}
      d: {model: mine, vary: {attention.kv_heads: [1, 4]}, shape: tiny, task: copy, train: {steps: 3}}
    """
    for name, expected in (("c", [2, 4]), ("d", [1, 4])):
        rows = written(tmp_path, text, name).rows
        assert [next(row.runs[0].model.slots["attention"].parts()).options["kv_heads"] for row in rows] == expected


def test_a_model_like_another_takes_over_its_sizes_but_not_its_fame(tmp_path):
    text = """
    models:
      a: {like: llama-7b, shape: {n_layers: 2, d_ff: null}, position: alibi}
      b: {like: a, shape: quick}
      c: {like: a, shape: {like: quick, n_heads: 2}}
    """
    library = open_library(write(tmp_path, text))
    a, b, c = (read(name, library) for name in "abc")
    assert a.shape == replace(read("llama-7b").shape, n_layers=2, d_ff=None) and a.published is None
    assert b.shape == Shape(d_model=64, n_heads=4, n_layers=2, max_len=64)
    assert c.shape == replace(b.shape, n_heads=2)


def test_a_model_with_sizes_needs_no_shape_in_python():
    model = zoo.build("nanogpt-char-cpu")
    assert sum(p.numel() for p in model.parameters()) == 804_096
    small = zoo.build({"like": "llama-3-8b", "attention": {"kv_heads": 2}}, shape="quick")
    assert small.shape.n_layers == 2 and small.shape.vocab_size == 128_256
    assert faults(lambda: zoo.build("llama-like")) == ["model: it has no shape of its own; give one"]


LLAMA = "shape: {scale: 0.1}, task: copy, train: {steps: 3}"


@pytest.mark.parametrize(
    "text, said",
    [
        (f"model: gpt2-like, {LLAMA}", "1:45: scale multiplies a model's own sizes, and this one has none"),
        ("model: gpt2, shape: {scale: 0}, task: copy, train: {steps: 3}",
         "1:47: shape.scale is 0; it should be a number above 0 and at most 100"),
        ("model: gpt2, shape: {scale: 1e300}, task: copy, train: {steps: 3}",
         "1:47: shape.scale is 1e+300; it should be a number above 0 and at most 100"),
        ("model: gpt2, shape: {scale: tiny}, task: copy, train: {steps: 3}",
         "1:47: shape.scale is 'tiny'; it should be a number above 0 and at most 100"),
        ("model: gpt2, shape: {like: tiny, scale: 2}, task: copy, train: {steps: 3}",
         "1:52: scale has nothing to multiply where all sizes are written"),
        ("model: gpt2, shape: {d_model: 100}, task: copy, train: {steps: 3}",
         "1:39: n_heads 12 does not divide d_model 100; choose another or give head_dim"),
        ("model: gpt2, shape: {scael: 2}, task: copy, train: {steps: 3}",
         "1:40: shape has no option 'scael'; did you mean 'scale'?"),
        ("model: gpt2, shape: {vocab_size: 99}, task: copy, train: {steps: 3}",
         "1:40: a comparison takes vocab_size from its tokenizer; leave it out"),
        ("model: gpt-2, task: copy, train: {steps: 3}", "1:26: no model is called 'gpt-2'; did you mean 'gpt2'?"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be(tmp_path, text, said):
    assert faults(lambda: written(tmp_path, f"comparisons: {{c: {{{text}}}}}")) == [f"a.yaml:{said}"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("{like: gpt2, shape: {scale: 0.5}}",
         "1:34: scale multiplies a model's own sizes; write it in a comparison"),
        ("{like: gpt2, shape: {d_modle: 5}}", "1:34: shape has no option 'd_modle'; did you mean 'd_model'?"),
        ("{like: gpt2, shape: tinny}", "1:33: no shape is called 'tinny'; did you mean 'tiny'?"),
        ("{like: gpt2, shape: 3}", "1:33: shape is 3; it should be a name or a mapping"),
        ("{like: llama-3-8b, attention: {kv_heads: 5}}",
         "1:43: attention 'gqa': kv_heads 5 does not divide n_heads 32; the nearest that do: 4 and 8"),
        ("{like: gpt2, published: {parameters: 5, papers: x}}",
         "1:53: published has no option 'papers'; did you mean 'paper'?"),
        ("{like: gpt2, published: {body: 5}}", "1:37: published needs 'parameters', an integer"),
        ("{like: gpt2, publisht: {}}", "1:26: a model has no slot 'publisht'; did you mean 'published'?"),
    ],
)  # fmt: skip
def test_what_a_model_cannot_say_of_itself(tmp_path, text, said):
    lines = run("validate", write(tmp_path, f"models: {{m: {text}}}"), code=2).splitlines()
    assert [line.partition("a.yaml:")[2] for line in lines] == [said]


def test_the_schema_knows_what_a_model_says_of_itself():
    validator = jsonschema.Draft202012Validator(schema(discover(plugins=False)))
    for model, valid in (
        ({"like": "gpt2", "shape": {"n_layers": 3}, "published": {"parameters": 3, "paper": "x"}}, True),
        ({"shape": "tiny"}, True),
        ({"shape": {"scale": 0.5}}, False),
        ({"published": {"paper": "x"}}, False),
    ):
        assert validator.is_valid({"models": {"m": model}}) == valid
    comparison = {"model": "gpt2", "task": "copy", "train": {"steps": 3}}
    assert validator.is_valid({"comparisons": {"c": {**comparison, "shape": {"scale": 0.1}}}})


STYLES = """
comparisons:
  styles: {models: [gpt2, llama-7b], shape: tiny, task: {name: copy, max_length: 6}, train: {steps: 3, batch_size: 2}}
"""


def test_two_styles_at_my_budget(tmp_path):
    out = run("run", write(tmp_path, STYLES), "--out", tmp_path / "runs", "--workers", 1)
    assert [line.split()[1] for line in out.splitlines() if line.startswith(("gpt2", "llama-7b"))]
    rows = json.loads((tmp_path / "runs" / "styles" / "report.json").read_text())["rows"]
    assert {row["name"] for row in rows} == {"gpt2", "llama-7b"} and {row["status"] for row in rows} == {"done"}


def test_the_shape_on_the_command_line(tmp_path):
    path = write(tmp_path, STYLES)
    counted = [line.split()[1] for line in run("plan", path, "--shape", "{scale: 0.05}").splitlines()[2:4]]
    assert counted == [line.split()[1] for line in run("plan", path, "--set", "shape={scale: 0.05}").splitlines()[2:4]]
    said = run("plan", path, "--shape", "tinny", code=2)
    assert said == "--set shape=tinny: no shape is called 'tinny'; did you mean 'tiny'?\n"


# the commands


def test_the_card_of_a_model():
    out = run("show", "model:llama-7b", "--context", 4096)
    assert out.startswith("model:llama-7b  6,738,415,616 parameters, as published\n")
    assert re.search(r"KV of the row, fp16 +2\.0 GiB", out) and re.search(r"ffn +swiglu", out)
    assert out.endswith("paper: Touvron et al. 2023, arXiv:2302.13971\n")
    made = json.loads(run("show", "model:llama-7b", "--json"))
    assert made["parameters"]["all"] == made["published"]["parameters"] == 6_738_415_616
    assert made["context"] == made["shape"]["max_len"] == 2048 and made["model"]["ffn"]["name"] == "swiglu"


def test_a_model_of_a_users_file(tmp_path):
    path = write(tmp_path, "models: {mine: {like: gpt2, norm: rmsnorm}}")
    rows = json.loads(run("diff", "gpt2", "mine", "--file", path, "--json"))
    assert rows[0] == {"what": "norm", "a": "layernorm", "b": "rmsnorm"}
    assert [row["what"] for row in rows] == ["norm", "parameters: residual", "parameters: all", "weights, fp16"]
    assert "published" not in run("show", "model:mine", "--file", path)
    tiny = json.loads(run("show", "model:mine", "--file", path, "--shape", "tiny", "--json"))
    assert tiny["shape"]["d_model"] == 128 and tiny["published"] is None


def test_what_differs_between_two_models():
    out = run("diff", "gpt2", "llama-7b")
    assert re.search(r"^position +learned +rope$", out, re.M) and re.search(r"^d_model +768 +4,096$", out, re.M)
    assert re.search(r"^attention +mha bias=true +mha$", out, re.M)
    assert "architecture" not in out
    assert run("diff", "gpt2", "gpt2") == "gpt2 and gpt2 do not differ\n"
    one = make_card(LIBRARY, "gpt2")
    assert (
        list_differences(one, one) == []
        and list_differences(one, make_card(LIBRARY, "gpt2", context=9))[-1][0] == "counted for rows of"
    )
    assert list(list_facts(one)) == ["parts", "sizes", "parameters", "costs in a row of 1,024 tokens"]


def test_the_list_of_models():
    lines = run("list", "models").splitlines()
    assert len(lines) == len(MODELS)
    assert re.search(r"^gpt2-xl +1,557,611,200  Radford et al\. 2019", run("list", "model", "gpt2-x*"))
    rows = json.loads(run("list", "models", "bert-*", "--json"))
    assert [row["name"] for row in rows] == ["bert-like", "bert-base", "bert-large"]
    table = run("list", "models", "nanogpt*", "--markdown").splitlines()
    assert re.match(r"\| nanogpt-char-cpu +\| 804,096 +\| as published +\| 4 ", table[-1])


@pytest.mark.parametrize(
    "arguments, said",
    [
        ("show model:gpt-2", "no model is called 'gpt-2'; did you mean 'gpt2'?"),
        ("show model:gpt2 --context 2000", "2000 tokens are more than the 1024 positions that this model has"),
        ("show model:llama-like", "model 'llama-like' has no shape of its own; give it one"),
        ("show model:gpt2 --shape tinny", "no shape is called 'tinny'; did you mean 'tiny'?"),
        ("show position:rope --json", "--json: only a model has these, not 'position:rope'"),
        ("diff gpt2 gtp3", "no model is called 'gtp3'; did you mean 'gpt3'?"),
        ("list models zzz", "no model is called 'zzz'"),
        ("list norm --markdown", "--markdown is a table of models; write 'zoo list models --markdown'"),
    ],
)
def test_slips_on_the_command_line(arguments, said):
    assert run(*arguments.split(), code=2).rstrip().endswith(said)


@pytest.mark.parametrize(
    "words, typed, found",
    [("zoo diff", "gpt2-m", ["gpt2-medium"]), ("zoo show", "model:llama-7", ["model:llama-7b"]),
     ("zoo list models", "gpt3", ["gpt3"]), ("zoo show", "mod", ["model:"])],
)  # fmt: skip
def test_completion(words, typed, found):
    _, *before = words.split()
    complete = click_completion(before, typed)
    assert complete == found


def click_completion(before, typed):
    from click.shell_completion import ShellComplete

    return [item.value for item in ShellComplete(main, {}, "zoo", "_X").get_completions(before, typed)]
