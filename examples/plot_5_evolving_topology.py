"""
Watching a topology evolve
==========================

A recorder stores every change of the connections.  The animation shows how random connections leave
the frame of noise for the digits, and how the weights of those that remain there decrease.
"""

# %%
# Digits of 8 x 8 pixels, surrounded by pixels of noise without information.
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ratoon import SparseMLPClassifier
from ratoon.evolution import SET
from ratoon.report import ConnectivityAnimation
from ratoon.training.recorder import TopologyRecorder

digits, y = load_digits(return_X_y=True)
images = np.random.default_rng(0).uniform(0, 16, (len(y), 16, 16))
images[:, 4:12, 4:12] = digits.reshape(-1, 8, 8) + 0.1 * images[:, 4:12, 4:12]
X = images.reshape(len(y), -1)

recorder = TopologyRecorder(with_strength=True)
model = SparseMLPClassifier(
    (100,),
    density=0.05,
    evolution=SET(0.3, grown="zero"),
    solver="sgd",
    learning_rate_init=0.05,
    weight_decay=0.05,
    max_iter=40,
    callbacks=recorder,
    random_state=0,
).fit(X, y)

# %%
# Connections per pixel at the start and after every rewiring; then their strength, the summed
# magnitude of their weights, in which new connections, still weak, hardly count.
counts = ConnectivityAnimation.from_recorder(recorder, (16, 16))
film = ConnectivityAnimation.from_recorder(recorder, (16, 16), by="strength")
inside = np.zeros((16, 16), dtype=bool)
inside[4:12, 4:12] = True
for what, shares in (("connections", counts.shares(inside)), ("strength", film.shares(inside))):
    print(f"{what} at the digits: {shares[0]:.0%} at first, {shares[-1]:.0%} at the end")

# %%
# The strength as an animation, also saved as a file.
animation = film.animate()
animation.save(Path(tempfile.gettempdir()) / "evolving-topology.gif", writer="pillow")
