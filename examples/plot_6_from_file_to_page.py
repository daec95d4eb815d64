"""
From a GEO file to a page
=========================

A GEO series matrix is read, a model trained, its genes ranked, a prediction explained, gene sets
tested, and everything written to one HTML page.
"""

# %%
# A file to work with: 90 samples of 600 genes in the format of GEO, and four gene sets.
import gzip
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from ratoon import SparseFeatureSelector, SparseMLPClassifier
from ratoon.datasets import make_microarray, read, read_gmt
from ratoon.explain import enrichment
from ratoon.report import ContributionDisplay, write_report

folder = Path(mkdtemp())
made, informative = make_microarray(90, 600, n_informative=24, effect=3.0, random_state=0)
quoted = [[f'"{name}"' for name in names] for names in (made.sample_names, made.feature_names)]
disease = [f'"disease: {label}"' for label in made.labels]
lines = [
    '!Series_title\t"An invented study"',
    "\t".join(["!Sample_geo_accession", *quoted[0]]),
    "\t".join(["!Sample_characteristics_ch1", *disease]),
    "!series_matrix_table_begin",
    "\t".join(['"ID_REF"', *quoted[0]]),
    *("\t".join([g, *map(str, row)]) for g, row in zip(quoted[1], made.X.T, strict=True)),
    "!series_matrix_table_end",
]
(folder / "GSE_series_matrix.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
sets = {"INFORMATIVE": informative[:12]}
sets |= {f"RANDOM_{k}": np.random.default_rng(k).choice(600, 12) for k in range(3)}
gmt = ["\t".join([name, "-", *(f"gene{j:03d}" for j in s)]) for name, s in sets.items()]
(folder / "sets.gmt").write_text("\n".join(gmt))

# %%
# From the file to the page.
data = read(folder / "GSE_series_matrix.txt.gz", label="disease")
train, test = data.take(range(60)), data.take(range(60, 90))
model = SparseMLPClassifier(random_state=0).fit(train)
print(f"test accuracy: {model.score(test, test.labels):.2f}; {model.ranking_}")
selector = SparseFeatureSelector(20, random_state=0).fit(train)
print(selector.stable_features())
why = model.explain(test)
ContributionDisplay.from_explanation(why, sample=0).plot()
found = enrichment(model.ranking_, read_gmt(folder / "sets.gmt", data.feature_names))
print([(row["set"], row["found"], f"{row['fdr_over']:.2g}") for row in found.top(2)])
extras = {"pathways": found}
write_report(model, folder / "page.html", test, held_out=True, selector=selector, extras=extras)
