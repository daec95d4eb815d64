"""Pathways and edge lists become a first layer, and bad files are errors with the line."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier
from ratoon.datasets import Limits, groups_from_pairs, read_edge_list, read_gmt
from ratoon.errors import FormatError, InvalidInputError

NAMES = ("TP53", "MDM2", "EGFR", "KRAS", "ACTB")
GMT = "p53\thttp://x\tTP53\tmdm2\tGONE\nras\t\tKRAS\tEGFR\tKRAS\nlone\t-\tEGFR\n"


def test_gene_sets_become_columns(tmp_path):
    (tmp_path / "sets.gmt").write_text(GMT, encoding="utf-8")
    groups = read_gmt(tmp_path / "sets.gmt", NAMES)
    assert groups.names == ("p53", "ras", "lone")
    assert groups.n_unknown == 1
    assert_array_equal(
        groups.matrix.toarray(), [[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 0]]
    )
    assert groups.coverage == 0.8


def test_small_sets_can_be_ignored_and_gzip_is_read(tmp_path):
    (tmp_path / "sets.gmt.gz").write_bytes(gzip.compress(GMT.encode()))
    assert read_gmt(tmp_path / "sets.gmt.gz", NAMES, least=2).names == ("p53", "ras")


@pytest.mark.parametrize("separator", ["\t", ",", "  "])
def test_edge_lists_are_read_with_any_separator(tmp_path, separator):
    lines = [f"TP53{separator}p53", "# a remark", "", f"KRAS{separator}ras{separator}0.7"]
    (tmp_path / "edges.txt").write_text("\n".join(lines), encoding="utf-8")
    groups = read_edge_list(tmp_path / "edges.txt", NAMES)
    assert groups.names == ("p53", "ras")
    assert groups.matrix.nnz == 2


def test_a_network_starts_with_the_pathways_and_can_grow_others(tmp_path):
    (tmp_path / "sets.gmt").write_text(GMT, encoding="utf-8")
    groups = read_gmt(tmp_path / "sets.gmt", NAMES)
    x = np.random.default_rng(0).normal(size=(40, 5))
    y = x[:, 0] > 0
    given = {"topology": groups.topology(extra=4), "density": 0.5, "random_state": 0}
    fixed = SparseMLPClassifier((7,), max_iter=3, evolution="static", **given).fit(x, y)
    assert_array_equal(fixed.coefs_[0].toarray()[:, :3] != 0, groups.matrix.toarray() != 0)
    grown = SparseMLPClassifier((7,), max_iter=20, evolution="set", **given).fit(x, y)
    layer = grown.network_.layers[0]
    assert layer.n_connections == groups.matrix.nnz
    assert layer.topology.degrees()[1][3:].sum() > 0, "evolution uses the extra neurons"


@pytest.mark.parametrize(
    ("text", "said"),
    [(b"p53 TP53\n", "line 1 has 1 fields"), (b"p53\tx\tT\xff\n", "line 1 is not UTF-8")],
)
def test_damaged_gene_sets_are_errors_with_the_line(tmp_path, text, said):
    (tmp_path / "bad.gmt").write_bytes(text)
    with pytest.raises(FormatError, match=said):
        read_gmt(tmp_path / "bad.gmt", NAMES)


def test_a_line_with_one_word_is_not_an_edge(tmp_path):
    (tmp_path / "bad.txt").write_text("TP53\n", encoding="utf-8")
    with pytest.raises(FormatError, match="line 1 is not a pair"):
        read_edge_list(tmp_path / "bad.txt", NAMES)


def test_groups_without_any_known_feature_are_refused():
    with pytest.raises(InvalidInputError, match="'ENSG1' and 'TP53'"):
        groups_from_pairs([("ENSG1", "p53")], NAMES)


def test_limits_are_enforced(tmp_path):
    (tmp_path / "sets.gmt").write_text(GMT, encoding="utf-8")
    with pytest.raises(FormatError, match="limit"):
        read_gmt(tmp_path / "sets.gmt", NAMES, limits=Limits(line_bytes=10))
