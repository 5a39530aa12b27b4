"""Run folders to a table in every form, without torch: a table can be redrawn without a run."""

from __future__ import annotations

from .forms import FORMATS
from .forms.csv import to_csv, to_records
from .forms.html import to_html
from .forms.json import to_json
from .forms.markdown import to_markdown, to_plain
from .forms.terminal import Terminal
from .judging.baseline import save_baseline
from .judging.gate import FAIL_ON, Against, Gate, compare, is_unfinished
from .judging.verdict import Finding, findings
from .overviews import OVERVIEWS, Overview
from .pictures.canvas import NoPicture
from .reading import comparisons, read
from .table import Mean, Metric, Row, Run, Table
from .writing import main, write

__all__ = [
    "Against", "FAIL_ON", "FORMATS", "Finding", "Gate", "Mean", "Metric", "NoPicture", "OVERVIEWS", "Overview", "Row",
    "Run", "Table", "Terminal", "compare", "comparisons", "findings", "is_unfinished", "main", "read", "save_baseline",
    "to_csv", "to_html", "to_json", "to_markdown", "to_plain", "to_records", "write",
]  # fmt: skip
