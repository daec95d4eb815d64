"""Changes to the default recipe before members are fitted: samples, strengths, folds, layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from quality import measures, samples
from quality.apart import replaced
from quality.sets import Split
from ratoon.committee import fit as committee
from ratoon.committee import hidden, members, views


@dataclass(frozen=True)
class Change:
    """What stands in the place of what, and what is done to samples before anything else."""

    label: str = ""
    replacements: tuple[tuple[Any, str, Any], ...] = ()
    samples: Callable[[Split], Split] | None = None

    @contextmanager
    def made(self) -> Iterator[None]:
        """Have the replacements in place."""
        with ExitStack() as stack:
            for module, name, value in self.replacements:
                stack.enter_context(replaced(module, name, value))
            yield

    def of(self, parts: Split) -> Split:
        """Return the samples as changed."""
        return parts if self.samples is None else self.samples(parts)


def _with(label: str, module: Any, name: str, value: Any) -> Change:
    return Change(label, ((module, name, value),))


def _strength(label: str, measure: Any) -> Change:
    return _with(label, members, "f_statistic", measure)


def _strongest(number: int) -> Change:
    kept = partial(samples.strongest_only, n_kept=number)
    return Change(f"the {number} strongest features selected before", samples=kept)


CHANGES: dict[str, Change] = {
    "folds 2": _with("2 folds instead of 10", committee, "N_FOLDS", 2),
    "folds 5": _with("5 folds", committee, "N_FOLDS", 5),
    "rounds 3": _with("three rounds of folds", committee, "N_REPEATS", 3),
    "selected": _strongest(200),
    "selected 50": _strongest(50),
    "neurons 1000": _with(
        "1,000 neurons per hidden member instead of 4,000", hidden, "N_NEURONS", 1000
    ),
    "neurons 10000": _with("10,000 neurons", hidden, "N_NEURONS", 10_000),
    "inputs 5": _with("5 inputs per neuron instead of 10", hidden, "FAN_IN", 5),
    "inputs 20": _with("20 inputs", hidden, "FAN_IN", 20),
    "clip none": _with("z-scores not clipped", views, "CLIP", 1e6),
    "clip 2": _with("z-scores clipped at 2 instead of 3", views, "CLIP", 2.0),
    "clip 5": _with("z-scores clipped at 5", views, "CLIP", 5.0),
    "clip 10": _with("z-scores clipped at 10", views, "CLIP", 10.0),
    "rows": Change("every sample standardised first", samples=samples.rows_standardised),
    "ranks": Change("normal scores of ranks", samples=samples.ranks),
    "log": Change("logarithms of values", samples=samples.logarithms),
    "asinh": Change("asinh of z-scores", samples=samples.bent),
    "information": _strength("strength by mutual information (thirds)", measures.information),
    "before": _strength(
        "strength by the weights of a network before", measures.of_a_network_before
    ),
}
"""Changes that take a fit of their own, by name."""
