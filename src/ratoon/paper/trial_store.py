"""Results of trials, kept where a folder is given, so that a long experiment can be resumed.

Several tables of the paper look at the same trainings.  A training is done once: the store knows
it by its data, settings, method and seed, and hands back what came of it.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.paper.trial import Trial


@dataclass(frozen=True)
class TrialResult:
    """What a trial came to, without its network.

    Examples
    --------
    >>> result = TrialResult("SET", (4, 2), 6, 8, [0.5, 0.9, 0.7], [1], [1], [0.6, 0.5, 0.8])
    >>> result.best, result.last, result.chosen, result.density
    (0.9, 0.7, 0.7, 0.75)
    """

    method: str
    widths: tuple[int, ...]
    n_connections: int
    n_positions: int
    test_accuracy: list[float]
    test_predictions: list[int]
    test_labels: list[int]
    validation_scores: list[float] | None = None
    seconds: float = 0.0
    diverged: int | None = None

    @property
    def best(self) -> float:
        """Best test accuracy of all epochs: the paper's figure, optimistic."""
        return max(self.test_accuracy)

    @property
    def last(self) -> float:
        """Test accuracy after the last epoch."""
        return self.test_accuracy[-1]

    @property
    def chosen(self) -> float | None:
        """Test accuracy at the epoch that the validation rows chose."""
        if self.validation_scores is None:
            return None
        return self.test_accuracy[int(np.argmax(self.validation_scores))]

    @property
    def density(self) -> float:
        """Connections divided by positions."""
        return self.n_connections / self.n_positions


def result_of(trial: Trial, seconds: float) -> TrialResult:
    """Return what is kept of a trial that took so many seconds."""
    scores = trial.history.column("validation_score")
    return TrialResult(
        trial.name,
        trial.network.widths,
        trial.network.n_connections,
        trial.network.n_positions,
        trial.test_accuracy,
        np.asarray(trial.test_predictions).tolist(),
        np.asarray(trial.test_labels).tolist(),
        None if None in scores else scores,
        seconds,
        trial.diverged,
    )


@dataclass
class TrialStore:
    """Results by what they are results of: in memory, and in a folder where one is given.

    Examples
    --------
    >>> store = TrialStore()
    >>> store.put({"seed": 0}, TrialResult("SET", (4, 2), 6, 8, [0.5], [1], [1]))
    >>> store.get({"seed": 0}).last, store.get({"seed": 1})
    (0.5, None)
    """

    folder: Path | None = None
    _known: dict[str, TrialResult] = field(default_factory=dict, repr=False)

    def get(self, what: dict[str, Any]) -> TrialResult | None:
        """Return the result of a trial, if it is known."""
        key = _key(what)
        if key not in self._known and self.folder is not None:
            found = _read(self.folder / f"{key}.json", what)
            if found is not None:
                self._known[key] = found
        return self._known.get(key)

    def put(self, what: dict[str, Any], result: TrialResult) -> None:
        """Keep the result of a trial."""
        key = _key(what)
        self._known[key] = result
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        # Under another name first: a file that is there is whole.
        unfinished = self.folder / f"{key}.{os.getpid()}.tmp"
        text = json.dumps({"what": what, "result": asdict(result)})
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self.folder / f"{key}.json")


def _key(what: dict[str, Any]) -> str:
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _read(path: Path, what: dict[str, Any]) -> TrialResult | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["what"] != json.loads(json.dumps(what)):
            return None
        fields = {**found["result"], "widths": tuple(found["result"]["widths"])}
        return TrialResult(**fields)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # damaged or of another version: the trial is run again
