"""The page about PyTorch: its code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "in-pytorch.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_the_code_on_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}

    with torch._dynamo.config.patch():  # what the page sets there is set back
        for block in blocks:
            exec(block, names)

    assert "SparseLinear(784, 300, connections=23520" in capsys.readouterr().out
    assert names["evolver"].steps_done == 24
