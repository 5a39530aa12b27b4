"""The training loop: one model, one task, one seed, and a folder that can take it up again where it stopped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from zoo.declare.spec import PartSpec, Train
from zoo.faults import SpecError
from zoo.model import weights
from zoo.model.builder import bind
from zoo.parts import Notes
from zoo.record.folder import Run, peak_memory
from zoo.tasks import Batch, Task

from . import metrics
from .parallel import SingleProcess

EXPLODED = 3.0
"""A run has diverged when its loss stands at this many times the loss of its first step (at least 1 nat)."""
NARROW = 256
"""Narrower models lose by bfloat16 on a CPU: the small products of attention outweigh the large ones."""
SINGLE_PROCESS = SingleProcess()


@dataclass(frozen=True, kw_only=True)
class BoundTrain(Train):
    """Settings whose parts are factories: `optimizer(params=groups)`, and `schedule(steps=, warmup=)`, which gives the
    factor of each step.
    """

    optimizer: Callable[..., Optimizer] = field()
    schedule: Callable[..., Callable[[int], float]] = field()


def bind_settings(train: Train) -> BoundTrain:
    """The settings with factories in place of the parts that they name."""

    def factory(part: PartSpec) -> Callable[..., Any]:
        return lambda **given: bind(part, given)

    return BoundTrain(**{**vars(train), "optimizer": factory(train.optimizer), "schedule": factory(train.schedule)})


class Diverged(Exception):
    """The loss is no longer a number, or far above where it began."""


@dataclass
class Count:
    """How far a run is: all that it remembers besides tensors. Tokens are targets, each as much as it weighs."""

    step: int = 0
    tokens: float = 0.0
    seconds: float = 0.0
    timed_tokens: float = 0.0  # without the first step of every process: it warms up, or compiles
    timed_seconds: float = 0.0
    window_nll: float = 0.0  # since the last line of the curve
    window_tokens: float = 0.0
    window_seconds: float = 0.0
    window_auxiliary: float = 0.0  # times tokens
    first_loss: float | None = None
    best: dict[str, Any] | None = None


def train(
    model: nn.Module,
    task: Task,
    settings: BoundTrain,
    *,
    seed: int,
    folder: Run,
    tick: Callable[[dict], None] = lambda line: None,
    stop: Callable[[], bool] = lambda: False,
    strategy: SingleProcess = SINGLE_PROCESS,
) -> dict[str, Any]:
    """Train `model` on `task` as `settings` say, and leave it at its best weights on dev.

    Writes curve, best weights and, while unfinished, the state to resume from into `folder`; if a state is there it
    goes on from it, to the same bits as a run that never stopped; whoever records the result removes it. `tick` is
    given every line of the curve; `stop` is asked before each step; `strategy` says how several processes share the
    work, each of which calls this. Returns `status` (done, diverged or interrupted), `reason` and the parts `train`,
    `best` and `metrics` of the record. Losses are in nats per target, seconds of wall clock.
    """
    run = Training(model, task, settings, seed, folder, tick, strategy)
    run.resume()
    status, reason, metrics = "done", None, {}
    try:
        for _ in run.until(stop):
            run.advance()
        if run.count.step < run.steps:
            status = "interrupted"
        else:
            metrics = run.score()
    except Diverged as error:
        status, reason = "diverged", str(error)
    if status == "interrupted":
        run.save()
    model.eval()
    return {"status": status, "reason": reason, "train": run.summarise(), "best": run.count.best, "metrics": metrics}


class Training:
    """A run in progress."""

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        settings: BoundTrain,
        seed: int,
        folder: Run,
        tick: Callable[[dict], None],
        strategy: SingleProcess,
    ):
        self.device = choose_device(settings.device)
        self.precision = choose_precision(settings.precision, self.device, model)
        self.model = model.to(self.device)
        self.task, self.settings, self.folder, self.tick, self.strategy = task, settings, folder, tick, strategy
        if settings.compile:
            compile_layers(model)
        self.learner = strategy.wrap(self.model, self.device)
        self.steps = count_steps(settings, task)
        self.factor = settings.schedule(steps=self.steps, warmup=settings.warmup)
        self.optimizer = settings.optimizer(params=group_parameters(model))
        self.params = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.choices = None if task.choices is None else task.choices.to(self.device)
        self.eval_every = settings.eval_every or max(1, self.steps // 4)
        self.generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed + strategy.rank)  # each process has its own dropout
        self.count = Count()
        self.warm = False
        self.learner.train()

    def until(self, stop: Callable[[], bool]) -> Iterator[int]:
        """The steps that are left, with the state saved every so many seconds, until `stop()`."""
        saved = perf_counter()
        while self.count.step < self.steps and not self.strategy.broadcast(stop()):
            yield self.count.step
            due = self.strategy.broadcast(perf_counter() - saved >= self.settings.checkpoint_seconds)
            if due and self.count.step < self.steps:
                self.save()
                saved = perf_counter()

    def advance(self) -> None:
        """One step of the optimizer, and what is due after it. Raises `Diverged`."""
        began = perf_counter()
        norm, lr = self.update()
        last = self.count.step == self.steps
        if self.count.step % self.settings.log_every == 0 or last:
            self.log_train(norm, lr)
        if self.count.step % self.eval_every == 0 or last:
            self.log_dev()
        self.count.seconds += perf_counter() - began

    def update(self) -> tuple[float, float]:
        """Follow the gradient of the mean loss over all targets that count in all batches of this step, plus the
        mean of the batches' auxiliary losses.

        Returns the norm of that gradient before clipping, and the learning rate.
        """
        began, count, settings = perf_counter(), self.count, self.settings
        batches = [draw_batch(self.task, settings.batch_size, self.generator) for _ in range(settings.accumulate)]
        total = sum(float(batch.weight.sum()) for batch in batches)
        nll = auxiliary_loss = torch.zeros((), device=self.device)
        for batch in batches:
            part, extra = self.loss(self.strategy.shard_batch(batch).to(self.device))
            # Gradients are averaged over processes, and the loss is a sum over their rows: hence the factor.
            (self.strategy.world_size * part / total + extra / len(batches)).backward()
            nll = nll + part.detach()
            auxiliary_loss = auxiliary_loss + extra.detach() / len(batches)
        nll, auxiliary_loss = (
            self.strategy.all_reduce(nll),
            self.strategy.all_reduce(auxiliary_loss) / self.strategy.world_size,
        )
        # Without a clip the norm is still computed: the curve shows it, and a run that has no finite one has diverged.
        norm = float(self.strategy.unshard(nn.utils.clip_grad_norm_(self.params, settings.clip or math.inf)))
        loss = float(nll) / total
        count.first_loss = loss if count.first_loss is None else count.first_loss
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self.model.zero_grad()
            what = f"loss {loss}" if not math.isfinite(loss) else f"gradient norm {norm}"
            raise Diverged(f"{what} at step {count.step + 1}")
        lr = settings.lr * self.factor(count.step)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        self.model.zero_grad()
        self.tally(float(nll), float(auxiliary_loss), total, perf_counter() - began)
        return norm, lr

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The summed nats of a batch's targets, by their weights, and the auxiliary losses that the parts noted."""
        notes: Notes = []
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            logits = metrics.predict(self.learner, batch, notes)
        return metrics.loss(logits, batch, self.choices)[0], metrics.auxiliary_loss(notes)

    def tally(self, nll: float, auxiliary_loss: float, tokens: float, seconds: float) -> None:
        count = self.count
        count.step += 1
        count.tokens += tokens
        count.window_nll += nll
        count.window_auxiliary += auxiliary_loss * tokens
        count.window_tokens += tokens
        count.window_seconds += seconds
        if self.warm:
            count.timed_tokens += tokens
            count.timed_seconds += seconds
        self.warm = True

    def log_train(self, norm: float, lr: float) -> None:
        """The mean loss and auxiliary loss since the line before, and this step's gradient norm and rate."""
        count = self.count
        assert count.first_loss is not None  # there has been a step
        loss = count.window_nll / count.window_tokens
        speed = count.window_tokens / count.window_seconds
        extra = {"auxiliary_loss": count.window_auxiliary / count.window_tokens} if count.window_auxiliary else {}
        self.log(kind="train", loss=loss, **extra, lr=lr, grad_norm=norm, tokens_per_second=speed)
        count.window_nll = count.window_auxiliary = count.window_tokens = count.window_seconds = 0.0
        if loss > EXPLODED * max(count.first_loss, 1.0):
            raise Diverged(f"loss {loss:.3g} at step {count.step}, from {count.first_loss:.3g} at the first")

    def log_dev(self) -> None:
        """Score dev; keep the weights if they are the best so far. A number that is not finite is never the best."""
        found = self.strategy.broadcast(self.evaluate("dev"))
        self.log(kind="dev", **found)
        name = self.task.metrics[0]
        sign = -1.0 if metrics.metrics_of(self.task)[name].better == "higher" else 1.0
        best = self.count.best
        if math.isfinite(found[name]) and (best is None or sign * found[name] < sign * best["dev"][name]):
            self.count.best = {"step": self.count.step, "dev": found}
            self.strategy.write_model(self.model, self.folder.weights)

    def evaluate(self, split: str) -> dict[str, float]:
        """Metrics on a split, in float32, leaving no trace: neither the mode of the model nor a random number."""
        devices = [self.device] if self.device.type == "cuda" else []
        size = 2 * self.settings.batch_size
        with torch.random.fork_rng(devices=devices):
            return metrics.evaluate(self.model, self.task, split, batch_size=size, device=self.device)

    def score(self) -> dict[str, dict[str, float]]:
        """The metrics of the best weights. Raises `Diverged` if no evaluation gave a finite number."""
        if self.count.best is None:
            raise Diverged(f"no finite {self.task.metrics[0]} on dev")
        self.strategy.read_model(self.model, self.folder.weights)
        scored = {split: self.evaluate(split) for split in ("test", *self.task.probes)}
        return {"dev": self.count.best["dev"], **scored}

    def log(self, **line: Any) -> None:
        line = {"kind": line.pop("kind"), "step": self.count.step, **line}
        self.folder.log(line)
        self.tick(line)

    def summarise(self) -> dict[str, Any]:
        """The part `train` of the record."""
        count, per_pass = self.count, self.task.train_tokens
        peak = torch.cuda.max_memory_allocated() if self.device.type == "cuda" else peak_memory()
        return {
            "steps": count.step,
            "tokens": round(count.tokens),
            "epochs": count.tokens / per_pass if per_pass else None,
            "seconds": count.seconds,
            "tokens_per_second": count.timed_tokens / count.timed_seconds if count.timed_seconds else None,
            "peak_memory_bytes": peak,
            "precision": self.precision,
            "device": self.device.type,
        }

    def save(self) -> None:
        """Everything that the next step depends on."""
        tensors = {f"model.{name}": x for name, x in weights.list_tensors(self.model).items()}
        state, facts = weights.flatten(self.optimizer)
        tensors |= {f"optimizer.{name}": x for name, x in state.items()}
        tensors |= {
            "random.torch": self.strategy.all_gather(torch.get_rng_state()),
            "random.data": self.generator.get_state(),
        }
        if self.device.type == "cuda":
            tensors["random.cuda"] = self.strategy.all_gather(torch.cuda.get_rng_state(self.device))
        self.strategy.write_state(self.folder.resume, tensors, {"count": asdict(self.count), "optimizer": facts})

    def resume(self) -> None:
        """Go on from the saved state if there is one, else begin; the curve continues from there."""
        found = self.folder.resume.exists()
        if found:
            tensors, facts = weights.read_state(self.folder.resume)
            parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "random": {}}
            for key, x in tensors.items():
                part, _, name = key.partition(".")
                parts[part][name] = x
            self.restore(parts["model"], parts["optimizer"], facts["optimizer"])
            torch.set_rng_state(self.strategy.select_rank(parts["random"]["torch"]))
            self.generator.set_state(parts["random"]["data"])
            if "cuda" in parts["random"]:
                torch.cuda.set_rng_state(self.strategy.select_rank(parts["random"]["cuda"]), self.device)
            self.count = Count(**facts["count"])
        self.folder.trim(self.count.step if found else -1)
        self.log(kind="start", steps=self.steps)

    def restore(self, model: dict[str, Tensor], optimizer: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Put saved tensors into the model and the optimizer, as far as this process holds them."""
        own = weights.list_tensors(self.model)
        weights.load_tensors(
            self.model, {name: self.strategy.shard_like(x, own.get(name, x)) for name, x in model.items()}
        )
        like = {str(i): p for i, p in enumerate(self.params)}
        held = {name: self.strategy.shard_like(x, like[name.partition(".")[0]]) for name, x in optimizer.items()}
        weights.unflatten(self.optimizer, held, facts)


def group_parameters(model: nn.Module) -> list[dict]:
    """All trained parameters for an optimizer, each once: matrices, and what never decays (gains, biases)."""
    params = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in params if p.ndim >= 2]
    rest = [p for p in params if p.ndim < 2]
    return [group for group in ({"params": matrices}, {"params": rest, "weight_decay": 0.0}) if group["params"]]


def count_steps(settings: Train, task: Task) -> int:
    """The budget in steps; one in tokens counts what the batches of this task weigh on average."""
    if settings.steps is not None:
        return settings.steps
    assert settings.tokens is not None  # one of the two is the budget
    return max(1, math.ceil(settings.tokens / count_step_tokens(settings, task)))


def count_step_tokens(settings: Train, task: Task) -> float:
    """Targets of one step, each as much as it weighs: the mean over some batches."""
    probe = torch.Generator().manual_seed(0)
    weight = sum(float(draw_batch(task, settings.batch_size, probe).weight.sum()) for _ in range(16)) / 16
    return weight * settings.accumulate


def draw_batch(task: Task, size: int, generator: torch.Generator) -> Batch:
    """A training batch with at least one target that counts; one without would teach nothing and divide by zero."""
    for _ in range(100):
        batch = task.batch(size, generator)
        if batch.weight.sum() > 0:
            return batch
    raise ValueError(f"100 batches of {size} rows in a row held no target that counts")


def choose_device(name: str) -> torch.device:
    """The device that `name` asks for; "auto" is the fastest that there is. Raises `SpecError`."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        chosen = torch.device(name)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise SpecError(f"device '{name}' cannot be used: {str(error).splitlines()[0]}") from None
    return chosen


def choose_precision(name: str, device: torch.device, model: nn.Module) -> str:
    """fp32 or bf16; "auto" is bf16 where matrix units make it the faster one. Weights stay in float32 either way."""
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    capabilities: Callable[[], dict[str, Any]] = getattr(torch.cpu, "get_capabilities", dict)  # not in every torch
    units = capabilities().get("amx_bf16", False)
    width = getattr(getattr(model, "shape", None), "d_model", 0)
    return "bf16" if device.type == "cpu" and units and width >= NARROW else "fp32"


def compile_layers(model: nn.Module) -> None:
    """Compile layer by layer, in place: less to compile than the whole, and the names of the weights stay."""
    import torch._dynamo

    from zoo.model.stack import Layer

    torch._dynamo.config.capture_scalar_outputs = True  # or a part that reads a number from a tensor is many graphs
    layers: list[nn.Module] = [m for m in model.modules() if isinstance(m, Layer)]
    for module in layers or [model]:
        module.compile()
