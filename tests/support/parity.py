"""The same weights in transformers and here, and how far apart their logits are.

`make parity` prints the table of reports/parity.md.
"""

from __future__ import annotations

import copy
import inspect
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file
from tabulate import tabulate

from support.published import MODELS, Row, V
from zoo import SpecError
from zoo.declare.library import open_library
from zoo.declare.shape import Shape
from zoo.declare.spec import ModelSpec, Node
from zoo.execute.trained import Trained
from zoo.interop import folders
from zoo.model.builder import build_on_meta

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

LIBRARY = open_library()
CLOSE = 1e-5
EXACT = 1e-12
"""In float64; the worst of all models is 1e-14."""
STEPS = 8
LENGTHS = (12, 9, 4)
SIDES = {"plain": None, "right": False, "left": True}


def reference(row: Row):
    """The model of transformers, every parameter moved."""
    cls = getattr(transformers, row.cls)
    torch.manual_seed(0)
    config = cls.config_class(**row.settings)
    model = cls._from_config(config, attn_implementation=row.attention, dtype=torch.float32).eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not name.endswith(row.fixed or "-"):
                p += torch.randn(p.shape, generator=random) * row.spread * (0.2 if p.ndim < 2 else p.shape[-1] ** -0.5)
        for name, x in model.named_buffers():
            if name in model.state_dict() and x.is_floating_point():
                x += torch.randn(x.shape, generator=random) * row.spread * 0.2
    return model


class Worlds:
    """Both models of a row, and the folder through which the second came from the first."""

    def __init__(self, name: str, folder):
        self.row, self.folder = MODELS[name], folder
        self.pad = self.row.settings.get("pad_token_id", 0)
        self.theirs = reference(self.row)
        self.theirs.save_pretrained(folder)
        self.taken = folders.import_model(folders.read_folder(folder), LIBRARY, self.row.family)
        self.ours = folders.load_model(self.taken, LIBRARY.registry)
        self.causal = self.ours.autoregressive and not self.ours.needs_source
        self.paired = self.ours.autoregressive and self.ours.needs_source

    @torch.no_grad()
    def there(self, ids, keep, target=None, model=None):
        """The logits of transformers: over `ids`, or over `target` after the source `ids`."""
        model = model or self.theirs
        known = inspect.signature(model.forward).parameters
        given = {"input_ids": ids, "attention_mask": keep.long()}
        if "position_ids" in known and self.row.positions == "told":
            given["position_ids"] = (keep.cumsum(1) - 1).clamp_min(0)
        if self.row.segments:
            given["token_type_ids"] = segments(ids)
        if target is not None:
            given["decoder_input_ids"] = target
        return model(**given).logits

    @torch.no_grad()
    def here(self, ids, keep, target=None):
        if target is not None:
            cache = self.ours.start(ids, keep, room=target.shape[1])
            return self.ours.step(cache, target)
        return self.ours.read(ids, keep=keep, segments=segments(ids) if self.row.segments else None)

    def serves(self, side: str) -> bool:
        """Whether transformers can be asked for this padding: where it counts pads as positions, not on the left."""
        return side != "left" or self.row.positions != "slots"

    def apart(self, side: str) -> float:
        """The largest difference of two logits over all real tokens."""
        ids, keep = batch(SIDES[side], self.pad)
        target = tokens(4, (len(ids), STEPS)) if self.paired else None
        there = self.there(ids, keep, target)
        here = self.here(ids, None if side == "plain" else keep, target)
        assert 0.3 < there.std() < 30, "logits that hardly differ, or differ by rounding, would prove nothing"
        real = keep if target is None else torch.ones_like(target, dtype=torch.bool)
        return float((there - here)[real].abs().max())

    @torch.no_grad()
    def apart_cached(self) -> float:
        """The largest difference of our logits of given tokens, read one by one or all at once, after padded rows.

        In float64, so that what is measured is the cache and not the order in which a processor adds. The pass at once
        is what `apart` holds to transformers.
        """
        ids, keep = batch(self.row.positions != "slots", self.pad)
        given = tokens(3, (len(ids), STEPS))
        ours = copy.deepcopy(self.ours).double()
        if self.paired:
            whole = ours.step(ours.start(ids, keep, room=STEPS), given)
            cache = ours.start(ids, keep, room=STEPS)
        else:
            every = torch.cat([keep, torch.ones_like(given, dtype=torch.bool)], 1)
            whole = ours.read(torch.cat([ids, given], 1), keep=every)[:, ids.shape[1] :]
            cache = ours.start(None, room=ids.shape[1] + STEPS)
            ours.step(cache, ids, keep)
        steps = [ours.step(cache, given[:, t : t + 1]) for t in range(STEPS)]
        return float((torch.cat(steps, 1) - whole).abs().max())

    @cached_property
    def exported(self) -> Path:
        """A folder that the second model was written to."""
        folder = self.folder / "exported"
        folders.export_model(self.taken.family, Trained(self.taken.spec, self.ours, LIBRARY), folder)
        return folder

    def changed(self) -> list[str]:
        """Tensors that are not in both folders to the last bit."""
        there, here = (load_file(folder / "model.safetensors") for folder in (self.folder, self.exported))
        there = {name: x for name, x in there.items() if not name.endswith(self.row.fixed or "-")}
        both = there.keys() & here.keys()
        return sorted({n for n in both if not torch.equal(there[n], here[n])} | there.keys() ^ here.keys())

    def apart_exported(self) -> float:
        """The largest difference that transformers finds between its model and the one that was written."""
        again = self.theirs.__class__.from_pretrained(self.exported, attn_implementation=self.row.attention).eval()
        ids, keep = batch(False, self.pad)
        target = tokens(4, (len(ids), STEPS)) if self.paired else None
        return float((self.there(ids, keep, target, again) - self.there(ids, keep, target)).abs().max())

    def notices(self, model: dict) -> bool:
        """Whether another model in place of ours would be seen: its names do not fit, or its logits differ."""
        spec, shape = read(model, self.taken.sizes)
        try:
            tensors = self.taken.family.import_tensors(
                folders.read_folder(self.folder).tensors, build_on_meta(spec, shape, LIBRARY.registry)
            )
        except SpecError:
            return True
        changed = copy.copy(self)
        changed.ours = folders.load_model(
            replace(self.taken, spec=spec, shape=shape, tensors=tensors), LIBRARY.registry
        )
        found = [changed.apart(side) for side in SIDES if self.serves(side)]
        return not max(found) <= CLOSE


