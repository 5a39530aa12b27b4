"""The page in Chromium: sorted, filtered, pointed at, read by axe, in light and dark, wide, narrow and on paper.

Needs the extra `browser` and a Chromium that is installed.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from support.pages import HOSTILE, curve, sweep
from support.tables import run, table

from zoo.reporting import to_html

pytestmark = pytest.mark.exhaustive
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE, NARROW = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the extra 'browser' has it")
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(CHROMIUM)} is installed")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def show(browser, tmp_path):
    """Open a page from a file; what it logs, loads or asks beyond that fails the test."""
    opened = []

    def show(text, size=WIDE, scheme="light", **options):
        path = tmp_path / f"page {len(opened)}.html"
        path.write_text(text)
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **options)
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        opened.append((context, said))
        return page

    yield show
    for context, said in opened:
        context.close()
        assert said == []


def column(page, head):
    """The cells under a head of the table of results, and the names beside them."""
    return page.evaluate(
        """head => {
          const table = document.getElementById("results");
          const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === head);
          return [...table.tBodies[0].rows].map((row) => [row.cells[0].textContent, row.cells[at].textContent]);
        }""",
        head,
    )


def test_a_click_sorts_and_what_has_no_value_stays_last(show, tmp_path):
    page = show(to_html(sweep(tmp_path)))
    head = page.locator("#results").get_by_role("button", name="difference [95 %]")
    orders = []
    for _ in range(2):
        head.click()
        orders.append([name for name, _ in column(page, "difference [95 %]")])
    assert orders[0] == ["better", "close", "bar", "worse", "base", "lost", "refused"]
    assert orders[1] == ["worse", "bar", "close", "better", "base", "lost", "refused"]
    assert page.locator("th[aria-sort]").count() == 1
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("difference")


def test_numbers_sort_as_numbers(show, tmp_path):
    """1.0 KiB and 512 B, 10,000 and 9,000: as texts they would stand the other way round."""
    model = {"kv_bytes_per_token": 0, "parameters": 0}
    facts = {"large": (10_000, 2048), "small": (9_000, 512), "middle": (9_500, 1024)}
    rows = {n: [run(0, 2.0, model=model | {"parameters": p, "kv_bytes_per_token": k})] for n, (p, k) in facts.items()}
    page = show(to_html(table(tmp_path, rows)))
    for head in ("parameters", "KV/token"):
        page.get_by_role("button", name=head).first.click()
        assert [name for name, _ in column(page, head)] == ["small", "middle", "large"]


def test_the_keyboard_sorts_too(show, tmp_path):
    page = show(to_html(sweep(tmp_path)))
    page.locator("#results button").first.focus()
    page.keyboard.press("Enter")
    names = [name for name, _ in column(page, "variant")]
    assert names == sorted(names)
    page.keyboard.press("Space")
    assert [name for name, _ in column(page, "variant")] == sorted(names, reverse=True)


def test_a_filter_leaves_the_rows_that_have_all_its_words(show, tmp_path):
    page = show(to_html(sweep(tmp_path)))
    field = page.get_by_label("Show rows with").first
    field.fill("POSITION lost")
    assert page.locator("#results tbody tr:visible").all_inner_texts()[0].startswith("lost")
    assert page.locator("#results tbody tr:visible").count() == 1
    assert page.locator("output").first.inner_text() == "1 of 7 rows"
    field.fill("")
    assert page.locator("#results tbody tr:visible").count() == 7


def test_a_point_says_what_it_is_to_the_mouse(show, tmp_path):
    page = show(to_html(sweep(tmp_path)))
    page.locator(".bars .mean").first.hover()
    tip = page.locator("#tip")
    assert tip.is_visible() and tip.inner_text().startswith("better: -0.2")
    page.mouse.move(0, 0)
    assert tip.is_hidden()
    page.locator(".series .point").first.hover()
    assert "step" in tip.inner_text()
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= WIDE[0]


def test_a_point_says_what_it_is_to_the_keyboard(show, tmp_path):
    page = show(to_html(sweep(tmp_path)))
    tip = page.locator("#tip")
    assert page.locator(".bars [tabindex='0']").count() == 1
    page.locator(".bars [tabindex='0']").focus()
    assert tip.is_visible() and tip.inner_text().startswith("better")
    page.keyboard.press("ArrowDown")
    assert tip.inner_text().startswith("close")
    page.keyboard.press("End")
    assert tip.inner_text().startswith("worse")
    page.keyboard.press("ArrowDown")
    assert tip.inner_text().startswith("worse")
    page.keyboard.press("Escape")
    assert tip.is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_axe_has_nothing_to_say(show, tmp_path, scheme, size):
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None:
        pytest.skip("axe is not installed: the extra 'browser' has it")
    page = show(to_html(sweep(tmp_path)), size, scheme)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    page.evaluate((Path(found.origin).parent / "axe.min.js").read_text())
    results = page.evaluate("axe.run()")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in results["violations"]] == []
    assert {"color-contrast", "td-headers-attr", "heading-order"} <= {each["id"] for each in results["passes"]}


def test_dark_is_dark(show, tmp_path):
    text = to_html(sweep(tmp_path))
    grounds = [show(text, scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
               for scheme in ("light", "dark")]  # fmt: skip
    assert grounds == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_only_tables_scroll_sideways(show, tmp_path, width):
    """With a name that has no place to break."""
    rows = {
        "base": [run(s, 2.0, curve=curve(2)) for s in range(2)],
        "x" * 300: [run(s, 2.1, curve=curve(2)) for s in range(2)],
    }
    page = show(to_html(table(tmp_path, rows, baseline="base")), (width, 800))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    heights = page.evaluate(
        "[...document.querySelectorAll('svg text')].map((text) => text.getBoundingClientRect().height)"
    )
    assert heights and min(heights) > 9  # no picture is shrunk with its letters


def test_without_scripts_all_is_there(show, tmp_path):
    page = show(to_html(sweep(tmp_path)), java_script_enabled=False)
    assert page.locator("#results tbody tr").count() == 7 and page.locator(".bars li").count() == 4
    assert page.get_by_label("Show rows with").first.is_hidden()


def test_on_paper_it_is_black_on_white_and_open(show, tmp_path):
    page = show(to_html(sweep(tmp_path)), scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("details:not([open])").count() == 0
    assert page.locator(".filter:visible").count() == 0


def test_hostile_names_are_read_and_do_nothing(show, tmp_path):
    rows = {
        HOSTILE: [run(s, 2.0 + s, curve=curve(2)) for s in range(2)],
        "b": [run(s, 1.9, curve=curve(2)) for s in range(2)],
    }
    page = show(to_html(table(tmp_path, rows, baseline="b")))
    assert page.locator("img").count() == 0
    page.locator(".bars .mean").first.hover()
    assert page.locator("#tip").inner_text().startswith(HOSTILE)
