import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.datasets import read
from ratoon.errors import FormatError, InvalidInputError

DATA_SET = """^DATABASE = Geo
!Database_name = GEO
^DATASET = GDS1
!dataset_title = a data set
^SUBSET = GDS1_1
!subset_description = leukaemia
!subset_sample_id = GSM1,GSM3
!subset_type = disease state
^SUBSET = GDS1_2
!subset_description = healthy
!subset_sample_id = GSM2
!subset_type = disease state
^DATASET = GDS1
!dataset_table_begin
ID_REF\tIDENTIFIER\tGSM1\tGSM2\tGSM3
1007_s_at\tDDR1\t1.5\t2\t3
1053_at\tRFC2\t4\tnull\t6
!dataset_table_end
"""

FAMILY = """^SERIES = GSE1
!Series_title = a series
^PLATFORM = GPL1
!platform_table_begin
ID\tSymbol
p1\tDDR1
!platform_table_end
^SAMPLE = GSM1
!Sample_characteristics_ch1 = disease state: ill
!sample_table_begin
ID_REF\tVALUE\tABS_CALL
p1\t1.5\tP
p2\t2\tA
!sample_table_end
^SAMPLE = GSM2
!Sample_characteristics_ch1 = disease state: well
!sample_table_begin
ID_REF\tVALUE\tABS_CALL
p1\t3\tP
p2\t4\tA
!sample_table_end
"""


def test_a_data_set_has_its_subsets_as_labels(write):
    data = read(write("GDS1.soft", DATA_SET), label="disease state", missing="keep")
    assert_array_equal(data.X, np.array([[1.5, 4], [2, np.nan], [3, 6]], dtype="f4"))
    assert data.feature_names == ("1007_s_at", "1053_at")
    assert data.sample_names == ("GSM1", "GSM2", "GSM3")
    assert data.labels.tolist() == ["leukaemia", "healthy", "leukaemia"]


def test_a_family_has_one_table_per_sample(write):
    path = write("GSE1_family.soft.gz", gzip.compress(FAMILY.encode()))
    data = read(path, label="disease state")
    assert_array_equal(data.X, [[1.5, 2], [3, 4]])
    assert data.labels.tolist() == ["ill", "well"]
    assert any("disease state (2 values: ill, well)" in note for note in read(path).notes)


def test_an_unknown_field_lists_the_others(write):
    with pytest.raises(InvalidInputError, match="disease state"):
        read(write("a.soft", FAMILY), label="age")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FAMILY.replace("p1\t3", "p9\t3"), "other probes"),
        (FAMILY.replace("p1\t3\tP", "p1"), "1 cells, expected 2"),
        (FAMILY.replace("\t3\t", "\tabc\t"), "not a number"),
        (FAMILY.removesuffix("!sample_table_end\n"), "cut off"),
        (DATA_SET.removesuffix("!dataset_table_end\n"), "cut off"),
        (DATA_SET.replace("1007_s_at\tDDR1\t1.5", "1007_s_at\tDDR1"), "expected 3"),
        (DATA_SET.replace("IDENTIFIER", "x"), "expected ID_REF"),
        ("^SERIES = GSE1\n!Series_title = empty\n", "no table of values"),
    ],
)
def test_a_damaged_file_is_refused(write, text, message):
    with pytest.raises(FormatError, match=message):
        read(write("a.soft", text))
