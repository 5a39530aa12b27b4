import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library, own_registry
from zoo.faults import SpecError
from zoo.tasks import Batch, Metric, Reference, Task, pieces
from zoo.train.metrics import evaluate, loss


class Given(Task):
    """Rows that are handed to it; a target's id is also the row of the logits that predict it."""

    def __init__(self, target, weight, metrics=("loss", "perplexity", "accuracy", "exact"), keep=None, **facts):
        self.rows = Batch(target[:, :0], target, weight, target_keep=keep)
        self.metrics = metrics
        vars(self).update(facts)

    def batches(self, split, size):
        yield from pieces(self.rows, size)


class ByTarget(nn.Module):
    """Gives token t the logits in row t of a table: what it scores is known beforehand."""

    def __init__(self, table):
        super().__init__()
        self.table = nn.Parameter(table)
        self.modes = []

    def forward(self, source, target, **given):
        self.modes.append(self.training)
        return self.table[target]


def costing(*nats):
    """Logits whose softmax gives token t the probability exp(-nats[t]); the rest is on one more token."""
    p = torch.tensor(nats, dtype=torch.float64).neg().exp()
    V = len(nats) + 1
    table = torch.full((V, V), -math.inf, dtype=torch.float64)
    for t, share in enumerate(p):
        table[t, t], table[t, -1] = share.log(), torch.log1p(-share)
    table[-1, -1] = 0.0
    return ByTarget(table.float())


