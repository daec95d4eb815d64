"""The report is one page that needs nothing else and starts with the result."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.datasets import Dataset
from ratoon.report import render_report
from ratoon.report.context import ReportContext, predictions_of, with_predictions
from ratoon.report.page import json_block

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Notes what is open, so that a tag left open is found."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.headings, self.outside, self.scripts = [], [], [], [], []
        self.handlers = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.handlers += [name for name in given if name.startswith("on")]
        for name in ("src", "href", "xlink:href"):
            if name in given and not given[name].startswith(("#", "data:")):
                self.outside.append(given[name])
        if tag == "script":
            self.scripts.append(given.get("type"))
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


def outline_of(page):
    found = Outline()
    found.feed(page)
    return found


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
    outline = outline_of(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))


def test_nothing_is_fetched_and_only_the_script_of_the_page_can_run(page):
    outline = outline_of(page)
    assert outline.outside == []
    assert outline.handlers == []
    assert outline.scripts == ["application/json", "application/json", None]
    assert "url(http" not in page
    code = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert f"script-src &#39;sha256-{digest}&#39;" in policy
    assert "default-src &#39;none&#39;" in policy


def test_the_result_is_first_and_the_network_last(page):
    assert outline_of(page).headings == [
        "Confusion matrix",
        "Curves",
        "Samples",
        "Why these predictions",
        "Strongest features",
        "Heat map",
        "Maps of the samples",
        "Data",
        "Network",
        "Learning",
        "Degrees",
        "Time",
        "How to repeat it",
    ]
    assert page.index("balanced accuracy") < page.index("Confusion matrix</h2>")
    assert page.count("<details") == 5


def test_names_from_files_cannot_write_into_the_page(page):
    assert "<gene" not in page
    assert "&lt;gene&amp;3&gt;" in page
    assert "\\u003cgene\\u00263\\u003e" in page


def test_json_in_the_page_cannot_end_its_element():
    text = json_block({"a": "</script><script>x()</script><!-- &amp; \u2028"})
    assert not set("<>&\u2028") & set(text)


def test_the_page_has_the_settings_and_the_data_of_its_score(page, model, data):
    assert "ratoon train here.csv" in page
    assert "random_state=0" in page
    assert "samples were used for training, so" in page
    assert "were held out" in render_report(model, data, held_out=True)


def test_pictures_use_the_text_colour_of_the_page(page):
    assert "currentColor" in page
    assert "#102938" not in page
    assert "prefers-color-scheme: dark" in page


def test_samples_without_labels_are_not_scored(model, data):
    context = with_predictions(ReportContext(model, Dataset(data.X)))
    assert context.scores is None
    text = render_report(model, Dataset(data.X))
    assert "Confusion matrix" not in text
    assert "Maps of the samples" in text


def test_a_class_never_seen_in_training_has_a_column(model, data):
    y = data.y.copy()
    y[:3] = 2
    odd = Dataset(data.X, y, class_names=("ill", "well", "odd"))
    found = predictions_of(model, odd)
    assert found.classes == ("ill", "well", "odd")
    assert found.confusion()[:, 2].sum() == 3


def test_a_regressor_reports_how_much_it_explains(data):
    model = SparseMLPRegressor((10,), epsilon=3, max_iter=5, random_state=0)
    model.fit(data.X, data.X[:, 0])
    text = render_report(model, Dataset(data.X, data.X[:, 0].astype(np.float64)))
    assert "R squared" in text
    assert "Predicted against true values" in text


def test_a_page_without_curves_gives_the_reason(data):
    model = SparseMLPClassifier(solver="ridge", random_state=0).fit(data.X, data.labels)
    assert "solved in closed form, because" in render_report(model, data)
    model = SparseMLPClassifier((5,), epsilon=3, max_iter=1, random_state=0)
    assert "trained for one epoch" in render_report(model.fit(data.X, data.labels))
