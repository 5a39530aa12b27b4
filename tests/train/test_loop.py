import math
from dataclasses import dataclass
from functools import partialmethod
from types import SimpleNamespace

import pytest
import torch
from support.tasks import VOCAB, Counting, Tiny, settings, tiny
from torch import nn
from torch._dynamo.utils import counters

from zoo import build
from zoo.model import weights
from zoo.record.folder import Run
from zoo.tasks import Batch
from zoo.train import loop, metrics
from zoo.train.loop import group_parameters
from zoo_plugins import norm as norms
from zoo_plugins.optimizer import adamw, sgd
from zoo_plugins.schedule import constant


def go(folder, model=None, task=None, seed=0, **changes):
    """Train a tiny model; returns what `train` returns, the model and its curve."""
    given = {k: changes.pop(k) for k in ("stop", "tick") if k in changes}
    model, run = tiny() if model is None else model, Run(folder)
    run.folder.mkdir(exist_ok=True)
    result = loop.train(
        model, Counting() if task is None else task, settings(**changes), seed=seed, folder=run, **given
    )
    return SimpleNamespace(result=result, model=model, run=run, curve=run.lines())


def vector(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def column(curve, key, kind="train"):
    return [line[key] for line in curve if line["kind"] == kind]


def ticking(n):
    """A `stop` that says yes at the nth question."""
    asked = iter(range(n))
    return lambda: next(asked, None) is None


class Fixed(Counting):
    """The given batches, over and over."""

    def __init__(self, *batches):
        self.given, self.at = batches, 0

    def batch(self, size, generator):
        self.at += 1
        return self.given[(self.at - 1) % len(self.given)]

    def batches(self, split, size):
        return iter(self.given)


def rows(targets, weights):
    target = torch.tensor(targets)
    return Batch(target[:, :0], target, torch.tensor(weights, dtype=torch.float32))


class Table(nn.Module):
    """The same logits for every target: cross-entropies that a hand can compute."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, source, target, **given):
        return self.logits.expand(*target.shape, -1)


# the loss


def test_accumulated_batches_weigh_by_their_targets(tmp_path):  # LOSS-1
    """One batch of 3 targets at 1 nat and one of 1 at 5: the mean is 2, not 3."""
    few = rows([[1, 0, 0, 0]], [[1, 0, 0, 0]])
    many = rows([[0, 0, 0, 1]], [[1, 1, 1, 0]])
    model = Table([-1.0, -5.0, math.log(1 - math.exp(-1) - math.exp(-5))])
    seen = go(tmp_path, model, Fixed(few, many), steps=1, accumulate=2, optimizer=sgd, clip=None, schedule=constant)
    assert column(seen.curve, "loss") == pytest.approx([2.0], abs=1e-6)
    p = torch.tensor([math.exp(-1), math.exp(-5), 1 - math.exp(-1) - math.exp(-5)])
    gradient = p - torch.tensor([0.75, 0.25, 0.0])
    assert column(seen.curve, "grad_norm") == pytest.approx([gradient.norm().item()], rel=1e-5)


def test_accumulation_changes_nothing_but_memory(tmp_path):
    """8 rows at once or 2 at a time; a third of the rows are padded."""
    at_once = go(tmp_path / "a", batch_size=8)
    split = go(tmp_path / "b", batch_size=2, accumulate=4)
    assert torch.allclose(vector(at_once.model), vector(split.model), atol=1e-6)
    assert column(split.curve, "loss") == pytest.approx(column(at_once.curve, "loss"), rel=1e-6)
    assert split.result["train"]["tokens"] == at_once.result["train"]["tokens"]


def test_a_batch_without_targets_adds_nothing(tmp_path):  # LOSS-4
    empty, full = rows([[1, 2]], [[0, 0]]), rows([[1, 2]], [[1, 1]])
    with_empty = go(tmp_path / "a", task=Fixed(empty, full), steps=4)
    without = go(tmp_path / "b", task=Fixed(full), steps=4)
    assert torch.equal(vector(with_empty.model), vector(without.model))
    with pytest.raises(ValueError, match="100 batches of 4 rows in a row held no target that counts"):
        go(tmp_path / "c", task=Fixed(empty))


def test_the_curve_holds_the_mean_since_the_line_before(tmp_path):
    every = go(tmp_path / "a", steps=6, batch_size=1)
    third = go(tmp_path / "b", steps=6, batch_size=1, log_every=3)
    generator = torch.Generator().manual_seed(0)
    weight = [Counting().batch(1, generator).weight.sum().item() for _ in range(6)]
    loss = column(every.curve, "loss")
    expected = [sum(w * x for w, x in zip(weight[i : i + 3], loss[i : i + 3])) / sum(weight[i : i + 3]) for i in (0, 3)]
    assert column(third.curve, "loss") == pytest.approx(expected, rel=1e-6)
    assert column(third.curve, "step") == [3, 6]


# auxiliary losses


@dataclass(frozen=True)
class Level:
    """The mean square of all that was noted, times a weight."""

    weight: float

    def __call__(self, values):
        return self.weight * torch.cat(values).square().mean()


class Noting(Tiny):
    """Notes the vectors of its targets under one name, in two parts."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, source, target, *, notes=None, **given):
        if notes is not None:
            parts = self.table(target).flatten(0, 1).split([target.numel() - 1, 1])
            notes += [(Level(self.weight), part) for part in parts] + [("a tensor to look at", parts[0])]
        return super().forward(source, target, **given)


def noting(weight):
    torch.manual_seed(0)
    return Noting(weight)


def test_an_auxiliary_loss_is_added_to_the_objective_and_not_to_the_loss(tmp_path):
    """Two notes under one name are judged together: 2 mean(l^2) with a slope of 4 l / 3."""

    class Loud(Table):
        def forward(self, source, target, notes=None, **given):
            if notes is not None:
                notes += [(Level(2.0), self.logits[:1]), (Level(2.0), self.logits[1:])]
            return super().forward(source, target, **given)

    batch = rows([[0, 1, 1, 2]], [[1, 1, 1, 1]])
    logits = torch.tensor([0.3, -1.0, 0.5])
    seen = go(tmp_path, Loud(logits.tolist()), Fixed(batch), steps=1, eval_every=1, optimizer=sgd, clip=None)
    p, share = logits.softmax(0), torch.tensor([0.25, 0.5, 0.25])
    loss = -(share * p.log()).sum().item()
    assert column(seen.curve, "loss") == pytest.approx([loss], rel=1e-6)
    assert column(seen.curve, "auxiliary_loss") == pytest.approx([2 * logits.square().mean().item()], rel=1e-6)
    slope = p - share + 4 * logits / 3
    assert column(seen.curve, "grad_norm") == pytest.approx([slope.norm().item()], rel=1e-5)
    after = seen.model.logits.detach().softmax(0)
    assert column(seen.curve, "loss", "dev") == pytest.approx([-(share * after.log()).sum().item()], rel=1e-6)


def test_accumulation_leaves_the_auxiliary_loss_as_it_is(tmp_path):
    at_once = go(tmp_path / "a", noting(3.0), batch_size=8)
    split = go(tmp_path / "b", noting(3.0), batch_size=2, accumulate=4)
    assert torch.allclose(vector(at_once.model), vector(split.model), atol=1e-6)
    assert column(split.curve, "auxiliary_loss") == pytest.approx(column(at_once.curve, "auxiliary_loss"), rel=1e-5)
    assert column(at_once.curve, "auxiliary_loss")[-1] < 0.9 * column(at_once.curve, "auxiliary_loss")[0]


def test_without_an_auxiliary_loss_nothing_changes(tmp_path):
    plain, nil = go(tmp_path / "a", tiny()), go(tmp_path / "b", noting(0.0))
    assert torch.equal(vector(plain.model), vector(nil.model))
    assert column(plain.curve, "grad_norm") == column(nil.curve, "grad_norm")
    assert not any("auxiliary_loss" in line for line in plain.curve)


def test_the_curve_holds_the_mean_auxiliary_loss_since_the_line_before(tmp_path):
    every = go(tmp_path / "a", noting(3.0), steps=6, batch_size=1)
    third = go(tmp_path / "b", noting(3.0), steps=6, batch_size=1, log_every=3)
    generator = torch.Generator().manual_seed(0)
    weight = [Counting().batch(1, generator).weight.sum().item() for _ in range(6)]
    found = column(every.curve, "auxiliary_loss")
    expected = [sum(w * x for w, x in zip(weight[i : i + 3], found[i:])) / sum(weight[i : i + 3]) for i in (0, 3)]
    assert column(third.curve, "auxiliary_loss") == pytest.approx(expected, rel=1e-6)


def mixture(**options):
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 3, "vocab_size": VOCAB, "max_len": 8}
    return build({"ffn": {"name": "moe-sigmoid", "experts": 4, "correct": 0.01, **options}}, shape=sizes)


