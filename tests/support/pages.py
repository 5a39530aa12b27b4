"""Tables whose names and curves are hard to draw."""

from __future__ import annotations

from support.tables import run, table

HOSTILE = "</script></style></title><img src=x onerror=alert(1)>\"'&amp;{}<!--"


def curve(height, steps=(0, 50, 100)):
    return [{"kind": "dev", "step": step, "bpb": height + 2 - step / 50} for step in steps]


def sweep(out, seeds=6, **document):
    """A baseline, one row that is surely better, one that is surely worse, one close by, a bar, and two that are lost."""
    jitter = [0.003 * (seed % 3) for seed in range(seeds)]
    heights = {"base": 2.0, "better": 1.8, "worse": 2.3}
    rows = {
        name: [run(s, height + (1 + 0.1 * n) * jitter[s], curve=curve(height)) for s in range(seeds)]
        for n, (name, height) in enumerate(heights.items())
    }
    for n, runs in enumerate(rows.values()):
        for record, _ in runs:
            record["model"] = record["model"] | {"parameters": 100_000 + 9_000 * n}
    rows["close"] = [run(s, 2 + jitter[s] + 0.01 * (-1) ** s, curve=curve(2)) for s in range(seeds)]
    for record, _ in (each for runs in rows.values() for each in runs):
        record["metrics"]["x2"] = {"bpb": record["metrics"]["test"]["bpb"] + 0.3}
    rows["bar"] = [run(0, 2.1, train=None, model={})]
    rows["lost"] = [run(s, None, "diverged", reason="loss is NaN", curve=curve(5, (0, 50))) for s in range(seeds)]
    rows["refused"] = "kernel 'x' does not support softcap"
    said = {"is": "better", "than": "base", "on": "x2", "than_on": "x2", "of": "bpb", "better": "lower"}
    claims = [{"row": name, **said} for name in heights | {"close": 0} if name != "base"]
    return table(out, rows, baseline="base", test="paired-t", claims=claims, **document)