@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
def test_perplexity_is_of_all_tokens_whatever_the_batch_size(batch_size):
    target = torch.tensor([[0]] * 9 + [[1]])
    score = evaluate(costing(1.0, 5.0), Given(target, torch.ones(10, 1)), "test", batch_size=batch_size)
    assert score["perplexity"] == pytest.approx(4.0552, abs=5e-5)
    assert score["loss"] == pytest.approx(1.4, abs=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_perplexity_averages_before_it_raises(batch_size):
    target = torch.tensor([[0, 1]] * 4)
    score = evaluate(costing(0.0, 2 * math.log(2)), Given(target, torch.ones(4, 2)), "dev", batch_size=batch_size)
    assert score["perplexity"] == pytest.approx(2.0, abs=1e-6)


def test_loss_is_the_sum_over_real_targets_and_accumulates():
    model = costing(1.0, 5.0)
    target = torch.tensor([[0, 0, 0, 1], [1, 1, 1, 1]])
    weight = torch.tensor([[1.0, 1, 1, 0], [1, 0, 0, 0]])
    sums = [loss(model(None, t[None]), Batch(t[None, :0], t[None], w[None])) for t, w in zip(target, weight)]
    nats, count = (sum(column) for column in zip(*sums))
    assert [s.item() for s, _ in sums] == pytest.approx([3.0, 5.0], abs=1e-5)
    assert (nats / count).item() == pytest.approx(2.0, abs=1e-5)
    whole, all_of_it = loss(model(None, target), Batch(target[:, :0], target, weight))
    assert (whole / all_of_it).item() == pytest.approx(2.0, abs=1e-5)
    whole.div(all_of_it).backward()
    at_once = model.table.grad.clone()
    model.table.grad = None
    for t, w in zip(target, weight):
        part, _ = loss(model(None, t[None]), Batch(t[None, :0], t[None], w[None]))
        part.div(4).backward()
    assert torch.allclose(model.table.grad, at_once, atol=1e-6, equal_nan=True)


def test_loss_agrees_with_torch():
    torch.manual_seed(0)
    logits, target = torch.randn(3, 5, 7), torch.randint(7, (3, 5))
    weight = (torch.rand(3, 5) < 0.6).float()
    total, count = loss(logits, Batch(target[:, :0], target, weight))
    ignoring = target.masked_fill(weight == 0, -100)
    assert (total / count).item() == pytest.approx(F.cross_entropy(logits.transpose(1, 2), ignoring).item(), abs=1e-6)


def test_a_batch_without_targets_adds_nothing_and_no_nan():
    logits = torch.full((2, 3, 4), -math.inf, requires_grad=True)
    target = torch.zeros(2, 3, dtype=torch.long)
    total, count = loss(logits, Batch(target[:, :0], target, torch.zeros(2, 3)))
    assert (total.item(), count.item()) == (0.0, 0.0)
    finite = torch.randn(2, 3, 4, requires_grad=True)
    total, _ = loss(finite, Batch(target[:, :0], target, torch.zeros(2, 3)))
    total.backward()
    assert finite.grad.eq(0).all()
    model, weight = costing(1.0, 5.0), torch.tensor([[1.0], [0], [0]])
    assert evaluate(model, Given(target[:1].T, weight), "dev", batch_size=1)["loss"] == pytest.approx(1.0, abs=1e-6)


def test_a_split_without_targets_is_refused():
    task = Given(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="dev split has no target"):
        evaluate(costing(1.0), task, "dev")


def test_loss_is_taken_in_float32():
    logits = (torch.arange(8.0) * 0.37).expand(1, 1, 8)
    target = torch.tensor([[2]])
    batch = Batch(target[:, :0], target, torch.ones(1, 1))
    for dtype in (torch.bfloat16, torch.float16):
        low = logits.to(dtype)
        total, _ = loss(low, batch)
        assert total.dtype == torch.float32
        assert total.item() == pytest.approx(F.cross_entropy(low.double()[0], target[0]).item(), abs=1e-6)


def test_only_choices_compete():
    choices = torch.tensor([2, 5])
    logits = torch.tensor([[[9.0, 9, 1, 9, 9, 3]]])
    batch = Batch(torch.zeros(1, 0), torch.tensor([[2]]), torch.ones(1, 1))
    total, _ = loss(logits, batch, choices)
    assert total.item() == pytest.approx(math.log(1 + math.exp(2)), abs=1e-6)
    zero, _ = loss(torch.zeros(1, 1, 6), batch, choices)
    assert zero.item() == pytest.approx(math.log(2), abs=1e-6)
    given = Batch(torch.zeros(1, 0), torch.tensor([[0, 5]]), torch.tensor([[0.0, 1]]))
    asked, count = loss(logits.expand(1, 2, 6), given, choices)
    assert asked.item() == pytest.approx(math.log(1 + math.exp(-2)), abs=1e-6) and count == 1
    table = torch.zeros(6, 6)
    table[:, 0], table[5, 5] = 9.0, 1.0
    task = Given(torch.tensor([[2], [5]]), torch.ones(2, 1), ("accuracy",), choices=choices)
    assert evaluate(ByTarget(table), task, "dev") == {"accuracy": 1.0}


def test_accuracy_counts_tokens_and_exact_counts_rows():
    table = torch.eye(5)
    table[3] = torch.eye(5)[4]
    target = torch.tensor([[0, 1, 2], [0, 3, 1], [1, 1, 3], [3, 3, 3]])
    weight = torch.tensor([[1.0, 1, 1], [1, 1, 1], [0.5, 1, 0], [0, 0, 0]])
    score = evaluate(ByTarget(table), Given(target, weight, ("accuracy", "exact")), "dev", batch_size=3)
    assert score == {"accuracy": pytest.approx(7 / 8), "exact": pytest.approx(2 / 3)}


def test_padding_changes_nothing():
    torch.manual_seed(0)
    model = ByTarget(torch.randn(6, 6))
    target = torch.randint(1, 6, (7, 4))
    keep = torch.arange(4) < torch.tensor([4, 1, 2, 4, 3, 1, 2])[:, None]
    tight = Given(target, keep.float(), keep=keep)
    wide = Given(F.pad(target, (0, 5)), F.pad(keep.float(), (0, 5)), keep=F.pad(keep, (0, 5)))
    alone = [evaluate(model, Given(t[k][None], torch.ones(1, k.sum())), "dev") for t, k in zip(target, keep)]
    expected = sum(score["loss"] * k.sum().item() for score, k in zip(alone, keep)) / keep.sum().item()
    for task, size in ((tight, 2), (wide, 3), (wide, 100)):
        assert evaluate(model, task, "dev", batch_size=size)["loss"] == pytest.approx(expected, abs=1e-6)


def test_bits_per_byte_count_the_bytes_of_the_targets():
    target, weight = torch.tensor([[0, 0, 1, 1]]), torch.tensor([[1.0, 1, 1, 0]])
    task = Given(target, weight, ("bpb",), bytes=torch.tensor([1, 6, 0]))
    assert evaluate(costing(1.0, 5.0), task, "dev")["bpb"] == pytest.approx(7 / math.log(2) / 8, abs=1e-5)


def test_evaluation_leaves_every_mode_as_it_was():
    class Nested(ByTarget):
        def __init__(self):
            super().__init__(torch.zeros(3, 3))
            self.frozen, self.dropout = nn.Dropout(), nn.Dropout()

        def forward(self, source, target, **given):
            assert not (self.training or self.frozen.training or self.dropout.training)
            assert not torch.is_grad_enabled()
            if target[0, 0] == 2:
                raise RuntimeError
            self.remembered = self.table[target]
            return self.remembered

    model = Nested().train()
    model.frozen.eval()
    evaluate(model, Given(torch.zeros(2, 2, dtype=torch.long), torch.ones(2, 2)), "dev")
    with pytest.raises(RuntimeError):
        evaluate(model, Given(torch.full((2, 2), 2), torch.ones(2, 2)), "dev")
    assert model.training and model.dropout.training and not model.frozen.training
    assert not model.remembered.is_inference(), "what a model remembers could not be trained on"


def test_what_is_not_finite_is_told():
    target = torch.tensor([[0]])
    endless = evaluate(costing(800.0), Given(target, torch.ones(1, 1), ("loss", "perplexity")), "dev")
    assert endless["perplexity"] == math.inf
    broken = ByTarget(torch.full((2, 2), math.nan))
    assert math.isnan(evaluate(broken, Given(target, torch.ones(1, 1), ("loss",)), "dev")["loss"])


def test_a_reference_is_scored_by_the_same_sums():
    class Constant(Reference):
        def nll(self, batch):
            return torch.full(batch.target.shape, 3.0).masked_fill(batch.weight == 0, math.inf)

    target, weight = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[1.0, 1], [1, 0]])
    task = Given(target, weight, ("bpb", "loss", "perplexity", "accuracy", "exact"), bytes=torch.tensor([2, 4]))
    score = evaluate(None, task, "dev", batch_size=1, reference=Constant())
    assert score == pytest.approx({"bpb": 9 / math.log(2) / 10, "loss": 3.0, "perplexity": math.exp(3.0)})


