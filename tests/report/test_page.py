"""The report is one page that needs nothing else, in text and in a browser."""

import json
import os
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.datasets import Dataset
from ratoon.report import render_report, write_report
from ratoon.report.facts import evaluate

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Notes what is open, so that a tag left open is found."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.headings, self.outside = [], [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        for name in ("src", "href", "xlink:href"):
            if name in given and not given[name].startswith(("#", "data:")):
                self.outside.append(given[name])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 30)).astype(np.float32)
    y = (x[:, 3] > 0).astype(np.int64)
    names = tuple(f"<gene&{j}>" for j in range(30))
    return Dataset(x, y, feature_names=names, class_names=("ill", "well"), source="here.csv")


@pytest.fixture(scope="module")
def model(data):
    return SparseMLPClassifier(
        (40, 20), epsilon=3, max_iter=12, early_stopping=True, random_state=0
    ).fit(data.X, data.labels)


@pytest.fixture(scope="module")
def page(model, data):
    return render_report(model, data, command="ratoon train here.csv", held_out=False)


def test_every_tag_is_closed_and_every_name_is_used_once(page):
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))


def test_nothing_is_fetched_and_nothing_runs(page):
    outline = Outline()
    outline.feed(page)
    assert outline.outside == []
    assert "<script" not in page
    assert "url(http" not in page


def test_all_parts_are_there(page):
    outline = Outline()
    outline.feed(page)
    assert outline.headings == [
        "Confusion matrix",
        "Data",
        "Network",
        "Learning",
        "Degrees",
        "Strongest features",
        "Time",
        "How to reproduce it",
    ]


def test_names_from_files_cannot_write_into_the_page(page):
    assert "<gene" not in page
    assert "&lt;gene&amp;3&gt;" in page


def test_the_page_has_the_settings_and_the_data_of_its_score(page, model, data):
    assert "ratoon train here.csv" in page
    assert "random_state=0" in page
    assert "trained on these samples, so" in page
    assert "were held out" in render_report(model, data, held_out=True)


def test_pictures_use_the_text_colour_of_the_page(page):
    assert "currentColor" in page
    assert "#102938" not in page
    assert "prefers-color-scheme: dark" in page


def test_samples_without_labels_are_not_scored(model, data):
    assert evaluate(model, Dataset(data.X)) == {}


def test_a_class_never_seen_in_training_has_a_column(model, data):
    y = data.y.copy()
    y[:3] = 2
    odd = Dataset(data.X, y, class_names=("ill", "well", "odd"))
    display = evaluate(model, odd)["confusion"]
    assert display.class_names == ["ill", "well", "odd"]
    assert display.matrix[:, 2].sum() == 3


def test_a_regressor_reports_how_much_it_explains(data):
    model = SparseMLPRegressor((10,), epsilon=3, max_iter=5, random_state=0)
    model.fit(data.X, data.X[:, 0])
    text = render_report(model, Dataset(data.X, data.X[:, 0].astype(np.float64)))
    assert "R squared" in text


def test_a_page_without_curves_gives_the_reason(data):
    model = SparseMLPClassifier(solver="ridge", random_state=0).fit(data.X, data.labels)
    assert "solved in closed form, because" in render_report(model, data)
    model = SparseMLPClassifier((5,), epsilon=3, max_iter=1, random_state=0)
    assert "trained for one epoch" in render_report(model.fit(data.X, data.labels))


@pytest.fixture(scope="module")
def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    pytest.skip("no Chromium on this computer")


def opened(browser, page, tmp_path):
    """Return what a browser made of a page, what it complained of, and what the page asked for."""
    log = tmp_path / "net.json"
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",  # no request is answered
            f"--user-data-dir={tmp_path / 'profile'}",
            "--enable-logging=stderr",
            f"--log-net-log={log}",
            "--dump-dom",
            page.as_uri(),
        ],
        # A sanitizer that came along with ratoon is not to slow the browser down.
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    events = [event.get("params", {}) for event in json.loads(log.read_text("utf-8"))["events"]]
    # What the browser wants for itself has no page that initiated it.
    asked = {
        str(event["url"])
        for event in events
        if str(event.get("url", "")).startswith("http")
        and event.get("initiator") not in (None, "not an origin")
        and "google" not in event["url"]
    }
    return done.stdout, complaints, asked


@pytest.mark.slow
def test_a_browser_shows_the_page_without_errors_or_requests(browser, model, data, tmp_path):
    page = write_report(model, tmp_path / "report.html", data)
    text, complaints, asked = opened(browser, page, tmp_path)

    assert "How to reproduce it" in text
    assert text.count('role="img"') == text.count("<figure>") > 0
    assert complaints == []
    assert asked == set()


@pytest.mark.slow
def test_the_check_finds_requests(browser, tmp_path):
    page = tmp_path / "bad.html"
    page.write_text("<img src='http://elsewhere.test/x.png'><script>nothing()</script>", "utf-8")
    _, complaints, asked = opened(browser, page, tmp_path)
    assert complaints
    assert asked == {"http://elsewhere.test/x.png"}
