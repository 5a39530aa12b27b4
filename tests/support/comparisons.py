"""Comparisons as a user would write them, read back."""

import textwrap

from support.files import write
from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library

SHAPE = "{d_model: 16, n_heads: 2, n_layers: 2, max_len: 32}"


BASE = f"""
shape: {SHAPE}
task: copy
train: {{steps: 3}}
"""


def comparison(tmp_path, body, *, base=BASE, head="", name="c", **given):
    """The comparison `c` of a file with this body, its shared settings from `base`."""
    path = write(tmp_path, f"{textwrap.dedent(head)}\ncomparisons:\n  {name}:\n" + textwrap.indent(base + body, "    "))
    return read_comparison(open_library(path, **given), name)
