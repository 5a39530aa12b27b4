"""What a folder of runs holds, as typed records: each document has one reader, which raises `SpecError` alone."""

from .baseline import BaselineRecord, PastRow, read_baseline
from .comparison import (
    COMPARISON,
    ComparisonRecord,
    Drawn,
    Halved,
    HalvingRule,
    Matched,
    MetricRecord,
    RoundRecord,
    RowRecord,
    Seeded,
    TrialRecord,
    Tuning,
    read_comparison,
)  # fmt: skip
from .document import FORMAT, Unreadable, parse, plain, read, write
from .run import (
    FINISHED,
    RUN,
    Best,
    DataFacts,
    DecodeFacts,
    Kernels,
    Machine,
    ModelFacts,
    Plugins,
    Provenance,
    RunRecord,
    Start,
    TrainFacts,
    read_run,
)  # fmt: skip
from .speeds import SPEEDS, Clocked, RowSpeed, SpeedSet, SpeedsRecord

__all__ = [
    "BaselineRecord", "Best", "COMPARISON", "Clocked", "ComparisonRecord", "DOCUMENTS", "DataFacts", "DecodeFacts",
    "Drawn", "FINISHED", "FORMAT", "Halved", "HalvingRule", "Kernels", "Machine", "Matched", "MetricRecord",
    "ModelFacts", "PastRow", "Plugins", "Provenance", "RUN", "RoundRecord", "RowRecord", "RowSpeed", "RunRecord",
    "SPEEDS", "Seeded", "SpeedSet", "SpeedsRecord", "Start", "TrainFacts", "TrialRecord", "Tuning", "Unreadable",
    "parse", "plain", "read", "read_baseline", "read_comparison", "read_run", "write",
]  # fmt: skip

DOCUMENTS = (RunRecord, ComparisonRecord, SpeedsRecord, BaselineRecord)
