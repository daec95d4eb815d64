"""Prior knowledge from files: which features belong to which group.

Two formats are read: GMT (one gene set per line: name, description, genes) and edge lists (one
``feature group`` pair per line).  `ratoon.initialise` and the estimators take the resulting matrix
as the topology of the first layer.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.datasets.files import Limits, read_lines
from ratoon.errors import FormatError, InvalidInputError
from ratoon.topology import Within


class NamedMatrix(scipy.sparse.csr_array):  # type: ignore[misc]
    """A topology whose first columns, the neurons, have names; estimators keep them.

    Examples
    --------
    >>> NamedMatrix(scipy.sparse.eye_array(3, 2), ("p53", "MYC")).names
    ('p53', 'MYC')
    """

    def __init__(self, matrix: Any, names: Sequence[str] = (), **how: Any) -> None:
        # SciPy makes results of operations with the class of their operand; those have no names.
        super().__init__(matrix, **how)
        self.names = tuple(names) if scipy.sparse.issparse(matrix) else ()


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """Which features belong to which group.

    Parameters
    ----------
    matrix : SciPy CSR array of shape (n_features, n_groups)
        1 where a feature belongs to a group: a topology for the first layer of a network, with
        one hidden neuron per group.
    names : tuple of str
        Names of the groups, in the order of the columns.
    n_unknown : int
        Number of group members in the file that are not among the features.
    """

    matrix: Any
    names: tuple[str, ...]
    n_unknown: int

    @property
    def coverage(self) -> float:
        """Fraction of the features that belong to at least one group."""
        return float(np.mean(np.diff(self.matrix.indptr) > 0))

    def topology(self, extra: int = 0) -> list[Any]:
        """Return a value for ``topology=`` of an estimator, with ``extra`` unconnected neurons.

        The network starts with only these connections; evolution may prune and grow others.
        Evolution can connect the extra neurons to any features.

        Examples
        --------
        >>> groups = groups_from_pairs([("a", "p1"), ("b", "p1"), ("c", "p2")], ("a", "b", "c"))
        >>> groups.topology(extra=2)[0].shape
        (3, 4)
        """
        n_features, n_groups = self.matrix.shape
        wide = self.matrix.copy()
        wide.resize((n_features, n_groups + extra))
        return [NamedMatrix(wide, self.names)]

    def within(self, density: float = 0.5) -> list[Any]:
        """Return the groups as a limit: the neuron of a group is connected only to its members.

        On average each neuron starts with a fraction ``density`` of its members, drawn at random;
        evolution moves connections only among members.

        Examples
        --------
        >>> groups = groups_from_pairs([("a", "p1"), ("b", "p1"), ("c", "p2")], ("a", "b", "c"))
        >>> groups.within(density=0.7)
        [Within(3 -> 2, 3 positions allowed, density 0.7)]
        """
        return [Within(self.matrix, density, names=self.names)]

    def __repr__(self) -> str:
        return (
            f"FeatureGroups({len(self.names)} groups over {self.matrix.shape[0]} features,"
            f" {self.matrix.nnz} memberships, {self.coverage:.0%} of the features covered)"
        )


def read_groups(
    path: str | os.PathLike[str],
    feature_names: Sequence[str],
    *,
    least: int = 1,
    limits: Limits | None = None,
) -> FeatureGroups:
    """Read groups: as GMT if the name ends in ``.gmt`` or ``.gmt.gz``, else as an edge list.

    The parameters are those of `read_gmt`.
    """
    name = Path(path).name.lower().removesuffix(".gz")
    reader = read_gmt if name.endswith(".gmt") else read_edge_list
    return reader(path, feature_names, least=least, limits=limits)


def read_gmt(
    path: str | os.PathLike[str],
    feature_names: Sequence[str],
    *,
    least: int = 1,
    limits: Limits | None = None,
) -> FeatureGroups:
    """Read gene sets in GMT format, gzipped or not.

    Parameters
    ----------
    path : path
        One set per line, separated by tabs: name, description, genes.
    feature_names : sequence of str
        Names of the features in the data.  They are compared exactly, then ignoring case.
    least : int
        Sets with fewer members among the features are ignored.
    limits : Limits, optional
        Limits on the file size and the line length.
    """
    source = Path(path)
    pairs = []
    for number, line in enumerate(read_lines(source, limits or Limits()), start=1):
        if not line.strip():
            continue
        fields = [field.strip() for field in _text(line, source, number).split("\t")]
        if len(fields) < 3:
            raise FormatError(
                f"{source}: line {number} has {len(fields)} fields separated by tabs; a gene set"
                f" needs a name, a description and at least one gene."
            )
        pairs += [(gene, fields[0]) for gene in fields[2:] if gene]
    return groups_from_pairs(pairs, feature_names, least=least, source=str(source))


def read_edge_list(
    path: str | os.PathLike[str],
    feature_names: Sequence[str],
    *,
    least: int = 1,
    limits: Limits | None = None,
) -> FeatureGroups:
    """Read pairs of a feature and a group, one per line, separated by a tab, comma or spaces.

    Lines that begin with ``#`` and fields after the second are ignored.  The parameters are those
    of `read_gmt`.
    """
    source = Path(path)
    pairs = []
    for number, line in enumerate(read_lines(source, limits or Limits()), start=1):
        text = _text(line, source, number)
        if not text.strip() or text.startswith("#"):
            continue
        separator = "\t" if "\t" in text else "," if "," in text else None
        fields = [field.strip() for field in text.split(separator)]
        if len(fields) < 2 or not fields[0] or not fields[1]:
            raise FormatError(
                f"{source}: line {number} is not a pair of a feature and a group: {text[:60]!r}."
            )
        pairs.append((fields[0], fields[1]))
    return groups_from_pairs(pairs, feature_names, least=least, source=str(source))


def groups_from_pairs(
    pairs: Sequence[tuple[str, str]],
    feature_names: Sequence[str],
    *,
    least: int = 1,
    source: str = "pairs",
) -> FeatureGroups:
    """Return the groups given by (feature, group) pairs; repeated pairs count once.

    Examples
    --------
    >>> groups_from_pairs([("TP53", "p53"), ("mdm2", "p53"), ("X", "p53")], ("MDM2", "TP53"))
    FeatureGroups(1 groups over 2 features, 2 memberships, 100% of the features covered)
    """
    places = {name: place for place, name in enumerate(feature_names)}
    folded = {name.casefold(): place for name, place in places.items()}
    groups: dict[str, set[int]] = {}
    n_unknown = 0
    for feature, group in pairs:
        place = places.get(feature, folded.get(feature.casefold()))
        if place is None:
            n_unknown += 1
            continue
        groups.setdefault(group, set()).add(place)
    kept = {name: sorted(members) for name, members in groups.items() if len(members) >= least}
    if not kept:
        example = f"{pairs[0][0]!r} and {feature_names[0]!r}" if pairs and feature_names else "none"
        raise InvalidInputError(
            f"{source}: no group has {least} or more members among the {len(feature_names)}"
            f" features.\n  Do both use the same names? The file and the data have {example}."
        )
    rows: NDArray[np.int64] = np.concatenate([np.array(members) for members in kept.values()])
    columns = np.repeat(np.arange(len(kept)), [len(members) for members in kept.values()])
    shape = (len(feature_names), len(kept))
    ones = np.ones(rows.size, dtype=np.float32)
    matrix = scipy.sparse.coo_array((ones, (rows, columns)), shape=shape).tocsr()
    return FeatureGroups(matrix, tuple(kept), n_unknown)


def _text(line: bytes, source: Path, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(
            f"{source}: line {number} is not UTF-8 text; save the file as UTF-8."
        ) from None
