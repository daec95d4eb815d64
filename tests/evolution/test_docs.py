"""The examples on the pages about strategies run, and the pages have all sections."""

import re
from pathlib import Path

import pytest

from ratoon.evolution import STRATEGIES
from ratoon.testing import check_strategy
from tests.evolution.cases import evolve, network

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "methods").glob("*.md"))


def examples(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_on_a_page_runs(page):
    for code in examples(page):
        exec(compile(code, str(page), "exec"), {"__name__": "example"})


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_a_page_and_is_in_the_table(name):
    index = (DOCS / "methods" / "index.md").read_text()
    rows = [line for line in index.splitlines() if line.startswith(f"| `{name}` |")]
    [row] = [line for line in rows if "](" in line]  # others give figures
    page = DOCS / "methods" / re.search(r"\]\(([\w-]+\.md)\)", row)[1]
    text = page.read_text()
    for part in (
        "**Idea.**",
        "**Formula.**",
        "**Parameters.**",
        "**Cost.**",
        "**When.**",
        "**Reference",
    ):
        assert part in text, f"{page.name} lacks {part}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem
)
def test_every_page_has_all_sections_and_a_picture(page):
    text = page.read_text()
    for part in ("**Idea.**", "**Parameters.**", "**Cost.**", "**When.**", "**Reference"):
        assert part in text, f"{page.name} lacks {part}"
    [picture] = re.findall(r"!\[[^\]]+\]\((\S+\.svg)\)", text)
    drawn = (page.parent / picture).resolve()
    assert drawn.stem == page.stem
    assert drawn.read_text().startswith("<svg")


@pytest.fixture
def rich():
    code, *_ = examples(DOCS / "adding-a-strategy.md")
    before = dict(STRATEGIES)
    STRATEGIES.pop("rich", None)
    known = set(STRATEGIES)
    try:
        exec(compile(code, "adding-a-strategy.md", "exec"), {"__name__": "example"})
        [name] = set(STRATEGIES) - known
        yield name
    finally:
        STRATEGIES.clear()
        STRATEGIES.update(before)


def test_the_strategy_of_the_guide_is_twenty_lines():
    code, *_ = examples(DOCS / "adding-a-strategy.md")
    body = code[code.index("@dataclass") :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20


def test_the_strategy_of_the_guide_passes_every_check(rich):
    check_strategy(STRATEGIES[rich])


def test_the_strategy_of_the_guide_grows_at_hubs(rich):
    strategy = STRATEGIES[rich]()
    for step in evolve(strategy, network(), n_rewirings=1):
        for layer, rewiring in zip(step.layers, step.rewirings, strict=True):
            before = layer.topology.degrees()[0]
            grown = rewiring.topology.rows[rewiring.is_grown]
            assert before[grown].mean() > before.mean()