def read(model: dict, sizes: dict) -> tuple[ModelSpec, Shape]:
    reader = LIBRARY.reader()
    spec, shape = reader.model(Node(model)), reader.shape(Node(sizes))
    reader.finish()
    return spec, shape


def slips(value, path: str = "") -> Iterator[tuple[str, object]]:
    """Every way in which one option of a part, or one part, is forgotten or wrong, and what the value then is."""
    if isinstance(value, list):
        for i, inner in enumerate(value):
            yield from ((where, [*value[:i], new, *value[i + 1 :]]) for where, new in slips(inner, f"{path}[{i}]"))
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        where = f"{path}.{key}".lstrip(".")
        if key != "name":
            yield f"no {where}", {k: v for k, v in value.items() if k != key}
        if isinstance(inner, bool):
            yield f"{where} turned", {**value, key: not inner}
        elif isinstance(inner, int | float):
            yield f"{where} doubled", {**value, key: inner * 2}
        yield from ((deeper, {**value, key: new}) for deeper, new in slips(inner, where))


def tokens(seed: int, size: tuple[int, int]) -> torch.Tensor:
    return torch.randint(4, V, size, generator=torch.Generator().manual_seed(seed))


def segments(ids: torch.Tensor) -> torch.Tensor:
    return (torch.arange(ids.shape[1]) % 3 == 1).long().expand_as(ids)


def batch(left: bool | None, pad: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [3, 12] and which of them are real: all, or rows of different lengths padded on one side."""
    ids, most = tokens(2, (len(LENGTHS), max(LENGTHS))), max(LENGTHS)
    keep = torch.ones_like(ids, dtype=torch.bool)
    for row, n in enumerate(LENGTHS if left is not None else ()):
        keep[row, slice(None, most - n) if left else slice(n, None)] = False
    return ids.masked_fill(~keep, pad), keep


def line(name: str, folder: Path) -> list[str]:
    """What the table says of a row."""
    both = Worlds(name, folder)
    count = sum(p.numel() for p in both.theirs.parameters())
    sides = [f"{both.apart(side):.0e}" if both.serves(side) else "-" for side in SIDES]
    cached = f"{both.apart_cached():.0e}" if both.ours.autoregressive else "-"
    same = "yes" if not both.changed() and both.apart_exported() == 0 else "no"
    return [name, both.row.family, both.row.cls, f"{count:,}", *sides, cached, same]


def main() -> None:
    headers = ["model", "family", "class of transformers", "parameters", *SIDES, "cached", "export"]
    with tempfile.TemporaryDirectory() as folder:
        lines = [line(name, Path(folder, name)) for name in MODELS]
    print(
        f"# Logits here and in transformers\n\n"
        f"The largest difference of any logit of a real token between transformers {transformers.__version__} (eager "
        f"attention, float32) and the same\nweights here, in small random models with every parameter moved: without "
        f"padding, padded on the right and on the left.\nCached: token by token through a cache against all at once, "
        f"both here, in float64. Export: what came in goes out with\nevery bit the same, and transformers reads it "
        f"with equal logits. At most {CLOSE:g} is allowed, and {EXACT:g} in float64.\n`make parity` writes this "
        f"file.\n"
    )
    align = ["left", "left", "left", *["right"] * (len(headers) - 3)]
    print(tabulate(lines, headers, tablefmt="github", colalign=align, disable_numparse=True))


if __name__ == "__main__":
    sys.exit(main())
