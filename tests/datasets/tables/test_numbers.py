import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.datasets.tables.arrow import ArrowCells, arrow
from ratoon.datasets.tables.numbers import NotANumberError, parse_block

whole = st.integers(0, 10**9).map(str)
decimals = st.sampled_from(["", ".", ".5", ".000", ".0123", ".123456789"])
sign = st.sampled_from(["", "-"])
plain = st.tuples(sign, whole | st.just("00"), decimals).map("".join) | st.just("-.25")
scientific = st.floats(allow_nan=False).map(repr)
missing = st.sampled_from(["", "NA", "null", " ", '"NA"'])
quoted = plain.map('"{}"'.format)


def expected(cell):
    cell = cell.strip('" ')
    return float(cell) if cell not in ("", "NA", "null") else np.nan


@settings(deadline=None)
@given(
    st.lists(st.lists(plain | scientific | missing | quoted, min_size=1, max_size=9), min_size=1)
)
def test_every_cell_is_bitwise_equal_to_the_result_of_float(rows):
    block = "".join("\t".join(row) + "\n" for row in rows).encode()
    values, per_line = parse_block(block, b"\t")

    assert_array_equal(per_line, [len(row) for row in rows])
    wanted = np.array([expected(cell) for row in rows for cell in row])
    assert_array_equal(
        values.view(np.int64)[~np.isnan(wanted)], wanted.view(np.int64)[~np.isnan(wanted)]
    )
    assert_array_equal(np.isnan(values), np.isnan(wanted))


@pytest.mark.parametrize(
    "cell", ["high", "1.2.3", "1-2", "--1", "-", "1/2", "1_000", "0x10", "1,5", ".", "é", "12\x0b3"]
)
def test_a_cell_that_is_not_a_number_is_reported_with_its_index(cell):
    if cell in ("-", "."):  # what some files write for a missing value
        assert np.isnan(parse_block(f"1\t{cell}\n".encode(), b"\t")[0][1])
        return
    with pytest.raises(NotANumberError) as caught:
        parse_block(f"1\t2\n3\t{cell}\n".encode(), b"\t")
    assert caught.value.place == 3
    assert caught.value.cell == cell


def test_more_digits_than_float_can_hold_are_left_to_float():
    cells = ["1234567890123456789", "0.1234567890123456789", "-999999999999999.9"]
    values, _ = parse_block(("\t".join(cells) + "\n").encode(), b"\t")
    assert_array_equal(values, [float(cell) for cell in cells])


def test_pyarrow_reads_the_numbers_of_float_to_the_bit():
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    rng = np.random.default_rng(0)
    cells = [repr(value) for value in rng.lognormal(0, 50, size=3000).tolist()]
    cells += [f"{value:.{k % 17}f}" for k, value in enumerate(rng.normal(size=1500).tolist())]
    cells += [f"{value:.3e}" for value in rng.normal(size=480).tolist()]
    cells += [
        "",
        "NA",
        "nan",
        "1",
        "-0",
        "0.1",
        "-.5",
        "5.",
        "1e-320",
        "1e400",
        "123456789012345678",
        "None",
        "Missing",
        "#N/A",
        "?",
        "inf",
        "-inf",
        "7",
        "8",
        "9",
    ]
    block = "\n".join(",".join(cells[k : k + 10]) for k in range(0, len(cells), 10)) + "\n"
    quick = ArrowCells(arrow())(block.encode(), b",")
    expected = parse_block(block.encode(), b",")
    assert quick is not None
    for one, other in zip(quick, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("block", [b'"1",2\n', b"1,text\n", b"1_000,2\n", b"+1,2\n", b"1\x01,2\n"])
def test_blocks_that_pyarrow_cannot_read_are_left_to_the_own_parser(block):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    found = ArrowCells(arrow())(block, b",")
    if found is not None:
        for one, other in zip(found, parse_block(block, b","), strict=True):
            np.testing.assert_array_equal(one, other)
