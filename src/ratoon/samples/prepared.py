"""Samples after a `Preparation`, and learning one from the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.preparation import Preparation, Prepare, group_means, is_raw, quantiles_of
from ratoon.samples.base import Rows, Samples
from ratoon.samples.in_memory import DenseSamples, SparseSamples
from ratoon.samples.on_disk import DiskRows, RowReader
from ratoon.samples.on_disk_csr import CsrReader, DiskCsrRows

_BLOCK_BYTES = 2 * 2**20
_PROBED_ROWS = 500


class PreparedReader:
    """Reads rows from disk and prepares them."""

    def __init__(self, reader: RowReader, preparation: Preparation) -> None:
        self.reader, self.preparation = reader, preparation
        self.shape, self.dtype = reader.shape, reader.dtype

    def take(self, rows: Rows) -> Array:
        """Read these rows, in this order."""
        return self.preparation.rows(self.reader.take(rows)).astype(self.dtype, copy=False)

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return the rows in a random order that is fast to read."""
        return self.reader.shuffled(rows, generator)


class _PreparedCsrReader:
    """Reads sparse rows from disk and prepares their values."""

    def __init__(self, reader: CsrReader, preparation: Preparation) -> None:
        self.reader, self.preparation = reader, preparation

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def take(self, rows: Rows) -> Any:
        found = self.reader.take(rows)
        values = self.preparation.stored(found.data)
        return scipy.sparse.csr_array((values, found.indices, found.indptr), shape=found.shape)


def prepared(
    x: Samples, preparation: Preparation | None, groups: Sequence[str] | None = None
) -> Samples:
    """Return samples after a preparation; those on disk are prepared when they are read."""
    if preparation is None:
        return x
    if isinstance(x, DiskRows) and preparation.centres:
        raise InvalidInputError(
            "groups of samples on disk cannot be centred.\n"
            "  Centre them in the file, or read the file into memory."
        )
    if x.is_sparse and not preparation.works_on_zeros:
        raise InvalidInputError(
            f"{', '.join(preparation.describe())}: this makes zeros non-zero, and the samples are"
            " sparse.\n  Pass a dense X (sparse=False), or leave that step out."
        )
    if isinstance(x, DiskCsrRows):
        reader: Any = _PreparedCsrReader(x.reader, preparation)
        return DiskCsrRows(reader, x.row_numbers)
    if isinstance(x, DiskRows):
        return DiskRows(PreparedReader(x.reader, preparation), x.row_numbers)
    if x.is_sparse:
        matrix = x.values()
        values = preparation.stored(matrix.data)
        parts = values, matrix.indices, matrix.indptr
        return SparseSamples(scipy.sparse.csr_array(parts, shape=matrix.shape))
    return DenseSamples(preparation.rows(x.dense(), groups))


def learn_preparation(
    x: Samples,
    prepare: Prepare,
    rows: Rows | None = None,
    groups: tuple[NDArray[np.int64], tuple[str, ...]] | None = None,
    group_column: str = "",
) -> Preparation:
    """Learn a preparation from the training rows.

    Parameters
    ----------
    x : Samples
        Samples as they were given.
    prepare : Prepare
        What to do.
    rows : ndarray of int64, optional
        The training rows; by default all.
    groups : (codes, names), optional
        Groups of all samples.
    group_column : str
        Where the groups come from, for messages and later files.

    Examples
    --------
    >>> x = DenseSamples(np.array([[100.0, 900.0], [300.0, 500.0]]))
    >>> learn_preparation(x, Prepare("auto", "quantile")).quantiles.round(1).tolist()
    [7.4, 9.4]
    """
    rows = np.arange(x.n_rows, dtype=np.int64) if rows is None else rows
    log2 = prepare.log2 == "yes" or (prepare.log2 == "auto" and is_raw(_probe(x, rows)))
    fill = None if x.is_sparse else _mean(x, rows)
    found = Preparation(log2, fill=fill)
    if prepare.normalize == "quantile":
        _refuse_sparse(x, "quantile normalisation")
        blocks = (found.rows(block) for _, block in _blocks(x, rows))
        found = Preparation(log2, quantiles_of(blocks, x.n_features), fill=fill)
    if not prepare.center_groups:
        return found
    if groups is None:
        raise InvalidInputError(
            "`prepare` asks to centre groups, and the groups are not known.\n"
            "  Pass groups= to fit, or a Dataset with groups."
        )
    _refuse_sparse(x, "centring groups")
    codes, names = groups
    used, inside = np.unique(codes[rows], return_inverse=True)
    kept = [names[code] for code in used]
    means, mean = group_means(
        ((found.rows(block), inside[part]) for part, block in _blocks(x, rows)),
        kept,
        x.n_features,
    )
    return Preparation(log2, found.quantiles, tuple(kept), means, mean, group_column, fill)


def _refuse_sparse(x: Samples, what: str) -> None:
    if x.is_sparse:
        raise InvalidInputError(
            f"{what} makes zeros non-zero, and the samples are sparse.\n"
            "  Pass a dense X (sparse=False), or leave that step out."
        )


def _probe(x: Samples, rows: Rows) -> Array:
    """Return values of some rows, evenly spaced; of sparse ones those that are stored."""
    some = rows[np.linspace(0, rows.size - 1, min(rows.size, _PROBED_ROWS)).astype(np.int64)]
    if x.is_sparse:
        return np.asarray(x[np.unique(some)].values().data, dtype=np.float64)
    return x.dense(np.unique(some)).astype(np.float64).ravel()


def _mean(x: Samples, rows: Rows) -> Array:
    total = np.zeros(x.n_features)
    for _, block in _blocks(x, rows):
        total += block.sum(axis=0, dtype=np.float64)
    return total / rows.size


def _blocks(x: Samples, rows: Rows) -> Iterator[tuple[slice, Array]]:
    size = max(1, _BLOCK_BYTES // (8 * max(x.n_features, 1)))
    for first in range(0, rows.size, size):
        part = slice(first, first + size)
        yield part, x.dense(rows[part])
