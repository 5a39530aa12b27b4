"""Models of other libraries, in and out."""

from .family import Family

__all__ = ["Family"]