def test_a_mixture_compiled_is_trained_as_it_is(tmp_path, monkeypatch):
    plain = go(tmp_path / "a", mixture(), steps=6)
    monkeypatch.setattr(nn.Module, "compile", partialmethod(nn.Module.compile, backend="eager"))
    torch._dynamo.reset()
    counters.clear()
    compiled = go(tmp_path / "b", mixture(), steps=6, compile=True)
    assert column(compiled.curve, "auxiliary_loss") == pytest.approx(column(plain.curve, "auxiliary_loss"), rel=1e-5)
    assert torch.allclose(vector(compiled.model), vector(plain.model), atol=1e-5)
    assert len(column(plain.curve, "auxiliary_loss")) == 6
    assert counters["stats"]["unique_graphs"] == 2, "one for all layers while training, and one in eval mode"


def test_a_mixture_resumed_goes_on_with_its_correction(tmp_path):
    whole = go(tmp_path / "whole", mixture())
    go(tmp_path / "parts", mixture(), stop=ticking(7))
    parts = go(tmp_path / "parts", mixture())
    assert torch.equal(vector(parts.model), vector(whole.model))
    assert column(parts.curve, "auxiliary_loss") == column(whole.curve, "auxiliary_loss")
    assert any(x.abs().max() > 0.02 for x in whole.model.buffers())


