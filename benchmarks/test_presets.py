"""What a user of the demo waits for: training and decoding steps of its models, its batches, its optimizer."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from race import in_turns, race, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library
from zoo.record.folder import Run
from zoo.train.loop import Training, bind_settings, group_parameters
from zoo_plugins.optimizer import adamw

pytestmark = in_turns

ROUNDS = 25
ROWS = {row.name: row.runs[0] for row in read_comparison(open_library(), "quickstart").rows if row.runs[0].model}
BASE, PEER = "gpt2-like", "nn.TransformerEncoder"
SIZE = ROWS[BASE].train.batch_size


@cache
def task():
    made = ROWS[BASE].make_task()
    made.prepare()
    return made


class Peer(nn.Module):
    """The base's parts as torch has them: the same number of parameters, and no cache."""

    def __init__(self, shape):
        super().__init__()
        self.table = nn.Embedding(shape.vocab_size, shape.d_model)
        self.places = nn.Embedding(shape.max_len, shape.d_model)
        layer = nn.TransformerEncoderLayer(
            shape.d_model, shape.n_heads, 4 * shape.d_model, 0.0, partial(F.gelu, approximate="tanh"),
            batch_first=True, norm_first=True,
        )  # fmt: skip
        final = nn.LayerNorm(shape.d_model)
        self.layers = nn.TransformerEncoder(layer, shape.n_layers, final, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(shape.max_len))
        nn.init.normal_(self.table.weight, std=shape.d_model**-0.5)

    def forward(self, ids):
        x = self.table(ids) * self.table.embedding_dim**0.5 + self.places.weight[: ids.shape[1]]
        x = self.layers(x, self.mask[: ids.shape[1], : ids.shape[1]], is_causal=True)
        return x @ self.table.weight.T


def training_steps() -> dict:
    made = {}
    for name, run in ROWS.items():
        nowhere = Run(Path("unused"))  # a step writes nothing
        made[name] = Training(run.make_model(task()), task(), bind_settings(run.train), 0, nowhere, print).update
    peer, base = Peer(ROWS[BASE].sized(task())), ROWS[BASE].make_model(task())
    assert sum(p.numel() for p in peer.parameters()) == sum(p.numel() for p in base.parameters())
    optimizer, generator = torch.optim.AdamW(peer.parameters(), fused=True), torch.Generator().manual_seed(0)

    def update():
        target = task().batch(SIZE, generator).target
        logits = peer(torch.cat([torch.ones_like(target[:, :1]), target[:, :-1]], 1))
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return {**made, PEER: update}


@cache
def trained() -> dict[str, list[float]]:
    return race({name: partial(lambda step: step, step) for name, step in training_steps().items()}, ROUNDS)


@pytest.mark.parametrize("name", [*ROWS, PEER])
def test_training_step(benchmark, name):
    show(benchmark, "training step", name, trained(), BASE)


N_NEW, N_READ = 16, 32
NO_CACHE = f"{BASE}, no cache"


@torch.no_grad()
def write(model, cache, ids):
    for t in range(N_NEW):
        model.step(cache, ids[:, N_READ + t, None])


@torch.no_grad()
def reread(model, ids):
    for t in range(N_NEW):
        model.read(ids[:, : N_READ + t + 1])[:, -1]


def decoding(model, ids):
    with torch.no_grad():
        cache = model.start(None, room=N_READ + N_NEW)
        model.step(cache, ids[:, :N_READ])
    return partial(write, model, cache, ids)


@cache
def decoded() -> dict[str, list[float]]:
    """16 steps that each read one given token, after 32 were read."""
    ids = torch.randint(4, task().vocab_size, (1, N_READ + N_NEW), generator=torch.Generator().manual_seed(0))
    models = {name: run.make_model(task()).eval() for name, run in ROWS.items()}
    makers = {name: partial(decoding, model, ids) for name, model in models.items()}
    makers[NO_CACHE] = lambda: partial(reread, models[BASE], ids)
    return race(makers, ROUNDS)


@pytest.mark.parametrize("name", [*ROWS, NO_CACHE])
def test_decoding_step(benchmark, name):
    show(benchmark, f"{N_NEW} decoding steps after {N_READ} tokens", name, decoded(), BASE)


@cache
def fetched() -> dict[str, list[float]]:
    """100 batches of the demo, drawn by the task and by torch's own loader from the same windows."""
    generator = torch.Generator().manual_seed(0)
    windows = torch.cat([batch.target for batch in task().batches("train", 64) if batch.target.shape[1] == 64])
    loader = DataLoader(TensorDataset(windows), SIZE, shuffle=True, generator=generator)

    def ours():
        for _ in range(100):
            task().batch(SIZE, generator)

    def theirs():
        for _, _batch in zip(range(100), loader, strict=False):
            pass

    return race({"task.batch": lambda: ours, "DataLoader": lambda: theirs}, ROUNDS)


@pytest.mark.parametrize("name", ["task.batch", "DataLoader"])
def test_batches(benchmark, name):
    show(benchmark, f"100 batches of {SIZE}", name, fetched(), "DataLoader")


OPTIMIZERS = {
    "zoo adamw, fused": adamw,
    "zoo adamw, foreach": partial(adamw, implementation="foreach"),
    "torch.optim.AdamW, fused": partial(torch.optim.AdamW, fused=True),
    "torch.optim.AdamW, foreach": partial(torch.optim.AdamW, foreach=True),
}


@cache
def stepped() -> dict[str, list[float]]:
    made = {}
    for name, optimizer in OPTIMIZERS.items():
        model = ROWS[BASE].make_model(task())
        for p in model.parameters():
            p.grad = torch.randn_like(p) * 1e-3
        made[name] = optimizer(group_parameters(model)).step
    return race({name: partial(lambda step: step, step) for name, step in made.items()}, 4 * ROUNDS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_step(benchmark, name):
    show(benchmark, "optimizer step", name, stepped(), "torch.optim.AdamW, fused")
