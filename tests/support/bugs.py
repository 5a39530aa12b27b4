"""Ways to break what stands: each takes the original and gives what takes its place."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F

from zoo.parts import AttentionContext, Cell
from zoo.tasks import Splits


def instead(value):
    """This, whatever stood there."""
    return lambda _: value


def after(change):
    """The same, with what it returns changed."""
    return lambda f: lambda *args, **given: change(f(*args, **given))


def before(change):
    """A method with its first argument changed."""
    return lambda f: lambda self, x, *rest, **given: f(self, change(x), *rest, **given)


def without(*keywords):
    return lambda f: lambda *args, **given: f(*args, **{k: v for k, v in given.items() if k not in keywords})


def blind_to(**forgotten):
    """A call that forgets something of what its context tells it."""

    def broken(f):
        def blind(self, *args):
            return f(self, *(replace(a, **forgotten) if isinstance(a, AttentionContext) else a for a in args))

        return blind

    return broken


def wider(dense):
    return lambda mask, q_at, k_at: dense(replace(mask, window=mask.window and mask.window + 1), q_at, k_at)


def leaking(dense):
    def one_further(mask, q_at, k_at):
        see = dense(mask, q_at, k_at)
        return see if see is None else see | see.roll(1, -1)

    return one_further


def from_the_first_key(forward):
    def broken(self, q, k, v, ctx):
        causal = ctx.mask.plain and ctx.mask.causal
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=None if causal else ctx.attention_mask(), is_causal=causal
        )

    return broken


def unguarded(forward):
    """-inf where looking is forbidden, and nothing for a row in which all is."""

    def broken(self, q, k, v, ctx):
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        see = ctx.attention_mask()
        return (scores if see is None else scores.masked_fill(~see, -torch.inf)).softmax(-1) @ v

    return broken


def idle_on_meta(forward):
    return lambda self, q, k, v, ctx: (
        q.new_zeros(*q.shape[:3], v.shape[-1]) if q.is_meta else forward(self, q, k, v, ctx)
    )


def unsaved(init):
    def broken(self, dim, **options):
        init(self, dim, **options)
        self.eps = torch.rand(()).item()

    return broken


def stored_here(init):
    def broken(self, dim, **options):
        init(self, dim, **options)
        self.shift = torch.zeros(dim, device="cpu")

    return broken


def counting_calls(forward):
    def broken(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return forward(self, x) * (1 + 0.01 * self.calls)

    return broken


def by_slot(bias):
    def broken(self, q_at, k_at, causal):
        T, S = q_at.shape[1], k_at.shape[1]
        return bias(self, torch.arange(S - T, S)[None], torch.arange(S)[None], causal)

    return broken


class Reread(NamedTuple):
    """The cell of a layer that finds what the first one remembers."""

    cell: Cell

    def grow(self, *new):
        return tuple(buffer[:, :, : self.cell.length] for buffer in self.cell.buffers)


def mixed(cell):
    return lambda self, layer, step: cell(self, 0, step) if layer == 0 else Reread(cell(self, 0, step))


def stale(cell):
    """Cross-attention finds what the first source left, whatever the source is now."""
    kept = {}

    def broken(self, layer, step):
        made = cell(self, layer, step)
        return kept.setdefault((layer, made.room), made) if step == "cross" else made

    return broken


def untying(apply):
    def broken(self, fn, recurse=True):
        apply(self, fn, recurse)
        self.table = copy.deepcopy(self.table)
        return self

    return broken


def half_the_steps(forward):
    return lambda self, x, *steps: forward(self, x, steps[0], *(lambda y: 0 * y for _ in steps[1:]))


def experts_choose(choose):
    """Each expert takes the tokens that score highest for it, of the whole batch."""

    def broken(self, scores):
        taken = scores >= scores.topk(max(1, len(scores) // 4), 0).values[-1]
        return choose(self, scores + 10 * taken)

    return broken


def swapped(split):
    """Pieces that come back in the order opposite to that in which they went out."""
    return lambda whole, shapes, block: (
        split(whole, shapes, block)[::-1] if len(shapes) > 1 else split(whole, shapes, block)
    )


def lenient(take):
    """What is left over is dropped without a word."""

    def broken(self, theirs, model):
        known = {pair.theirs for pair in self.pairs(model)}
        return take(self, {name: x for name, x in theirs.items() if name in known}, model)

    return broken


def redrawn(f):
    """The generator is left alone, and torch's own is used."""
    return lambda rows, size, generator: f(rows, size, torch.Generator().manual_seed(int(torch.randint(9999, ()))))


def uncorrupted(batch):
    return replace(batch, source=batch.target)


def whole_only(pieces):
    return lambda rows, size: (b for i, b in enumerate(pieces(rows, size)) if i == 0 or len(b.target) == size)


def shuffled(splits: Splits) -> Splits:
    return Splits(*(random.sample(examples, len(examples)) for examples in (splits.train, splits.dev, splits.test)))


def overlapping(splits: Splits) -> Splits:
    return replace(splits, test=[*splits.test, splits.train[0]])


def apart(stream):
    """Every id decoded by itself."""
    return lambda self, ids: (self.piece(int(id)).decode("utf-8", "replace") for id in ids)


def characters(fill):
    def broken(self, chars):
        fill(self, chars)
        self.bytes = [min(count, 1) for count in self.bytes]

    return broken


def hoarding(train):
    """What was learned before is kept."""

    def broken(self, texts):
        train(self, [*texts, *getattr(self, "chars", ())])

    return broken


def first_rate(step):
    """The rate that the optimizer was made with counts, not the one that stands in its groups now."""

    def broken(self):
        now = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = 1e-3
        step(self)
        for group, rate in zip(self.param_groups, now, strict=True):
            group["lr"] = rate

    return broken


def filled_with_zeros(step):
    def broken(self):
        for p in self._order():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        step(self)

    return broken


def noisy(step):
    def broken(self):
        step(self)
        for p in self._order():
            p.data += 1e-6 * torch.randn_like(p)

    return broken


def upwards(step):
    def broken(self):
        for p in self._order():
            p.grad = None if p.grad is None else -p.grad
        step(self)

    return broken


def deaf_group(step):
    """The decay of the first group serves all."""

    def broken(self):
        for group in self.param_groups[1:]:
            group["weight_decay"] = self.param_groups[0]["weight_decay"]
        step(self)

    return broken


def counted(schedule):
    """A factor for each time it is asked, whatever the step."""
    asked = iter(range(10**6))
    return lambda step: schedule(next(asked))


def one_further(grams):
    """A token is told by the one that follows it."""

    def broken(self, batch):
        turned = replace(batch, target=batch.target.roll(-1, 1))
        for gram, (there, _) in zip(grams(self, batch), grams(self, turned), strict=True):
            yield (*gram[0][:-2], there[-1], gram[0][-1]), gram[1]

    return broken


def without_its_mass(mix):
    """What the discount takes is given to nobody."""

    def broken(self, facts, discount):
        facts = facts.copy()
        facts[..., 2] *= 0.5
        return mix(self, facts, discount)

    return broken


def to_the_batch(nll):
    def broken(self, batch):
        nats = nll(self, batch)
        return nats - nats.mean(0, keepdim=True) + 2

    return broken


def accumulating(count):
    def broken(self, grams):
        self.kept = [*getattr(self, "kept", ()), *grams]
        count(self, self.kept)

    return broken


def renamed_sizes(config):
    """One layer less than the model has."""

    def broken(self, spec, model, registry):
        out = config(self, spec, model, registry)
        return {k: v - 1 if k == self.table["shape"]["n_layers"][1:] else v for k, v in out.items()}

    return broken
