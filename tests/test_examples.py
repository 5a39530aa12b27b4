"""The files in examples/ as they stand, and what was written of the published findings."""

from pathlib import Path

import pytest

from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library
from zoo.reporting.text import escape_markdown, one_line

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "examples").glob("*.yaml"))
REPORTS = ROOT / "reports"


def names(file: Path) -> list[str]:
    return list(open_library(file).documents[0].value["comparisons"])


EVIDENCE = names(ROOT / "examples/evidence.yaml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_example_can_be_run_as_it_is(file):
    library = open_library(file)
    for name in names(file):
        assert read_comparison(library, name).rows


@pytest.mark.parametrize("name", EVIDENCE)
def test_every_claim_stands_on_the_page_and_in_a_report_of_the_same_file(name):
    page, report = (path.read_text("utf-8") for path in (REPORTS / "evidence.md", REPORTS / name / "report.md"))
    claims = read_comparison(open_library(ROOT / "examples/evidence.yaml"), name).claims
    assert claims
    for claim in claims:
        assert escape_markdown(one_line(claim.words)) in report
        assert any(
            escape_markdown(one_line(claim.words)) in line and f"({name}/report.md)" in line
            for line in page.splitlines()
        )
    for picture in set(report.split("](")[1:]):
        assert not picture.split(")")[0].endswith(".png") or (REPORTS / name / picture.split(")")[0]).exists()


def test_one_command_makes_all_of_it():
    [line] = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("EVIDENCE")]
    assert sorted(line.partition("=")[2].split()) == sorted(EVIDENCE)


def test_what_is_made_of_it_names_every_comparison():
    text = (ROOT / "docs/evidence.md").read_text("utf-8")
    assert [name for name in EVIDENCE if f"(../reports/{name}/report.md)" not in text] == []
