"""The processes that train one run together, and what each of them has of it.

Every process draws each batch whole and keeps its rows, so that the order of the data is that of one process. What
several compute differs from one by rounding, by dropout, and by auxiliary losses, which each process computes on its
own rows.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from zoo.model import weights
from zoo.tasks import Batch


class SingleProcess:
    """One process that has the run to itself: every collective operation returns what it is given."""

    rank = 0
    world_size = 1

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The module that batches go through in training. Its gradients are means over all processes."""
        return model

    def shard_batch(self, batch: Batch) -> Batch:
        """The rows of this process."""
        return batch

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum over all processes."""
        return x

    def broadcast(self, value: Any) -> Any:
        """The value that rank 0 has: what all must decide alike."""
        return value

    def all_gather(self, x: Tensor) -> Tensor:
        """The tensors of all processes, to be saved; `select_rank` gives each its own again."""
        return x

    def select_rank(self, gathered: Tensor) -> Tensor:
        return gathered

    def unshard(self, x: Tensor) -> Tensor:
        """All of a tensor of which each process may hold a shard."""
        return x

    def shard_like(self, x: Tensor, like: Tensor) -> Tensor:
        """What this process holds of a whole tensor, distributed as `like` is."""
        return x

    def write_model(self, model: nn.Module, path: Path) -> None:
        weights.write_model(model, path)

    def read_model(self, model: nn.Module, path: Path) -> None:
        weights.read_model(model, path)

    def write_state(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        weights.write_state(path, tensors, facts)


class DataParallel(SingleProcess):
    """Every process has the whole model and some rows: torch's `DistributedDataParallel`."""

    def __init__(self) -> None:
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        return nn.parallel.DistributedDataParallel(model)

    def shard_batch(self, batch: Batch) -> Batch:
        # Every n-th row and no block, so that rows which a task has sorted are spread evenly.
        mine = slice(self.rank, None, self.world_size)
        fields: dict[str, Any] = {k: v[mine] if isinstance(v, Tensor) else v for k, v in vars(batch).items()}
        return Batch(**fields)

    def all_reduce(self, x: Tensor) -> Tensor:
        dist.all_reduce(x := x.clone())
        return x

    def broadcast(self, value: Any) -> Any:
        dist.broadcast_object_list(values := [value])
        return values[0]

    def all_gather(self, x: Tensor) -> Tensor:
        gathered: list[Any] = [None] * self.world_size
        # As objects: the state of a random generator is small, lies on the CPU, and nccl takes tensors of a GPU alone.
        dist.all_gather_object(gathered, x)
        return torch.stack(gathered)

    def select_rank(self, gathered: Tensor) -> Tensor:
        return gathered[self.rank].clone()

    def write_model(self, model: nn.Module, path: Path) -> None:
        if self.rank == 0:
            weights.write_model(model, path)
        dist.barrier()  # nobody may read the file before it is whole

    def write_state(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        if self.rank == 0:
            weights.write_state(path, tensors, facts)


class FullyShardedDataParallel(DataParallel):
    """Every process has a shard of every tensor, and the whole of a layer while it computes: torch's `fully_shard`."""

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        from torch.distributed.fsdp import fully_shard

        from zoo.model.stack import Layer

        mesh = dist.init_device_mesh(device.type, (self.world_size,))
        for module in [*(m for m in model.modules() if isinstance(m, Layer)), model]:
            fully_shard(module, mesh=mesh)
        return model

    def unshard(self, x: Tensor) -> Tensor:
        return x.full_tensor() if hasattr(x, "full_tensor") else x

    def shard_like(self, x: Tensor, like: Tensor) -> Tensor:
        from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

        if not isinstance(like, DTensor) or not x.ndim:
            return x
        # An optimizer may keep a tensor of another shape than its parameter's; every process has all of that.
        placements = like.placements if x.shape == like.shape else [Replicate()]
        return distribute_tensor(x.to(like.device), like.device_mesh, placements, src_data_rank=None)

    def write_model(self, model: nn.Module, path: Path) -> None:
        state = weights.unwrap(model).state_dict(keep_vars=True)
        whole = {id(x): self.unshard(x.detach()) for x in state.values()}
        # Tied names must stand for one tensor here too: that is how `write_model` knows to write it once.
        tied = {name: whole[id(x)] for name, x in state.items()}
        super().write_model(cast(nn.Module, SimpleNamespace(state_dict=lambda: tied)), path)

    @torch.no_grad()
    def read_model(self, model: nn.Module, path: Path) -> None:
        state = weights.unwrap(model).state_dict(keep_vars=True)
        with weights.open_tensors(path) as file:
            for name in file.keys():
                state[name].copy_(self.shard_like(file.get_tensor(name), state[name]))

    def write_state(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        # All processes unshard, which is collective, before rank 0 alone writes.
        super().write_state(path, {name: self.unshard(x) for name, x in tensors.items()}, facts)


STRATEGIES: dict[str, type[DataParallel]] = {"ddp": DataParallel, "fsdp": FullyShardedDataParallel}
"""How the processes of one run divide the work, as `train.parallel` names it."""