def test_the_balance_loss_spreads_the_tokens(tmp_path):
    """Two of four experts begin with a lead: a balanced router loses it, and another keeps it."""
    busiest = []
    for weight in (0.0, 0.3):
        model = mixture(router_bias=True, balance=weight, correct=None)
        for layer in model.decoder.layers:
            layer.ffn.router.bias.data[:2] = 2.0
        seen = go(tmp_path / str(weight), model, steps=100, lr=1e-2)
        notes = []
        for layer in model.decoder.layers:
            layer.ffn.auxiliary_loss = type(layer.ffn.auxiliary_loss)(4, 2, 1.0)
        metrics.predict(model, next(Counting().batches("test", 10)), notes)
        load = sum(value[0] for _, value in notes)
        busiest.append((load.max() / load.sum()).item())
        assert len(notes) == 3 and ("auxiliary_loss" in seen.curve[1]) == (weight > 0)
    assert busiest[1] < 0.33 < 0.42 < busiest[0], busiest


# the step


def test_the_schedule_counts_steps_not_batches(tmp_path):  # TRAIN-2
    one = column(go(tmp_path / "a", accumulate=1).curve, "lr")
    four = column(go(tmp_path / "b", accumulate=4).curve, "lr")
    assert len(four) == 20 and four == one
    assert one[:3] == pytest.approx([1e-2 / 3, 2e-2 / 3, 1e-2])


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_whole_gradient_is_clipped_once(tmp_path, accumulate):  # TRAIN-5
    """A loss a thousand times too large: the step's gradient has norm 1, the logged norm is the one before."""

    class Loud(Tiny):
        def forward(self, *args, **given):
            return 1000 * super().forward(*args, **given)

    torch.manual_seed(0)
    norms = []

    def watching(params):
        optimizer = sgd(params, momentum=0.0)
        update = optimizer.step
        grads = lambda: [p.grad for group in params for p in group["params"]]  # noqa: E731
        optimizer.step = lambda: (norms.append(nn.utils.get_total_norm(grads()).item()), update())
        return optimizer

    seen = go(tmp_path, Loud(), steps=3, lr=1e-6, accumulate=accumulate, optimizer=watching)
    assert norms == pytest.approx([1, 1, 1], rel=1e-4)
    assert min(column(seen.curve, "grad_norm")) > 100
    again = go(tmp_path / "free", Loud(), steps=3, lr=1e-6, accumulate=accumulate, optimizer=watching, clip=None)
    assert norms[3:] == pytest.approx(column(again.curve, "grad_norm"), rel=1e-5)


class Foo(nn.Module):
    """A norm that no list of names knows."""

    def __init__(self, dim):
        super().__init__()
        self.strength = nn.Parameter(torch.ones(dim))


