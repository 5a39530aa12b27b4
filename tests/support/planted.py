"""Bugs that are planted to see that each property of the conformance kit finds the one that it is for.

`make planted` plants each and prints the table of docs/planted.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

import zoo.interop.tensor_names
import zoo.model.stack
import zoo.parts.contracts
import zoo.train.metrics
import zoo_plugins.architecture
import zoo_plugins.data
import zoo_plugins.generated
import zoo_plugins.kernel
import zoo_plugins.norm
import zoo_plugins.schedule
import zoo_plugins.task
from support import bugs as by
from zoo.declare.spec import PartSpec
from zoo.interop.family import Family
from zoo.model.stack import Stack
from zoo.parts import Cache, Cell, Mask
from zoo.tasks import Tokenizer
from zoo.testing import ModelCase, Subject
from zoo.testing.suites import load_suite
from zoo_plugins.data import PythonDocs
from zoo_plugins.embedding import Tokens
from zoo_plugins.ffn import Gated
from zoo_plugins.generated import AssociativeRecall, Copy
from zoo_plugins.head import Logits
from zoo_plugins.kernel import Flash, Naive
from zoo_plugins.metric import Accuracy, Exact, Loss
from zoo_plugins.mixture import Mixture
from zoo_plugins.norm import LayerNorm, RMSNorm
from zoo_plugins.optimizer import Optimizer
from zoo_plugins.position import Alibi, Rope
from zoo_plugins.recurrent import Cell as Recurrence
from zoo_plugins.reference import NGram
from zoo_plugins.residual import PreNorm
from zoo_plugins.statespace import Mamba
from zoo_plugins.task import LanguageModeling, MaskedLanguageModeling
from zoo_plugins.tokenizer import Bpe, Byte, Char

DECODER = {"architecture": "decoder-only", "position": "rope", "norm": "rmsnorm", "ffn": "swiglu", "kernel": "naive"}
ENCODER = {"architecture": "encoder-only", "position": "learned"}
CROSSED = {"architecture": "encoder-decoder", "position": "learned", "kernel": "naive"}
GROUPED = {**DECODER, "attention": {"name": "gqa", "kv_heads": 2}}
CENTRED = {**DECODER, "norm": "layernorm"}
BIASED = {**DECODER, "position": "alibi"}
SCALED = {**DECODER, "attention": {"name": "mha", "scale": 1.0}}
FAST = {**DECODER, "kernel": "flash"}
WINDOWED = {**DECODER, "attention": {"name": "mha", "window": 3}}
MIXED = {"ffn": {"name": "moe", "experts": 4}, "position": "rope"}
RECURRENT = {"attention": "lstm"}


class Bug(NamedTuple):
    """What is replaced (`name` of `owner`, a class or a module), by what the original is turned into.

    `check` is the property that should find it in `where`: a model, or the `slot:name` of a variant, perhaps with
    options.
    `says` tells what is broken, `seen` a public report of the kind.
    """

    family: str
    check: str
    where: Mapping | str | tuple[str, Mapping]
    owner: object
    name: str
    broken: Callable[[Any], Any]
    says: str
    seen: str = ""


BUGS = {
    # the shape of things
    "not-a-number": Bug("head", "runs", DECODER, Logits, "forward", by.after(lambda logits: (logits - 9).log()),
                        "The logarithm of a negative number."),
    "always-float32": Bug("head", "runs", DECODER, Logits, "forward", by.after(lambda logits: logits.float()),
                          "Logits are float32, whatever the model is in."),
    "gate-unused": Bug("ffn", "gradients", DECODER, Gated, "forward",
                       by.instead(lambda self, x, ctx: self.down(self.up(x))),
                       "A gate that is made and never applied."),
    "second-step-lost": Bug("residual", "gradients", DECODER, PreNorm, "forward", by.half_the_steps,
                            "A layer whose second step does not reach the stream."),
    # kernels
    "heads-tiled": Bug("attention", "kernels", GROUPED, zoo_plugins.kernel, "spread",
                       by.instead(lambda x, n_heads: x.repeat(1, n_heads // x.shape[1], 1, 1)),
                       "Key heads are tiled over the query heads instead of repeated.", "onnx#7274"),
    "bias-dropped-by-the-fast-path": Bug("kernel", "kernels", BIASED, Flash, "forward", by.blind_to(bias=None),
                                         "The fast kernel forgets the bias of the position."),
    "scale-dropped": Bug("kernel", "kernels", SCALED, Flash, "forward", by.blind_to(scale=None),
                         "The fast kernel forgets the scale that the attention asked for."),
    # the future
    "one-token-ahead": Bug("mask", "future", DECODER, Mask, "dense", by.leaking,
                           "The causal mask lets through one token too many.", "LLMs-from-scratch#1061"),
    "norm-over-time": Bug("norm", "future", CENTRED, LayerNorm, "forward",
                          by.before(lambda x: x - x.mean(1, keepdim=True)),
                          "Statistics are taken over the tokens too."),
    "neighbours-embedded": Bug("embedding", "future", DECODER, Tokens, "finish",
                               by.before(lambda x: x + 0.1 * x.roll(-1, 1)),
                               "An embedding that is smoothed with the token that follows."),
    "experts-choose": Bug("mixture", "rows", MIXED, Mixture, "choose", by.experts_choose,
                          "Experts choose their tokens among all of the batch."),
    "pads-are-balanced": Bug("mixture", "auxiliary_losses", MIXED, Mixture, "tell",
                             lambda tell: lambda self, scores, chosen, keep, ctx: tell(self, scores, chosen, None, ctx),
                             "Pads count in the loss that spreads tokens over experts."),
    "shifted-twice": Bug("architecture", "future", DECODER, zoo_plugins.architecture, "shift",
                         lambda shift: lambda target, keep, bos: shift(shift(target, keep, bos), keep, bos),
                         "The target is shifted twice, so that token t + 2 is learned.", "transformers#47394"),
    "window-one-too-wide": Bug("attention", "window", WINDOWED, Mask, "dense", by.wider,
                               "A window sees one token more than it says."),
    # the cache
    "positions-restarted": Bug("cache", "decoding", DECODER, Cache, "count_real", by.instead(lambda self: 0),
                               "With a cache, every step begins at position 0.", "x-transformers#219"),
    "shared-layers-share-a-cache": Bug("cache", "decoding", {**DECODER, "share": 1}, Cache, "cell", by.mixed,
                                       "Layers that share weights share their memory too."),
    "causal-from-the-first-key": Bug("kernel", "decoding", FAST, Flash, "forward", by.from_the_first_key,
                                     "One new query against many keys sees the first alone.", "pytorch#108108"),
    "source-remembered": Bug("cache", "decoding", CROSSED, Cache, "cell", by.stale,
                             "Cross-attention goes on with the keys of the source before.", "flash-attention#310"),
    "state-dropped": Bug("recurrent mixer", "decoding", RECURRENT, Cell, "recall", by.instead(lambda self: None),
                         "A recurrence forgets its state between two steps."),
    "rows-not-reordered": Bug("cache", "reorder", CROSSED, Cache, "reorder", by.instead(lambda self, rows: None),
                              "Beams are reordered, and what they remember is not."),
    "rotation-restarted": Bug("position", "decoding", DECODER, Rope, "prepare",
                              by.before(lambda at: at - at[:, :1]),
                              "Rotations begin at 0 with every step.", "torchtune#959"),
    "pads-move-the-scan": Bug("recurrent mixer", "decoding", {"attention": "mamba"}, Mamba, "mix",
                              lambda mix: lambda self, x, real, ctx: mix(self, x, None, ctx),
                              "A state space goes on over the pads that follow a prefix."),
    # padding
    "loss-of-pads": Bug("loss", "padding", DECODER, zoo.train.metrics, "weighed", by.instead(lambda nll, weight: nll.sum()),
                        "Pads count in the loss."),
    "pads-have-positions": Bug("position", "padding", DECODER, zoo.model.stack, "count_positions",
                               lambda count: lambda ids, keep, seen=0: count(ids, None, seen),
                               "Positions count pads.", "transformers#18388"),
    "bias-by-slot": Bug("position", "padding", BIASED, Alibi, "bias", by.by_slot,
                        "A bias goes by slots and not by positions.", "transformers#14521"),
    "pads-of-the-source-are-read": Bug("architecture", "padding", CROSSED, Stack, "across",
                                       lambda f: lambda self, at, memory, keep, *rest: f(self, at, memory, None, *rest),
                                       "The mask of the source is dropped before cross-attention.",
                                       "transformers#47946"),
    "a-row-that-sees-nothing": Bug("kernel", "padding", CROSSED, Naive, "forward", by.unguarded,
                                   "A query that may see nothing gives NaN, which spreads.", "pytorch#103749"),
    "pads-move-the-state": Bug("recurrent mixer", "padding", RECURRENT, Recurrence, "forward",
                               lambda f: lambda self, x, state, keep, ends: f(self, x, state, None, ends),
                               "A recurrence runs over pads as over any token."),
    # rows
    "norm-over-rows": Bug("norm", "rows", CENTRED, LayerNorm, "forward", by.before(lambda x: x - x.mean(0)),
                          "Statistics are taken over the rows of the batch."),
    # modes
    "mean-of-calls": Bug("norm", "determinism", DECODER, RMSNorm, "forward", by.counting_calls,
                         "A norm that remembers how often it was called."),
    "dropout-in-eval": Bug("dropout", "dropout", DECODER, nn.Dropout, "forward",
                           by.instead(lambda self, x: F.dropout(x, self.p)),
                           "Dropout goes on in eval mode.", "timm#1978"),
    "dropout-of-weights-in-eval": Bug("kernel", "dropout", FAST, Flash, "forward", by.blind_to(dropout=0.5),
                                      "The fused kernel drops weights in eval mode.", "pytorch#124464"),
    "no-dropout": Bug("dropout", "dropout", DECODER, nn.Dropout, "forward", by.instead(lambda self, x: x),
                      "Dropout is asked for and never happens."),
    # files and copies
    "state-not-saved": Bug("norm", "round_trip", DECODER, RMSNorm, "__init__", by.unsaved,
                           "A number that decides the output is in no state dict."),
    "untied-by-a-move": Bug("head", "copies", DECODER, Logits, "_apply", by.untying,
                            "A tied head becomes a copy when the model moves.", "accelerate#2807"),
    "made-on-the-cpu": Bug("norm", "meta", DECODER, RMSNorm, "__init__", by.stored_here,
                           "A part stores numbers where the model should cost nothing."),
    "options-lost": Bug("YAML", "yaml", GROUPED, PartSpec, "plain", by.instead(lambda self: self.name),
                        "A part is written back without its options."),
    "idle-without-weights": Bug("kernel", "counts", DECODER, Naive, "forward", by.idle_on_meta,
                                "A kernel does nothing while FLOPs are counted."),
    # learning
    "slope-reversed": Bug("head", "learning", DECODER, Logits, "forward",
                          by.after(lambda logits: 2 * logits.detach() - logits),
                          "Gradients of the wrong sign."),
    "logits-too-large": Bug("head", "untrained", DECODER, Logits, "forward", by.after(lambda logits: 50 * logits),
                            "An untrained model is far from ln V."),
    # writing
    "pads-of-the-prefix-are-read": Bug("generation", "generation", DECODER, zoo.parts.contracts, "generate",
                                       by.without("prefix_keep"), "The pads of a prompt are read as text."),
    "nothing-ends-a-row": Bug("generation", "generation", DECODER, zoo.parts.contracts, "generate", by.without("stop"),
                              "A row goes on after the token that ends it.", "h-transformer-1d#9"),
    # options and compilation
    "graph-broken": Bug("norm", "compiles", "norm:rmsnorm", RMSNorm, "forward",
                        by.before(lambda x: x if x.sum().item() else x), "A value is looked at in Python."),
    "option-ignored": Bug("position", "options", "position:alibi", Alibi, "__init__",
                          lambda init: lambda self, shape, *, scale=1.0: init(self, shape),
                          "An option is accepted and changes nothing."),
    "edge-unchecked": Bug("norm", "ranges", "norm:rmsnorm", zoo_plugins.norm, "checked", by.instead(lambda eps: eps),
                          "A negative eps is taken, and its root is NaN."),
}  # fmt: skip


TEXT = "task:language-modeling"
DOCS = "data:python-docs"
BUGS |= {
    "targets-on-pads": Bug("task", "batches", "task:masked-language-modeling", MaskedLanguageModeling, "corrupt",
                           by.after(lambda batch: by.replace(batch, weight=torch.ones_like(batch.weight))),
                           "Pads are asked for like words.", "transformers#11155"),
    "source-denied": Bug("task", "facts", "task:copy", Copy, "has_source", by.instead(False),
                         "A task that has sources says that it has none."),
    "not-a-choice": Bug("task", "facts", "task:associative-recall", AssociativeRecall, "choices",
                        by.instead(property(lambda self: torch.tensor([4, 5]), lambda self, ids: None)),
                        "The answers are not among the choices."),
    "generator-ignored": Bug("task", "generators", "task:classification", zoo_plugins.task, "sample", by.redrawn,
                             "Rows are drawn by torch's own generator.", "pytorch#5059"),
    "last-batch-dropped": Bug("task", "evaluation", "task:classification", zoo_plugins.task, "pieces", by.whole_only,
                              "Evaluation leaves out the last batch, which is smaller.", "tabnet#537"),
    "part-of-a-probe": Bug("task", "evaluation", (TEXT, {"length": 8, "extrapolate": [2]}), LanguageModeling, "stretched",
                           lambda f: lambda self, factor, size: list(f(self, factor, size))[:1],
                           "Longer windows are scored by the first batch alone."),
    "probe-without-end": Bug("task", "batches", (TEXT, {"length": 10, "extrapolate": [2]}), LanguageModeling, "stretched",
                             by.after(lambda batches: (by.replace(b, weight=torch.ones_like(b.weight)) for b in batches)),
                             "Longer windows ask for the pads behind the text."),
    "probe-is-dev": Bug("task", "splits", (TEXT, {"length": 8, "extrapolate": [2]}), LanguageModeling, "batches",
                        lambda f: lambda self, split, size: f(self, "dev" if split == "x1" else split, size),
                        "What the weights are probed on has chosen them."),
    "test-is-dev": Bug("task", "splits", "task:copy", zoo_plugins.generated, "fixed",
                       by.instead(lambda split: torch.Generator().manual_seed(7)), "All splits are the same rows."),
    "answer-in-sight": Bug("task", "hidden", "task:masked-language-modeling", MaskedLanguageModeling, "corrupt",
                           by.after(by.uncorrupted), "What is to be guessed stands in the source."),
    "scored-twice": Bug("task", "coverage", TEXT, LanguageModeling, "batches",
                        by.after(lambda batches: (by.replace(b, weight=torch.ones_like(b.weight)) for b in batches)),
                        "Windows overlap, and what two of them hold is scored twice."),
    "mean-of-means": Bug("task", "metrics", TEXT, zoo.train.metrics, "weighed",
                         by.instead(lambda values, weight: values.mean()),
                         "A split's loss is a mean of its batches' means.", "ParlAI#623"),
    "loss-clamped": Bug("loss", "learnable", TEXT, zoo.train.metrics, "token_nll", by.after(lambda nll: nll.clamp(max=1.0)),
                        "A loss that is flat where the model is wrong."),
    "no-test-split": Bug("data", "reading", DOCS, zoo_plugins.data, "divide",
                         by.after(lambda splits: by.replace(splits, test=[])), "A split is empty."),
    "pairs-denied": Bug("data", "sources", DOCS, PythonDocs, "has_source", by.instead(True),
                        "Data that has no sources says that it has."),
    "order-by-chance": Bug("data", "stable", DOCS, zoo_plugins.data, "divide", by.after(by.shuffled),
                           "Examples come in another order each time."),
    "trained-on-test": Bug("data", "disjoint", DOCS, zoo_plugins.data, "divide", by.after(by.overlapping),
                           "A training document stands in the test split too."),
    "names-are-tokens": Bug("tokenizer", "ids", "tokenizer:byte", Byte, "encode",
                            lambda f: lambda self, text: [0] * text.count("<pad>") + f(self, text),
                            "A reserved token's name in the text becomes that token."),
    "space-in-front": Bug("tokenizer", "round_trip", "tokenizer:bpe", Bpe, "encode", by.before(lambda text: " " + text),
                          "A space is put before every text.", "tokenizers#608"),
    "half-characters": Bug("tokenizer", "streaming", "tokenizer:byte", Tokenizer, "stream", by.apart,
                           "Each id is decoded alone, so that an emoji breaks.", "exo#1691"),
    "characters-for-bytes": Bug("tokenizer", "byte_counts", ("tokenizer:char", {"unknown": False}), Char, "fill",
                                by.characters, "Characters are counted where bytes are meant."),
    "saved-out-of-order": Bug("tokenizer", "saving", "tokenizer:char", Char, "restore",
                              lambda f: lambda self, text: f(self, text.replace("[", '["\\u0000", ')),
                              "A restored vocabulary is shifted by one.", "nanoGPT#169"),
    "vocabulary-hoarded": Bug("tokenizer", "training", "tokenizer:char", Char, "train", by.hoarding,
                              "Training again keeps what was learned before."),
    "upwards": Bug("optimizer", "descent", "optimizer:adamw", Optimizer, "step", by.upwards,
                   "Steps lead up the gradient."),
    "first-rate-kept": Bug("optimizer", "rate", "optimizer:sgd", Optimizer, "step", by.first_rate,
                           "The schedule sets a rate that the optimizer never reads."),
    "vectors-lost": Bug("optimizer", "groups", "optimizer:adamw", Optimizer, "__init__",
                        by.before(lambda params: params[:1]), "A group of parameters is never updated."),
    "gains-decay": Bug("optimizer", "decay", "optimizer:adamw", Optimizer, "step", by.deaf_group,
                       "Weight decay hits gains and biases.", "transformers#35927"),
    "no-gradient-is-zero": Bug("optimizer", "no_slope", "optimizer:sgd", Optimizer, "step", by.filled_with_zeros,
                               "A tensor without a gradient moves on by its momentum."),
    "drawn-at-random": Bug("optimizer", "repeats", "optimizer:adamw", Optimizer, "step", by.noisy,
                           "Steps draw random numbers."),
    "state-forgotten": Bug("optimizer", "resuming", "optimizer:adamw", Optimizer, "load_state_dict",
                           by.instead(lambda self, given: None),
                           "A resumed run begins with an empty state.", "speculators#1027"),
    "starts-at-zero": Bug("schedule", "bounds", "schedule:cosine", zoo_plugins.schedule, "_add_warmup",
                          by.instead(lambda warmup, f: lambda s: s / warmup if s < warmup else f(s)),
                          "The first update has a rate of 0.", "torchtune#2010"),
    "one-step-late": Bug("schedule", "warm_up", "schedule:linear", zoo_plugins.schedule, "_add_warmup",
                         by.instead(lambda warmup, f: lambda s: (s + 1) / (warmup + 1) if s < warmup else f(s)),
                         "The warm-up ends below the peak."),
    "peak-never-reached": Bug("schedule", "peak", "schedule:constant", zoo_plugins.schedule, "_add_warmup",
                              by.instead(lambda warmup, f: lambda s: 0.9 * (1 if s >= warmup else (s + 1) / warmup)),
                              "The rate never comes to what was asked for."),
    "counts-its-calls": Bug("schedule", "memoryless", "schedule:linear", zoo_plugins.schedule, "_add_warmup",
                            by.after(by.counted), "A schedule moves on each time it is asked.", "accelerate#963"),
    "no-direction": Bug("metric", "facts", "metric:accuracy", Accuracy, "better", lambda better: "more",
                        "It cannot be told which of two scores is better."),
    "mean-of-batches": Bug("metric", "sums", "metric:loss", Loss, "count",
                           by.after(lambda sums: {"nll": sums["nll"] / sums["weight"], "weight": 1.0}),
                           "A short last batch counts as much as a whole one."),
    "worse-is-better": Bug("metric", "direction", "metric:exact", Exact, "better", lambda better: "lower",
                           "The weights that are kept are the worst."),
    "pads-scored": Bug("metric", "weights", "metric:loss", Loss, "count",
                       by.instead(lambda self, scored: {"nll": scored.nats.sum().item(), "weight": scored.weight}),
                       "Targets that do not count are scored too."),
    "unseen-is-impossible": Bug("reference", "finite", ("reference:n-gram", {"discount": 0.5}), NGram, "mix",
                                by.after(lambda p: p * (p > 0.15)), "What was never seen has no chance at all."),
    "mass-lost": Bug("reference", "distribution", ("reference:n-gram", {"discount": 0.5}), NGram, "mix",
                     by.without_its_mass, "What the discount takes is given to nobody."),
    "told-by-the-next": Bug("reference", "future", ("reference:n-gram", {"discount": 0.5}), NGram, "grams",
                            by.one_further, "A token's chance depends on the token that follows it."),
    "against-the-batch": Bug("reference", "rows", "reference:n-gram", NGram, "nll", by.to_the_batch,
                             "A row is scored against the mean of its batch."),
    "counted-again": Bug("reference", "repeats", ("reference:n-gram", {"discount": 0.5}), NGram, "count",
                         by.accumulating, "Fitting a second time adds to the counts of the first."),
    "layer-miscounted": Bug("family", "reading", "family:gpt2", Family, "export_config", by.renamed_sizes,
                            "The configuration that is written has a layer less."),
    "query-for-value": Bug("family", "names", "family:gpt2", zoo.interop.tensor_names, "split_tensor", by.swapped,
                           "Queries, keys and values come back in another order."),
    "left-over-dropped": Bug("family", "refusals", "family:gpt2", Family, "import_tensors", by.lenient,
                             "Tensors that fit nowhere are dropped without a word."),
}  # fmt: skip


def slot_of(bug: Bug) -> str:
    """The slot whose suite of checks holds the one that should find the bug."""
    if isinstance(bug.where, Mapping):
        return "architecture"
    return place(bug).partition(":")[0]


def cases(bug: Bug) -> tuple[Callable, list]:
    """The check that should find the bug, and what it is to look at."""
    suite = load_suite(slot_of(bug))
    if isinstance(bug.where, Mapping):
        return suite.checks[bug.check], [ModelCase.of(bug.where)]
    slot, _, name = place(bug).partition(":")
    options = {} if isinstance(bug.where, str) else bug.where[1]
    return suite.checks[bug.check], suite.cases(Subject(slot, name, options, partners=1))[:1]


def found(bug: Bug) -> str:
    """The paragraph in which the property says what is wrong with the code as it stands now, or nothing."""
    try:
        check, looked_at = cases(bug)
        skipped = [why for case in looked_at if (why := check(case))]
    except AssertionError as error:
        return str(error)
    assert looked_at and not skipped, f"{bug.check} does not apply to {place(bug)}: {skipped}"
    return ""


def plant(bug: Bug) -> Callable[[], None]:
    """Put the bug in; returns what takes it out."""
    own, original = bug.name in vars(bug.owner), getattr(bug.owner, bug.name)  # a name that is gone breaks nothing
    setattr(bug.owner, bug.name, bug.broken(original))
    return lambda: setattr(bug.owner, bug.name, original) if own else delattr(bug.owner, bug.name)


def tried(name: str) -> str:
    """The paragraph with which the property finds the planted bug. Raises `AssertionError` where it does not, or where
    it finds fault with the sound code.
    """
    bug = BUGS[name]
    assert not (fault := found(bug)), f"{name}: without the bug, {bug.check} should pass, and says: {fault}"
    out = plant(bug)
    try:
        fault = found(bug)
    finally:
        out()
    assert fault, f"{name}: {bug.check} should have found it"
    return fault


def place(bug: Bug) -> str:
    """Where it is planted: the variant, or what a model has that the plainest one here has not."""
    if isinstance(bug.where, Mapping):
        own = {slot: value for slot, value in bug.where.items() if DECODER.get(slot) != value}
        parts = [f"{slot} {v['name'] if isinstance(v, Mapping) else v}" for slot, v in own.items()]
        return ", ".join(parts) or DECODER["architecture"]
    return bug.where if isinstance(bug.where, str) else bug.where[0]


HEAD = """# Planted bugs

Each of these bugs was put into the zoo and looked for by the property that is meant for it: the sound code passes, and
the broken one fails. `make planted` does so again and writes this file; `tests/support/planted.py` holds the bugs.

| bug | family | what is broken | found by | in | a report of the kind |
|---|---|---|---|---|---|
"""


def table() -> str:
    """The bugs as Markdown."""
    rows = [(name, b.family, b.says, f"`{b.check}`", place(b), b.seen) for name, b in BUGS.items()]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    for name in BUGS:
        print(f"{name}: {tried(name)}", file=sys.stderr)
    print(table(), end="")


if __name__ == "__main__":
    main()
