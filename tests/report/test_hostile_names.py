"""Names that look like formulas are drawn as they are."""

import matplotlib.pyplot as plt
import pytest

from ratoon.report import ConfusionMatrixDisplay, FeatureRankingDisplay
from ratoon.report.style import picture_bytes

NAMES = ["$\\frac{$", "x_$y^{$", "a$b"]


@pytest.mark.parametrize(
    "display",
    [
        FeatureRankingDisplay.from_strength([0.5, 0.3, 0.2], names=NAMES),
        ConfusionMatrixDisplay.from_predictions(NAMES, NAMES),
    ],
)
def test_dollar_signs_in_names_are_drawn(display):
    figure = display.plot().figure_
    assert picture_bytes(figure, ".png", dpi=50).startswith(b"\x89PNG")
    plt.close(figure)