def test_only_matrices_decay_and_nothing_is_missed():  # TRAIN-3
    model = tiny()
    made = [Foo(12), norms.LayerNorm(12), norms.RMSNorm(12), norms.ScaleNorm(12)]
    model.norms = nn.ModuleList(made)
    matrices, rest = group_parameters(model)
    assert {id(p) for p in matrices["params"]} == {id(model.table.weight), id(model.up.weight)}
    assert "weight_decay" not in matrices and rest["weight_decay"] == 0.0
    assert {id(p) for p in rest["params"]} >= {id(p) for p in model.norms.parameters()}
    assert len(matrices["params"]) + len(rest["params"]) == len(list(model.parameters()))


def test_decay_shrinks_a_matrix_and_no_gain():
    model = tiny()
    optimizer = adamw(group_parameters(model), weight_decay=0.5)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = 0.1
    optimizer.step()
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), before[name] * (0.95 if p.ndim == 2 else 1.0))


# budgets


def test_a_budget_of_tokens_becomes_steps(tmp_path):
    task = Fixed(rows([[1, 2, 3]] * 4, [[1, 1, 0]] * 4))
    seen = go(tmp_path, task=task, steps=None, tokens=100, accumulate=3)
    assert seen.result["train"]["steps"] == 5  # 24 targets that count in each
    assert seen.result["train"]["tokens"] == 120
    assert seen.result["train"]["epochs"] == pytest.approx(2.0)


# evaluation


def test_evaluation_leaves_no_trace(tmp_path):  # TRAIN-1, REPRO
    class Drawing(Counting):
        """A task so careless as to draw evaluation rows from the global generator."""

        def batches(self, split, size):
            torch.rand(7)
            return super().batches(split, size)

    often = go(tmp_path / "a", tiny(0.3), Drawing(), eval_every=1)
    once = go(tmp_path / "b", tiny(0.3), eval_every=20)
    assert column(often.curve, "loss") == column(once.curve, "loss")
    assert column(often.curve, "loss", "dev")[-1] == column(once.curve, "loss", "dev")[-1]
    assert len(column(often.curve, "step", "dev")) == 20


def test_the_same_data_for_every_variant(tmp_path):
    """Dropout and more initial weights do not move the order of the rows."""

    class Noting(Counting):
        def __init__(self):
            self.seen = []

        def batch(self, size, generator):
            found = super().batch(size, generator)
            self.seen.append(found.target)
            return found

    tasks = [Noting() for _ in range(3)]
    go(tmp_path / "a", tiny(), tasks[0])
    go(tmp_path / "b", tiny(0.5, width=30), tasks[1], eval_every=1)
    go(tmp_path / "c", tiny(), tasks[2], seed=1)
    first, second, third = (torch.stack(task.seen) for task in tasks)
    assert torch.equal(first, second) and not torch.equal(first, third)
    assert not torch.equal(first[:10], first[10:])


class Scripted(Counting):
    """Dev scores as the test says."""

    def __init__(self, values, name="loss"):
        self.values, self.metrics = iter(values), (name,)


def scripted(monkeypatch):
    monkeypatch.setattr(metrics, "evaluate", lambda model, task, split, **k: {task.metrics[0]: next(task.values)})


