import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.tasks import Counting, tiny

from zoo.declare.library import open_library
from zoo.declare.spec import Node
from zoo.train import metrics
from zoo.train.loop import group_parameters
from zoo_plugins.optimizer import adamw, sgd


def follow(optimizer, model, steps=5):
    generator = torch.Generator().manual_seed(0)
    for step in range(steps):
        batch = Counting().batch(4, generator)
        metrics.loss(metrics.predict(model, batch), batch)[0].backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (step + 1)
        optimizer.step()
        model.zero_grad()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("how", ["fused", "foreach"])
@pytest.mark.parametrize("options", [{}, {"betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.5}])
def test_adamw_is_torchs_to_the_bit(how, options):
    ours, theirs = tiny(), tiny()
    given = {"betas": (0.9, 0.98), "eps": 1e-8, "weight_decay": 0.1, **options}
    expected = follow(torch.optim.AdamW(group_parameters(theirs), **given, **{how: True}), theirs)
    assert torch.equal(follow(adamw(group_parameters(ours), **options, implementation=how), ours), expected)


@pytest.mark.parametrize("how", ["fused", "foreach"])
@pytest.mark.parametrize("options", [{"momentum": 0.9}, {"momentum": 0.0, "weight_decay": 0.2}])
def test_sgd_is_torchs_to_the_bit(how, options):
    ours, theirs = tiny(), tiny()
    expected = follow(torch.optim.SGD(group_parameters(theirs), **options, **{how: True}), theirs)
    assert torch.equal(follow(sgd(group_parameters(ours), **options, implementation=how), ours), expected)


@pytest.mark.parametrize("make", [adamw, sgd])
def test_saved_state_goes_on_to_the_same_bits(make):
    whole, first = tiny(), tiny()
    optimizer = make(group_parameters(first))
    follow(optimizer, first, 3)
    second, state = copy.deepcopy(first), copy.deepcopy(optimizer.state_dict())
    again = make(group_parameters(second), weight_decay=0.7)
    again.load_state_dict(state)
    expected = follow(optimizer, first, 2)
    assert torch.equal(follow(again, second, 2), expected)
    assert not torch.equal(follow(make(group_parameters(whole)), whole, 2), expected)


def test_torchs_own_optimizer_reads_our_state():
    model = tiny()
    ours, theirs = (
        adamw(group_parameters(model)),
        torch.optim.AdamW(group_parameters(model), betas=(0.9, 0.98), fused=True),
    )
    follow(ours, model)
    theirs.load_state_dict(copy.deepcopy(ours.state_dict()))
    for p in model.parameters():
        assert all(torch.equal(ours.state[p][k], theirs.state[p][k]) for k in ("step", "exp_avg", "exp_avg_sq"))


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (
            {"name": "adamw", "betas": [0.9, 1.0]},
            r"betas is \[0.9, 1.0\]; it should be a list of 2: a number of at least",
        ),
        ({"name": "adamw", "weight_decay": -1.0}, "weight_decay is -1.0; it should be a number of at least 0"),
        ({"name": "sgd", "momentum": -0.1}, "momentum is -0.1; it should be a number of at least 0"),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_it_is_read(part, fault):
    reader = open_library().reader()
    assert reader.part(Node(part), "optimizer") is None
    assert re.search(fault, reader.faults[0].text)


def test_training_does_not_import_the_compiler(tmp_path):
    """It costs every run 1.7 s of its start, and each of torch's optimizer classes brings it in."""
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from support.tasks import Counting, settings, tiny
from zoo.record.folder import Run
from zoo.train.loop import train
from zoo_plugins.optimizer import adamw, sgd
for make in (adamw, sgd):
    given = settings(steps=2, optimizer=make, precision="bf16")
    stopped = iter([False, True])
    train(tiny(0.1), Counting(), given, seed=0, folder=Run(Path({str(tmp_path)!r})), stop=lambda: next(stopped))
    train(tiny(0.1), Counting(), given, seed=0, folder=Run(Path({str(tmp_path)!r})))
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
