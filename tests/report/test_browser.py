"""The page in a browser: clicks sort, filters filter, nothing is requested or refused."""

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.datasets import Dataset
from ratoon.report import write_report
from ratoon.report.comparison import Compared, write_comparison
from tests.report.browser import Browser, executable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(executable() is None, reason="no Chromium on this computer"),
]

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 30)).astype(np.float32)
    y = (rng.normal(size=200) > 0).astype(np.int64)
    x[:, :8] += 1.2 * y[:, None]
    data = Dataset(
        x,
        y,
        feature_names=tuple(f"gene{j}{HOSTILE}" for j in range(30)),
        sample_names=tuple(f"S{i}{HOSTILE if i % 50 == 0 else ''}" for i in range(200)),
        class_names=(f"ill{HOSTILE}", "well"),
        source=HOSTILE,
    )
    model = SparseMLPClassifier((20,), epsilon=5, max_iter=60, random_state=0)
    model.fit(data.take(range(80)))
    write_report(
        model,
        folder / "classes.html",
        data.take(range(80, 200)),
        held_out=True,
        training=data.take(range(80)),
        title=HOSTILE,
    )
    numbers = Dataset(x, x[:, 0].astype(np.float64), sample_names=data.sample_names)
    regressor = SparseMLPRegressor((10,), epsilon=3, max_iter=5, random_state=0)
    regressor.fit(numbers.take(range(100)))
    write_report(regressor, folder / "numbers.html", numbers)
    methods = [
        Compared("ratoon", [0.9, 0.8]),
        Compared(HOSTILE, [0.7, 0.9], (-0.05, -0.2, 0.1), 0.4, ("3",), [-0.2, 0.1]),
        Compared("ridge", [0.6, 0.5], (-0.3, float("nan"), float("nan")), None, ("20",), ()),
    ]
    how = {"reference": "difference to ratoon", "columns": ("seconds",), "title": HOSTILE}
    write_comparison(folder / "comparison.html", methods, **how)
    return folder


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


def column(browser, number):
    return browser.texts(f"table.samples tbody td:nth-child({number})")


@pytest.mark.parametrize("name", ["classes", "numbers", "comparison"])
@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_requested_refused_or_wider_than_the_screen(browser, pages, name, width):
    browser.resize(width, 900)
    browser.open(pages / f"{name}.html")
    assert browser.run("document.body.classList.contains('scripted')")
    assert browser.complaints == []
    assert browser.requests == []
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_check_finds_requests_and_refused_scripts(browser, tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">"
        "<img src='http://elsewhere.test/x.png'><script>nothing()</script>",
        "utf-8",
    )
    browser.open(page)
    assert any("Content Security Policy" in text for text in browser.complaints)
    assert browser.requests == ["http://elsewhere.test/x.png"]


def test_a_click_on_a_heading_sorts(browser, pages):
    browser.resize(1000, 900)
    browser.open(pages / "classes.html")
    margins = [float(text) for text in column(browser, 5)]
    assert margins[0] < 0
    assert len(margins) == 50
    browser.click("table.samples th:nth-child(4) button")
    found = [float(text.removesuffix(" %")) for text in column(browser, 4)]
    assert found == sorted(found)
    assert browser.texts("th[aria-sort]") == ["probability"]
    browser.click("table.samples th:nth-child(4) button")
    found = [float(text.removesuffix(" %")) for text in column(browser, 4)]
    assert found == sorted(found, reverse=True)
    browser.click("table.samples th:nth-child(1) button")
    names = [int(text[1:].split("<")[0]) for text in column(browser, 1)]
    assert names == list(range(80, 130))
    browser.click("#later")
    assert column(browser, 1)[0].startswith("S130")
    assert browser.texts("#page") == ["page 2 of 3"]


def test_all_samples_and_folded_parts_are_printed(browser, pages):
    browser.open(pages / "classes.html")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert len(column(browser, 1)) == 120
    assert browser.run("document.querySelectorAll('details:not([open])').length") == 0
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert len(column(browser, 1)) == 50
    assert browser.run("document.querySelectorAll('details[open]').length") == 0


