"""One thread, and the table of ratios at the end."""

import torch
from race import ratios
from tabulate import tabulate

torch.set_num_threads(1)


def pytest_configure(config):
    config.option.benchmark_columns = ["median", "iqr", "rounds"]


def pytest_terminal_summary(terminalreporter):
    if ratios:
        headers = ["group", "what", "time", "quartiles", "as a multiple of"]
        terminalreporter.write_sep("-", "ratios, taken round by round")
        groups = list(dict.fromkeys(line[0] for line in ratios))
        lines = sorted(ratios, key=lambda line: groups.index(line[0]))
        terminalreporter.write_line(tabulate(lines, headers, disable_numparse=True))
