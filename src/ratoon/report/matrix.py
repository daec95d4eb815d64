"""The confusion matrix as a table of a page, in the paper's layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.report.confusion import ConfusionMatrixDisplay


def matrix_rows(display: ConfusionMatrixDisplay) -> dict[str, Any]:
    """Return cells ready to be written: counts, shares and how strongly to colour them.

    Examples
    --------
    >>> display = ConfusionMatrixDisplay.from_predictions(["a", "b", "b"], ["a", "b", "a"])
    >>> table = matrix_rows(display)
    >>> [[cell["count"] for cell in row["cells"]] for row in table["rows"]]
    [[1, 1], [0, 1]]
    >>> table["accuracy"]["right"], table["rows"][0]["precision"]["right"]
    ('66.7 %', '50.0 %')
    """
    matrix, total = display.matrix, max(int(display.matrix.sum()), 1)
    of_class = np.maximum(matrix.sum(axis=0), 1)
    small = len(display.class_names) <= 8
    rows = [
        {
            "name": name,
            "cells": [
                {
                    "count": int(matrix[i, j]),
                    "share": f"{100 * matrix[i, j] / total:.1f} %" if small else "",
                    "right": i == j,
                    # In steps, so that the page needs no style of its own for every cell.
                    "tone": int(np.ceil(4 * matrix[i, j] / of_class[j])),
                }
                for j in range(len(display.class_names))
            ],
            "precision": _margin(display.precision[i]),
        }
        for i, name in enumerate(display.class_names)
    ]
    return {
        "names": list(display.class_names),
        "rows": rows,
        "recall": [_margin(value) for value in display.recall],
        "accuracy": _margin(display.accuracy),
    }


def _margin(value: float) -> dict[str, str]:
    if np.isnan(value):
        return {"right": "-", "wrong": ""}
    return {"right": f"{100 * value:.1f} %", "wrong": f"{100 * (1 - value):.1f} %"}