def test_filters_filter(browser, pages):
    browser.open(pages / "classes.html")
    n_wrong = sum(
        text != other for text, other in zip(column(browser, 2), column(browser, 3), strict=True)
    )
    browser.click("#only-wrong")
    assert browser.texts("#shown") == [f"{n_wrong} of 120 samples"]
    rows = zip(column(browser, 2), column(browser, 3), strict=True)
    assert all(true != predicted for true, predicted in rows)
    browser.click("#only-wrong")
    browser.write_into("#find", "s15")
    assert sorted(text[:4] for text in column(browser, 1)) == [f"S15{k}" for k in range(10)]
    assert HOSTILE in " ".join(column(browser, 1))


def test_a_cell_of_the_confusion_matrix_lists_its_samples(browser, pages):
    browser.open(pages / "classes.html")
    [count] = browser.texts(".matrix td[data-row='0'][data-column='1'] b")
    browser.click(".matrix td[data-row='0'][data-column='1']")
    assert browser.texts("#shown") == [f"{count} of 120 samples"]
    assert set(column(browser, 2)) == {"well"}
    assert set(column(browser, 3)) == {f"ill{HOSTILE}"}


def test_a_drag_zooms_and_a_double_click_resets(browser, pages):
    browser.open(pages / "numbers.html")
    chart = "document.querySelector('#numbers svg.zoom')"
    whole = browser.run(f"{chart}.getAttribute('viewBox')")
    x, y, size = browser.run(
        f"(() => {{ {chart}.scrollIntoView({{behavior: 'instant'}});"
        f"const b = {chart}.getBoundingClientRect(); return [b.x, b.y, b.width]; }})()"
    )
    for kind, part in (("mousePressed", 0.3), ("mouseMoved", 0.5), ("mouseReleased", 0.6)):
        where = {"x": x + part * size, "y": y + part * size, "button": "left", "clickCount": 1}
        browser.page("Input.dispatchMouseEvent", type=kind, **where)
    assert browser.run(f"{chart}.getAttribute('viewBox')") != whole
    for clicks in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            where = {
                "x": x + 0.5 * size,
                "y": y + 0.5 * size,
                "button": "left",
                "clickCount": clicks,
            }
            browser.page("Input.dispatchMouseEvent", type=kind, **where)
    assert browser.run(f"{chart}.getAttribute('viewBox')") == whole


def test_the_heat_map_names_what_is_under_the_mouse(browser, pages):
    browser.open(pages / "classes.html")
    browser.run(
        "document.querySelector('.heat').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    x, y, width, height = browser.run(
        "(() => { const b = document.querySelector('.heat .cells').getBoundingClientRect();"
        "return [b.x, b.y, b.width, b.height]; })()"
    )
    browser.page("Input.dispatchMouseEvent", type="mouseMoved", x=x + width / 2, y=y + height / 3)
    assert "standard deviations" in browser.texts("#tip")[0]
    assert browser.run("document.getElementById('tip').hidden") is False


def test_a_legend_hides_a_class(browser, pages):
    browser.open(pages / "classes.html")
    browser.click("#maps .swatch[data-hide='c1']")
    hidden = "[...document.querySelectorAll('#maps .dot')].filter(e => e.style.display === 'none')"
    assert browser.run(f"{hidden}.length") > 20
    assert browser.run(f"{hidden}.every(e => e.classList.contains('c1'))")


def test_a_link_opens_a_folded_part(browser, pages):
    browser.open(pages / "classes.html")
    assert browser.run("document.getElementById('network').open") is False
    browser.click("nav a[href='#network']")
    assert browser.run("document.getElementById('network').open") is True


def test_the_table_of_a_comparison_sorts(browser, pages):
    browser.open(pages / "comparison.html")
    browser.click("table.sortable th:nth-child(5) button")
    assert browser.texts("table.sortable tbody th")[-2:] == [HOSTILE, "ridge"]
    browser.click("table.sortable th:nth-child(2) button")
    assert browser.texts("table.sortable tbody th") == ["ridge", HOSTILE, "ratoon"]


def test_without_scripts_everything_can_be_read(pages):
    with Browser(scripts=False) as browser:
        browser.open(pages / "classes.html")
        browser.page("Emulation.setScriptExecutionDisabled", value=False)
        assert not browser.run("document.body.classList.contains('scripted')")
        assert len(column(browser, 1)) == 50
        assert "the others need the page's script" in browser.run("document.body.innerText")
        assert "Drag over" not in browser.run("document.body.innerText")