def test_every_metric_says_which_is_better():
    registry = own_registry()
    found = {entry.variant.name: registry.load(entry)() for entry in registry.variants("metric")}
    assert {name for name, metric in found.items() if metric.better == "higher"} == {"accuracy", "exact"}
    assert all(metric.better in ("lower", "higher") for metric in found.values())


class Letters(Metric):
    """The share of letters of the answers, as text, that are right."""

    better, needs = "higher", "text"

    def count(self, scored):
        pairs = [(a, b) for said, meant in scored.texts for a, b in zip(said, meant)]
        return {"right": sum(a == b for a, b in pairs), "all": len(pairs)}

    def score(self, sums):
        return sums["right"] / sums["all"]


def test_a_metric_may_read_the_answers_as_text():
    target = torch.tensor([[0, 1], [1, 0]])
    task = Given(target, torch.tensor([[1.0, 1], [1, 0]]), ("letters",))
    task.scorers, task.decode = {"letters": Letters()}, lambda ids: "".join("abcdefgh"[id] for id in ids)
    assert evaluate(costing(0.0, 5.0), task, "dev") == {"letters": 1 / 3}


OWN = """
import torch, zoo
from zoo import tasks
from zoo_plugins.generated import Copy

class Misses(tasks.Metric):
    better, unit, needs = "lower", "tokens", "logits"
    def count(self, scored):
        return {"missed": (scored.counted & ~scored.right).sum().item()}
    def score(self, sums):
        return sums["missed"]

class Strict(Copy):
    metrics = ("misses", "loss")

class Strange(Copy):
    metrics = ("acuracy",)

@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("metric", "misses", Misses), zoo.Variant("task", "strict", Strict),
            zoo.Variant("task", "strange", Strange)]
"""
FILE = "plugins: [{plugin}]\ncomparisons:\n  c: {{model: {{}}, shape: quick, task: {task}, train: {{steps: 2}}}}\n"


def test_a_task_of_a_plugin_brings_its_own_metric(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "a.yaml").write_text(FILE.format(plugin="own.py", task="strict"))
    found = read_comparison(open_library(tmp_path / "a.yaml"), "c")
    task = found.rows[0].first.make_task()
    assert (task.scorers["misses"].unit, list(task.scorers)) == ("tokens", ["misses", "loss"])


def test_a_metric_that_nobody_offers_is_a_fault_when_the_file_is_read(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "a.yaml").write_text(FILE.format(plugin="own.py", task="strange"))
    with pytest.raises(
        SpecError, match=r"a.yaml:3:\d+: task 'strange': no metric is called 'acuracy'; did you mean 'ac"
    ):
        read_comparison(open_library(tmp_path / "a.yaml"), "c")
