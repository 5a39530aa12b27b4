"""Claims as comparison.json holds them."""

from __future__ import annotations

from zoo.claims import FIGURES, Claim


def claim(way="better", row="a", than="b", of="bpb", on="test", than_on=None, better="lower", **sizes):
    on = None if of in FIGURES else on
    return Claim(row, way, than, of, better, "bits per byte", on, than_on or on, **sizes)
