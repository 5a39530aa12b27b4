"""The same weights in transformers and here: equal logits, whatever the padding, with and without a cache, both ways.

The rows stand in published.py, what is measured in parity.py.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file
from support.published import GPT2, MODELS

import zoo
from zoo import SpecError
from zoo.cli import main
from zoo.interop import folders
from zoo_plugins.tokenizer import Bpe

transformers = pytest.importorskip("transformers", reason="transformers is not installed; it comes with the extra hf")
from support.parity import CLOSE, EXACT, LIBRARY, SIDES, Worlds, batch, read, slips  # noqa: E402, it needs transformers


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """`worlds(name)`, made once for all tests of a row."""
    return functools.cache(lambda name: Worlds(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_transformers(worlds, name, side):
    both = worlds(name)
    if not both.serves(side):
        pytest.skip("transformers counts pads as positions here")
    far = both.apart(side)
    assert far <= CLOSE, f"{MODELS[name].cls} of transformers and ours, {side} padding: logits {far} apart"


@pytest.mark.parametrize("name", MODELS)
def test_a_cache_changes_nothing(worlds, name):
    both = worlds(name)
    if not both.ours.autoregressive:
        pytest.skip("an encoder reads all at once")
    far = both.apart_cached()
    assert far <= EXACT, f"step by step and all at once: logits {far} apart"


@pytest.mark.parametrize("name", MODELS)
def test_what_came_in_goes_out_bit_for_bit(worlds, name):
    assert worlds(name).changed() == []
    assert worlds(name).apart_exported() == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MODELS)
def test_every_slip_in_a_table_would_be_seen(worlds, name):
    both = worlds(name)
    slept = []
    for slip, model in slips(both.taken.model):
        try:
            other = read(model, both.taken.sizes)[0]
        except SpecError:
            continue
        if other != both.taken.spec and not both.notices(model):
            slept.append(slip)
    assert slept == list(both.row.unseen)


def zoo_command(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_a_model_without_its_head_comes_in(worlds, tmp_path):
    """BART lies on the hub like this: its head is tied, and the bias of its logits is 0."""
    both = worlds("bart")
    both.theirs.model.save_pretrained(tmp_path)
    assert not any(name.startswith(("model.", "final")) for name in load_file(tmp_path / "model.safetensors"))
    ours = folders.load_model(folders.import_model(folders.read_folder(tmp_path), LIBRARY), LIBRARY.registry)
    ids, keep = batch(None)
    here = ours.step(ours.start(ids, room=ids.shape[1]), ids)
    there = both.there(ids, keep, ids) - both.theirs.final_logits_bias
    assert both.theirs.final_logits_bias.abs().max() > 0.1 and (here - there).abs().max() <= CLOSE


STUDY = """
include: [mine/model.yaml]
models: {swapped: {like: mine, norm: rmsnorm}}
comparisons:
  study:
    models: [mine, swapped]
    task: {name: language-modeling, length: 16, tokenizer: {name: pretrained, file: mine/tokenizer.json, vocab_size: 300}}
    train: {steps: 2, batch_size: 2}
"""


@torch.no_grad()
def test_a_model_of_others_comes_in_is_trained_on_and_goes_out(tmp_path):
    hub, mine, runs, out = (tmp_path / name for name in ("hub", "mine", "runs", "out"))
    config = transformers.GPT2Config(**GPT2 | {"vocab_size": 300, "bos_token_id": 0, "eos_token_id": 0})
    transformers.GPT2LMHeadModel(config).save_pretrained(hub)
    tokenizer = Bpe(vocab_size=280)
    tokenizer.train(["The same text, said twice: the same text."])
    (hub / "tokenizer.json").write_text(tokenizer.shared())
    (tmp_path / "study.yaml").write_text(STUDY)
    for command in (["import", hub, "--to", mine], ["run", tmp_path / "study.yaml", "--out", runs]):
        done = zoo_command(*command)
        assert done.exit_code == 0, done.stderr
    assert "swapped: 36 tensors from" not in done.stderr and "left in the file: decoder.final.bias" in done.stderr
    rows = json.loads((runs / "study" / "comparison.json").read_text())["rows"]
    trained, swapped = (runs / row["runs"][0]["id"] for row in rows)
    assert zoo_command("export", trained, "--to", out).exit_code == 0
    refused = zoo_command("export", swapped, "--to", out, "--as", "gpt2")
    assert (refused.exit_code, refused.stderr) == (2, "norm is 'rmsnorm'; gpt2 has 'layernorm'\n")
    ids = transformers.AutoTokenizer.from_pretrained(out)("the same text", return_tensors="pt")["input_ids"]
    assert ids[0].tolist() == tokenizer.encode("the same text")
    there = transformers.AutoModelForCausalLM.from_pretrained(out, attn_implementation="eager").eval()(ids).logits
    assert (there - zoo.load(trained).model.read(ids)).abs().max() <= CLOSE
    assert not torch.equal(zoo.load(trained).model.read(ids), zoo.load(mine).model.read(ids)), "two steps were taken"


def test_the_report_has_every_model():
    text = (Path(__file__).parents[2] / "reports" / "parity.md").read_text()
    reported = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:]
    assert reported == list(MODELS), "run `make parity`"
