"""The same weights in transformers and here: equal logits, whatever the padding, with and without a cache, both ways.

A row of MODELS is a family's table, the class of transformers and the settings that differ from `SMALL`. Every
parameter is moved from where it starts and every eps is loud, so that nothing is at a value that hides a mistake.
"""

from __future__ import annotations

import inspect

import pytest
import torch
from safetensors.torch import load_file

from zoo import exchange
from zoo.library import open_library

transformers = pytest.importorskip("transformers", reason="transformers is not installed; it comes with the extra hf")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

LIBRARY = open_library()
CLOSE = 1e-5
V, PROMPT, STEPS = 37, 6, 8
LLAMA = {
    "vocab_size": V, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-2, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GPT2 = {
    "vocab_size": V, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 64, "layer_norm_epsilon": 1e-2,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip

MODELS = {
    # name: (family, class of transformers, its settings)
    "gpt2": ("gpt2", "GPT2LMHeadModel", GPT2),
    "gpt2-relu": ("gpt2", "GPT2LMHeadModel", GPT2 | {"activation_function": "relu", "n_inner": 56}),
    "llama": ("llama", "LlamaForCausalLM", LLAMA),
    "llama-tied-biased": (
        "llama", "LlamaForCausalLM",
        LLAMA | {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True, "head_dim": 10},
    ),
}  # fmt: skip


def reference(name: str, kind: str, given: dict, std: float = 0.2):
    """The model of transformers, every parameter moved."""
    cls = getattr(transformers, kind)
    torch.manual_seed(0)
    model = cls._from_config(cls.config_class(**given), attn_implementation="eager", dtype=torch.float32).eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p += torch.randn(p.shape, generator=random) * (std if p.ndim < 2 else p.shape[-1] ** -0.5)
    return model


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """Both models of a row, and the folder of the first, made once."""
    made: dict = {}

    def make(name: str):
        if name not in made:
            kind, cls, given = MODELS[name]
            theirs = reference(name, cls, given)
            folder = tmp_path_factory.mktemp(name)
            theirs.save_pretrained(folder)
            taken = exchange.take(exchange.look(folder), LIBRARY, kind)
            made[name] = theirs, exchange.load(taken, LIBRARY.registry), folder, taken
        return made[name]

    return make


def batch(left: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [3, 12] and which of them are real: all, or rows of 12, 9 and 4 padded on one side."""
    random = torch.Generator().manual_seed(2)
    ids = torch.randint(4, V, (3, PROMPT * 2), generator=random)
    keep = torch.ones_like(ids, dtype=torch.bool)
    if left is not None:
        for row, n in enumerate((12, 9, 4)):
            keep[row, slice(None, 12 - n) if left else slice(n, None)] = False
    return ids.masked_fill(~keep, 0), keep


@torch.no_grad()
def logits_there(model, ids, keep):
    at = (keep.cumsum(1) - 1).clamp_min(0)
    more = {"position_ids": at} if "position_ids" in inspect.signature(model.forward).parameters else {}
    return model(input_ids=ids, attention_mask=keep.long(), **more).logits


@torch.no_grad()
def apart(theirs, ours, left: bool | None) -> float:
    """The largest difference of two logits over all real tokens."""
    ids, keep = batch(left)
    there = logits_there(theirs, ids, keep)
    here = ours.read(ids, keep=None if left is None else keep)
    assert there.std() > 0.3, "logits that hardly differ would prove nothing"
    return float((there - here)[keep].abs().max())


@torch.no_grad()
def apart_cached(ours) -> float:
    """The largest difference of the logits of given tokens, read one by one after a padded prompt or all at once."""
    ids, keep = batch(True)
    random = torch.Generator().manual_seed(3)
    given = torch.randint(4, V, (3, STEPS), generator=random)
    whole_keep = torch.cat([keep, torch.ones_like(given, dtype=torch.bool)], 1)
    whole = ours.read(torch.cat([ids, given], 1), keep=whole_keep)[:, ids.shape[1] :]
    cache = ours.start(None, room=ids.shape[1] + STEPS)
    ours.step(cache, ids, keep)
    steps = [ours.step(cache, given[:, t : t + 1]) for t in range(STEPS)]
    return float((torch.cat(steps, 1) - whole).abs().max())


SIDES = {"plain": None, "right": False, "left": True}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_transformers(worlds, name, side):
    theirs, ours, _, _ = worlds(name)
    far = apart(theirs, ours, SIDES[side])
    assert far <= CLOSE, f"{MODELS[name][1]} of transformers and ours, {side} padding: logits {far} apart"


@pytest.mark.parametrize("name", MODELS)
def test_a_cache_changes_nothing(worlds, name):
    _, ours, _, _ = worlds(name)
    far = apart_cached(ours)
    assert far <= CLOSE, f"ours with a cache and without, as {MODELS[name][1]}: logits {far} apart"


@pytest.mark.parametrize("name", MODELS)
def test_what_came_in_goes_out_bit_for_bit(worlds, name, tmp_path):
    theirs, ours, folder, taken = worlds(name)
    exchange.give(taken.family, taken.spec, ours, LIBRARY.registry, tmp_path)
    there, here = load_file(folder / "model.safetensors"), load_file(tmp_path / "model.safetensors")
    assert sorted(there) == sorted(here)
    assert [k for k, x in there.items() if not torch.equal(x, here[k])] == []
    again = theirs.__class__.from_pretrained(tmp_path, attn_implementation="eager").eval()
    ids, keep = batch(False)
    assert torch.equal(logits_there(again, ids, keep), logits_there(theirs, ids, keep))