@pytest.mark.parametrize(
    ("values", "name", "step"),
    [
        ((math.nan, 2.0, 1.0, 0.0), "loss", 15),
        ((1.0, math.nan, 0.5, 0.0), "loss", 15),
        ((3.0, math.inf, -math.inf, 0.0), "loss", 5),
        ((0.2, 0.9, 0.4, 0.0), "accuracy", 10),
        ((0.5, 0.5, 0.5, 0.0), "loss", 5),
    ],
)
def test_the_best_is_the_finite_best(tmp_path, monkeypatch, values, name, step):  # SWEEP-1
    scripted(monkeypatch)
    found = go(tmp_path, task=Scripted(values, name), steps=15).result
    assert found["best"] == {"step": step, "dev": {name: values[step // 5 - 1]}}
    assert found["status"] == "done" and found["metrics"] == {"dev": found["best"]["dev"], "test": {name: 0.0}}


def test_a_run_that_was_never_finite_on_dev_has_diverged(tmp_path, monkeypatch):
    scripted(monkeypatch)
    found = go(tmp_path, task=Scripted([math.nan] * 4, "loss")).result
    assert (found["status"], found["reason"], found["metrics"]) == ("diverged", "no finite loss on dev", {})


def test_the_model_ends_at_its_best_weights(tmp_path, monkeypatch):
    scripted(monkeypatch)
    kept = {}
    model = tiny()

    def tick(line):
        kept.setdefault((line["kind"], line["step"]), vector(model))

    found = go(tmp_path, model, Scripted([2.0, 1.0, 3.0, 4.0, 0.0]), tick=tick)
    assert found.result["best"]["step"] == 10 and not model.training
    assert torch.equal(vector(model), kept["dev", 10]) and not torch.equal(vector(model), kept["dev", 20])
    fresh = tiny(seed=5)
    weights.read_model(fresh, found.run.weights)
    assert torch.equal(vector(fresh), kept["dev", 10]) and fresh.head.weight is fresh.table.weight


# divergence


class Breaking(Tiny):
    """Fine for a while, then its logits are multiplied."""

    def __init__(self, factor, after):
        super().__init__()
        self.factor, self.left = factor, after

    def forward(self, *args, **given):
        self.left -= self.training
        return super().forward(*args, **given) * (self.factor if self.left < 0 else 1.0)


@pytest.mark.parametrize(
    ("factor", "reason"),
    [(math.nan, "loss nan at step 8"), (math.inf, "loss nan at step 8"), (100.0, "at step 8, from")],
)
def test_a_diverged_run_keeps_its_curve(tmp_path, factor, reason):
    torch.manual_seed(0)
    seen = go(tmp_path, Breaking(factor, 7))
    assert seen.result["status"] == "diverged" and reason in seen.result["reason"]
    assert seen.result["metrics"] == {} and seen.result["best"]["step"] == 5
    assert column(seen.curve, "step")[:7] == [1, 2, 3, 4, 5, 6, 7]


def test_a_gradient_that_is_no_number_moves_no_weight(tmp_path):
    class Cliff(Table):
        def forward(self, source, target, **given):
            bent = torch.sqrt(self.logits - self.logits.detach())  # 0, with an infinite slope
            return (self.logits + bent).expand(*target.shape, -1)

    seen = go(tmp_path, Cliff([0.0] * 12))
    assert seen.result["reason"].startswith("gradient norm") and torch.equal(vector(seen.model), torch.zeros(12))


# the same bits


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_run_resumed_is_the_run_that_never_stopped(tmp_path, precision):  # REPRO-1
    given = {"precision": precision, "accumulate": 2, "log_every": 3, "eval_every": 4}
    whole = go(tmp_path / "whole", tiny(0.1), **given)
    first = go(tmp_path / "parts", tiny(0.1), stop=ticking(10), **given)
    assert first.result["status"] == "interrupted" and first.result["train"]["steps"] == 10
    torch.manual_seed(99)  # whatever a new process has
    first.run.log({"kind": "train", "step": 11, "loss": 0.0})  # written after the state was saved
    parts = go(tmp_path / "parts", tiny(0.1, seed=7), **given)
    assert torch.equal(vector(parts.model), vector(whole.model))
    for kind, key in [("train", "loss"), ("train", "lr"), ("train", "grad_norm"), ("dev", "loss"), ("dev", "step")]:
        assert column(parts.curve, key, kind) == column(whole.curve, key, kind), (kind, key)
    for part in ("best", "metrics"):
        assert parts.result[part] == whole.result[part]
    assert parts.result["train"]["tokens"] == whole.result["train"]["tokens"]


def test_the_same_seed_gives_the_same_bits(tmp_path):
    def trained(name, seed):
        model = tiny(0.1)
        torch.rand(len(name))  # whatever was drawn before must not matter
        return go(tmp_path / name, model, seed=seed)

    first, again, other = trained("first", 3), trained("again, later", 3), trained("other", 4)
    assert torch.equal(vector(first.model), vector(again.model))
    assert not torch.equal(vector(first.model), vector(other.model))


def test_state_is_saved_every_so_many_seconds(tmp_path, monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(loop, "perf_counter", lambda: float(next(clock)))
    saved = []
    monkeypatch.setattr(loop.Training, "save", lambda self: saved.append(self.count.step))
    go(tmp_path, steps=6, checkpoint_seconds=8.0)
    assert saved == [2, 4]  # a step asks the time five times, the last one ends the run


def test_a_kept_optimizer_of_torch_resumes_too(tmp_path):
    def rmsprop(params):
        return torch.optim.RMSprop(params, momentum=0.9)

    whole = go(tmp_path / "whole", optimizer=rmsprop)
    go(tmp_path / "parts", stop=ticking(10), optimizer=rmsprop)
    parts = go(tmp_path / "parts", tiny(seed=3), optimizer=rmsprop)
    assert torch.equal(vector(parts.model), vector(whole.model))


# checkpoints


def test_a_crash_while_saving_leaves_the_file_before(tmp_path, monkeypatch):  # CKPT-1
    seen = go(tmp_path, stop=ticking(4))
    whole = seen.run.resume.read_bytes()

    def broken(tensors, path, metadata):
        open(path, "wb").write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(weights, "save_file", broken)
    with pytest.raises(OSError, match="disk full"):
        go(tmp_path, stop=ticking(3))
    assert seen.run.resume.read_bytes() == whole
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".new")] == []


def test_a_compiled_model_has_the_names_of_a_plain_one(tmp_path):  # CKPT-3
    compiled = torch.compile(tiny(), backend="eager")
    go(tmp_path / "a", compiled, stop=ticking(2), eval_every=1)
    seen = go(tmp_path / "a", tiny(), steps=3)  # goes on uncompiled
    assert seen.result["status"] == "done" and seen.result["train"]["steps"] == 3
    go(tmp_path / "b", tiny(), steps=1)
    again = torch.compile(tiny(seed=4), backend="eager")
    weights.read_model(again, tmp_path / "b" / "weights.safetensors")
    assert set(weights.list_tensors(again)) == set(weights.list_tensors(tiny()))


def test_layers_are_compiled_in_place(monkeypatch):
    called = []
    monkeypatch.setattr(nn.Module, "compile", lambda self: called.append(self))
    model = tiny()
    loop.compile_layers(model)
    assert called == [model]
    assert list(model.state_dict()) == list(tiny().state_dict())


def test_a_state_of_another_model_is_refused(tmp_path):
    go(tmp_path, stop=ticking(2))
    other = nn.Sequential(nn.Linear(3, 3))
    tensors, _ = weights.read_state(tmp_path / "resume.safetensors")
    with pytest.raises(ValueError, match="the saved state is of another model"):
        weights.load_tensors(other, {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})


# precision and devices


def test_bfloat16_keeps_its_weights_in_float32(tmp_path):
    seen = go(tmp_path, precision="bf16")
    assert seen.result["train"]["precision"] == "bf16"
    assert {p.dtype for p in seen.model.parameters()} == {torch.float32}
    exact = go(tmp_path / "fp32")
    ours, theirs = column(seen.curve, "loss"), column(exact.curve, "loss")
    assert ours != theirs and ours == pytest.approx(theirs, abs=0.02)
    assert column(seen.curve, "loss", "dev")[-1] == pytest.approx(column(exact.curve, "loss", "dev")[-1], abs=0.02)


@pytest.mark.parametrize(
    ("units", "width", "expected"), [(True, 256, "bf16"), (True, 128, "fp32"), (False, 256, "fp32")]
)
def test_auto_precision_asks_for_matrix_units_and_width(monkeypatch, units, width, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": units}, raising=False)
    model = SimpleNamespace(shape=SimpleNamespace(d_model=width))
    assert loop.choose_precision("auto", torch.device("cpu"), model) == expected
    assert loop.choose_precision("fp32", torch.device("cpu"), model) == "fp32"


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="device 'nonsense' cannot be used"):
        loop.choose_device("nonsense")
    assert loop.choose_device("cpu").type == "cpu"


def test_it_learns(tmp_path):
    """The untrained loss is about ln of the vocabulary; counting is learnt, but for each row's random start."""
    seen = go(tmp_path, steps=200, lr=3e-2, batch_size=8, log_every=10, eval_every=50)
    assert column(seen.curve, "loss")[0] > 2
    best = seen.result["metrics"]["test"]
    starts = Counting().batches("test", 10)
    batch = next(iter(starts))
    floor = 10 * math.log(VOCAB) / batch.weight.sum().item()
    assert floor - 0.2 < best["loss"] < floor + 0.4 and best["accuracy"] > 0.6
    assert seen.result["train"]["tokens_per_second"] > 0
