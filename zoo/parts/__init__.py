"""The contracts of the slots that make up a model: all that a part imports, with `zoo.tasks` for the other slots."""

from zoo.declare.shape import Shape
from zoo.declare.signature import Divides, EvenShare, FilePath, Grows, Part

from .cache import Cache
from .context import AttentionContext, Mask
from .contracts import (
    Absent,
    Architecture,
    Attention,
    Embedding,
    Kernel,
    OutLinear,
    Place,
    Residual,
)
from .position import Position, doors

__all__ = [
    "Absent", "Architecture", "Attention", "AttentionContext", "Cache", "Divides", "Embedding", "EvenShare",
    "FilePath", "Grows", "Kernel", "Mask", "OutLinear", "Part", "Place", "Position", "Residual", "Shape", "doors",
]  # fmt: skip
