"""The processes that train one run together, and what each of them has of it.

A team draws every batch whole and shares its rows, so that the order of the data is that of one process. What it
computes differs from one process by rounding, by dropout, and by auxiliary losses, which each process computes on its
own rows.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from zoo.model import weights
from zoo.tasks import Batch


class Team:
    """One process that has the run to itself."""

    rank = 0
    size = 1

    def join(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The module that batches go through in training. Its gradients are means over the team."""
        return model

    def share(self, batch: Batch) -> Batch:
        """The rows of this process."""
        return batch

    def total(self, x: Tensor) -> Tensor:
        """The sum over the team."""
        return x

    def agreed(self, value: Any) -> Any:
        """The value that the first process has: what all must decide alike."""
        return value

    def each(self, x: Tensor) -> Tensor:
        """What every process has, to be saved; `own` gives each its own again."""
        return x

    def own(self, x: Tensor) -> Tensor:
        return x

    def full(self, x: Tensor) -> Tensor:
        """All of a tensor of which each process may hold a part."""
        return x

    def part(self, x: Tensor, like: Tensor) -> Tensor:
        """What this process holds of a whole tensor, spread as `like` is."""
        return x

    def write_model(self, model: nn.Module, path: Path) -> None:
        weights.write_model(model, path)

    def read_model(self, model: nn.Module, path: Path) -> None:
        weights.read_model(model, path)

    def write_state(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        weights.write_state(path, tensors, facts)


class Copies(Team):
    """Every process has the whole model and some rows: torch's `DistributedDataParallel`."""

    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def join(self, model: nn.Module, device: torch.device) -> nn.Module:
        return nn.parallel.DistributedDataParallel(model)

    def share(self, batch: Batch) -> Batch:
        mine = slice(self.rank, None, self.size)
        return Batch(**{k: v[mine] if isinstance(v, Tensor) else v for k, v in vars(batch).items()})

    def total(self, x: Tensor) -> Tensor:
        dist.all_reduce(x := x.clone())
        return x

    def agreed(self, value: Any) -> Any:
        dist.broadcast_object_list(held := [value])
        return held[0]

    def each(self, x: Tensor) -> Tensor:
        dist.all_gather_object(found := [None] * self.size, x)
        return torch.stack(found)

    def own(self, x: Tensor) -> Tensor:
        return x[self.rank].clone()

    def write_model(self, model: nn.Module, path: Path) -> None:
        if self.rank == 0:
            weights.write_model(model, path)
        dist.barrier()

    def write_state(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        if self.rank == 0:
            weights.write_state(path, tensors, facts)


class Shards(Copies):
    """Every process has a part of every tensor, and the whole of a layer while it computes: torch's `fully_shard`."""

    def join(self, model: nn.Module, device: torch.device) -> nn.Module:
        from torch.distributed.fsdp import fully_shard

        from zoo.model.stack import Layer

        mesh = dist.init_device_mesh(device.type, (self.size,))
        for module in [*(m for m in model.modules() if isinstance(m, Layer)), model]:
            fully_shard(module, mesh=mesh)
        return model

    def full(self, x: Tensor) -> Tensor:
        return x.full_tensor() if hasattr(x, "full_tensor") else x

    def part(self, x: Tensor, like: Tensor) -> Tensor:
        from torch.distributed.tensor import Replicate, distribute_tensor

        if not hasattr(like, "placements") or not x.ndim:
            return x
        placements = like.placements if x.shape == like.shape else [Replicate()]
        return distribute_tensor(x.to(like.device), like.device_mesh, placements, src_data_rank=None)

    def write_model(self, model: nn.Module, path: Path) -> None:
        state = weights.plain(model).state_dict(keep_vars=True)
        whole = {id(x): self.full(x.detach()) for x in state.values()}
        tied = {name: whole[id(x)] for name, x in state.items()}
        super().write_model(SimpleNamespace(state_dict=lambda: tied), path)

    @torch.no_grad()
    def read_model(self, model: nn.Module, path: Path) -> None:
        state = weights.plain(model).state_dict(keep_vars=True)
        with weights.opened(path) as file:
            for name in file.keys():
                state[name].copy_(self.part(file.get_tensor(name), state[name]))

    def write_state(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super().write_state(path, {name: self.full(x) for name, x in tensors.items()}, facts)


TEAMS = {"ddp": Copies, "fsdp": Shards}
"""How the processes of one run divide the work, as `train.parallel` names it."""
