"""
Text as sparse input
====================

Word counts are mostly zero.  They are passed as a SciPy matrix and never made dense, so time and
memory depend on the words that occur, not on the size of the vocabulary.
"""

# %%
# Sentences about two subjects, made from two overlapping vocabularies.
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from ratoon import SparseMLPClassifier
from ratoon.report import FeatureRankingDisplay

rng = np.random.default_rng(0)
common = ["the", "a", "of", "in", "with", "and", "was", "found", "after", "under"]
subjects = {
    "plants": ["cane", "root", "shoot", "leaf", "harvest", "soil", "sugar", "field"],
    "genes": ["probe", "chip", "tissue", "sample", "tumour", "protein", "marker", "assay"],
}
texts, labels = [], []
for _ in range(400):
    name = str(rng.choice(list(subjects)))
    other = next(one for one in subjects if one != name)
    parts = (rng.choice(subjects[name], 4), rng.choice(subjects[other], 2), rng.choice(common, 8))
    texts.append(" ".join(rng.permutation(np.concatenate(parts)).tolist()))
    labels.append(name)
print(f"{labels[0]}: {texts[0]}")

# %%
# One pipeline from text to class.
model = make_pipeline(
    TfidfVectorizer(),
    SparseMLPClassifier((100,), epsilon=5, max_iter=30, random_state=0),
)
print(f"accuracy: {cross_val_score(model, texts, labels, cv=3).mean():.2f}")

# %%
# The words with the strongest connections.
model.fit(texts, labels)
FeatureRankingDisplay.from_strength(
    model[-1].feature_importances_, names=model[0].get_feature_names_out(), top=20
).plot()
