"""The examples on the pages about strategies run, and the pages have all sections."""

import re
from pathlib import Path

import pytest

from ratoon.evolution import STRATEGIES
from tests.evolution import test_contract as contract

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
    [row] = [line for line in index.splitlines() if line.startswith(f"| `{name}` |")]
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
    [code] = examples(DOCS / "adding-a-strategy.md")
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
    [code] = examples(DOCS / "adding-a-strategy.md")
    body = code[code.index("@dataclass") :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20


@pytest.mark.parametrize(
    "check",
    [
        contract.test_connections_values_and_momentum_stay_together,
        contract.test_new_weights_are_finite_and_of_the_layer_s_type,
        contract.test_the_number_of_threads_changes_nothing,
        contract.test_the_arguments_of_a_strategy_are_not_changed,
        contract.test_a_layer_without_connections_can_be_rewired_among_others,
    ],
    ids=lambda check: check.__name__,
)
def test_the_strategy_of_the_guide_holds_to_the_contract(rich, check):
    check(STRATEGIES[rich]())


def test_the_strategy_of_the_guide_keeps_the_count_and_grows_at_hubs(rich):
    strategy = STRATEGIES[rich]()
    contract.test_the_number_of_connections_is_that_of_the_contract(rich, strategy)
    for layers, rewirings, _ in contract.evolve(strategy, contract.network(), n_rewirings=1):
        for layer, rewiring in zip(layers, rewirings, strict=True):
            before = layer.topology.degrees()[0]
            grown = rewiring.topology.rows[rewiring.is_grown]
            assert before[grown].mean() > before.mean()
