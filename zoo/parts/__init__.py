"""The contracts of the slots that make up a model: all that a part imports, with `zoo.tasks` for the other slots."""

from zoo.declare.shape import IDS, Shape
from zoo.declare.signature import Divides, EvenShare, FilePath, Grows, Part
from zoo.faults import nearest

from .cache import Cache, Cell, Uncached
from .context import AttentionContext, AuxiliaryLoss, Mask, Notes
from .contracts import (
    Architecture,
    Attention,
    Embedding,
    Kernel,
    NoStep,
    OutputProjection,
    Place,
    Residual,
)
from .generate import Choose, eval_mode, greedy
from .position import Position, required_support

__all__ = [
    "IDS", "Architecture", "Attention", "AttentionContext", "AuxiliaryLoss", "Cache", "Cell", "Choose", "Divides",
    "Embedding", "EvenShare", "FilePath", "Grows", "Kernel", "Mask", "NoStep", "Notes", "OutputProjection", "Part",
    "Place", "Position", "Residual", "Shape", "Uncached", "eval_mode", "greedy", "nearest", "required_support",
]  # fmt: skip
