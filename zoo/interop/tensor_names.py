"""Names of weights as rules that are read in both directions.

`theirs = ours [+ ours …] [: op …]`, one to a line. A rule that does not end in `.weight` or `.bias` serves both. `{i}`
is one number on both sides; a `{e}` that stands on our side alone counts a leading axis of theirs. A part that begins
with a dot stands beside the first one. Several tensors lie end to end along their first axis, or with `heads` turn by
turn, a head of each, or with `stride` a row of each; `T` then swaps the last two axes and `row` adds an axis of 1 in
front. The first rule for a tensor of ours names it; further ones are other names under which it may come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

TAIL = r"(?P<tail>\.weight|\.bias)?"
AFTER = {
    "T": (lambda x: x.transpose(-1, -2) if x.ndim > 1 else x,) * 2,
    "row": (lambda x: x[None], lambda x: x[0]),
}
"""What is done to a whole tensor, and what undoes it."""
TURNS = {"heads": lambda head_dim: head_dim, "stride": lambda head_dim: 1}
"""Rows of the smallest tensor that stand together where several tensors take turns, by the width of a head."""


@dataclass(frozen=True)
class Rule:
    theirs: str
    ours: tuple[str, ...]
    ops: tuple[str, ...] = ()


@dataclass
class Pair:
    """One tensor of theirs and ours that make it up: `ours[e][part]`, with one e unless it is stacked."""

    theirs: str
    ops: tuple[str, ...]
    ours: list[tuple[str, ...]] = field(default_factory=list)
    stacked: bool = False

    def names(self) -> Iterable[str]:
        return (name for parts in self.ours for name in parts)

    def join(self, tensors: Mapping[str, Tensor], head_dim: int) -> Tensor:
        """Their tensor from ours."""
        joined = [self.after(concat([tensors[n] for n in parts], self.block(head_dim)), 0) for parts in self.ours]
        return (torch.stack(joined) if self.stacked else joined[0]).contiguous()

    def split(self, theirs: Tensor, shapes: Mapping[str, torch.Size], head_dim: int) -> dict[str, Tensor]:
        """Ours from their tensor. Raises `ValueError` for one of another size."""
        out: dict[str, Tensor] = {}
        pieces = list(theirs) if self.stacked else [theirs]
        sizes = [[shapes[name] for name in parts] for parts in self.ours]
        block = self.block(head_dim)
        empty = [[torch.empty(shape, device="meta") for shape in each] for each in sizes]  # shapes, at no cost
        meta = [self.after(concat(tensors, block), 0) for tensors in empty]
        wanted = torch.Size([len(meta), *meta[0].shape]) if self.stacked else meta[0].shape
        if theirs.shape != wanted:
            raise ValueError(f"{self.theirs} is {list(theirs.shape)}; it should be {list(wanted)}")
        for piece, parts, ss in zip(pieces, self.ours, sizes, strict=True):
            out |= dict(zip(parts, split_tensor(self.after(piece, 1), ss, block), strict=True))
        return out

    def after(self, x: Tensor, way: int) -> Tensor:
        for op in self.ops if way == 0 else reversed(self.ops):
            x = AFTER[op][way](x) if op in AFTER else x
        return x

    def block(self, head_dim: int) -> int | None:
        return next((TURNS[op](head_dim) for op in self.ops if op in TURNS), None)


def count_turns(shapes: Sequence[torch.Size], block: int) -> int:
    """How often each tensor has its turn."""
    rows = min(shape[0] for shape in shapes)
    count = rows // block
    if rows % block or any(shape[0] % count for shape in shapes):
        raise ValueError(f"tensors of {[s[0] for s in shapes]} rows cannot take turns by {block}")
    return count


def concat(parts: Sequence[Tensor], block: int | None) -> Tensor:
    """Tensors end to end, or turn by turn."""
    if block is None or len(parts) == 1:
        return torch.cat(list(parts)) if len(parts) > 1 else parts[0]
    n = count_turns([x.shape for x in parts], block)
    return torch.cat([x.unflatten(0, (n, x.shape[0] // n)) for x in parts], 1).flatten(0, 1)


def split_tensor(whole: Tensor, shapes: Sequence[torch.Size], block: int | None) -> list[Tensor]:
    if block is None or len(shapes) == 1:
        return list(whole.split([shape[0] for shape in shapes])) if len(shapes) > 1 else [whole]
    n = count_turns(shapes, block)
    pieces = whole.unflatten(0, (n, whole.shape[0] // n)).split([shape[0] // n for shape in shapes], 1)
    return [piece.flatten(0, 1) for piece in pieces]


def read_rules(text: str) -> list[Rule]:
    """The rules of a text; `#` begins a comment. Raises `ValueError` for a line that is no rule."""
    rules = []
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        theirs, equals, rest = (part.strip() for part in line.partition("="))
        sources, _, ops = rest.partition(":")
        first, *more = (part.strip() for part in sources.split("+"))
        more = [first.rpartition(".")[0] + part if part.startswith(".") else part for part in more]
        unknown = [op for op in ops.split() if op not in (*AFTER, *TURNS)]
        if not (theirs and equals and first) or unknown:
            raise ValueError(f"'{line}' is no rule; write 'theirs = ours [+ ours …] [: {' '.join((*AFTER, *TURNS))}]'")
        rules.append(Rule(theirs, (first, *more), tuple(ops.split())))
    return rules


def compile_pattern(path: str, tail: str = TAIL) -> re.Pattern:
    """A path with `{i}` as a regular expression."""
    pieces = re.split(r"\{(\w+)\}", path)
    return re.compile("".join(re.escape(p) if n % 2 == 0 else rf"(?P<{p}>\d+)" for n, p in enumerate(pieces)) + tail)


def make_filler(found: re.Match) -> Callable[[str], str]:
    numbers = found.groupdict()
    tail = numbers.pop("tail", None) or ""
    return lambda path: re.sub(r"\{(\w+)\}", lambda m: numbers[m[1]], path) + tail


def pair_names(rules: Sequence[Rule], names: Iterable[str]) -> list[Pair]:
    """What the rules make of our names, in the order of the rules. Raises `ValueError` where they clash."""
    names = list(names)
    out: dict[str, Pair] = {}
    for rule in rules:
        known, stacked = compile_pattern(rule.ours[0]), "{e}" in rule.ours[0] and "{e}" not in rule.theirs
        for found in filter(None, map(known.fullmatch, names)):
            fill = make_filler(found)
            pair = out.setdefault(fill(rule.theirs), Pair(fill(rule.theirs), rule.ops, [], stacked))
            pair.ours.append(tuple(map(fill, rule.ours)))
            if len(pair.ours) > 1 and not stacked:
                raise ValueError(f"{pair.theirs} would be both {pair.ours[0][0]} and {pair.ours[1][0]}")
    missing = {n: p.theirs for p in out.values() for n in p.names() if n not in names}
    if missing:
        said = ", ".join(f"{theirs} needs {name}" for name, theirs in missing.items())
        raise ValueError(f"tensors of the model are missing: {said}")
    for pair in out.values():
        pair.ours.sort(key=lambda parts: [int(n) for n in re.findall(r"\d+", parts[0])])
    return list(out.values())
