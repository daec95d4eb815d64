"""
Watching a topology evolve
==========================

A recorder keeps every change of the connections.  Played back, it shows how connections that began
at random leave the frame of noise and gather at the digits.
"""

# %%
# Digits of 8 x 8 pixels, and 8 x 8 pixels of noise around them that mean nothing.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation
from sklearn.datasets import load_digits

from ratoon import SparseMLPClassifier
from ratoon.evolution import SET
from ratoon.training.recorder import TopologyRecorder

digits, y = load_digits(return_X_y=True)
images = np.random.default_rng(0).uniform(0, 16, (len(y), 16, 16))
images[:, 4:12, 4:12] = digits.reshape(-1, 8, 8) + 0.1 * images[:, 4:12, 4:12]
X = images.reshape(len(y), -1)

recorder = TopologyRecorder()
model = SparseMLPClassifier(
    (100,),
    density=0.05,
    evolution=SET(0.3, grown="zero"),
    solver="sgd",
    learning_rate_init=0.05,
    weight_decay=0.01,
    max_iter=40,
    callbacks=recorder,
    random_state=0,
).fit(X, y)

# %%
# Connections per pixel at the start and after every rewiring.
frames = [np.bincount(layers[0] // 100, minlength=256) for _, layers in recorder.replay()]
inside = np.zeros((16, 16), dtype=bool)
inside[4:12, 4:12] = True
shares = [frame[inside.ravel()].sum() / frame.sum() for frame in frames]
print(f"connections at the digits: {shares[0]:.0%} at the start, {shares[-1]:.0%} at the end")

# %%
# The same as an animation.
figure, ax = plt.subplots(figsize=(4, 4), layout="constrained")
picture = ax.imshow(frames[0].reshape(16, 16), cmap="cividis", vmin=0, vmax=np.max(frames))
ax.set_axis_off()


def show(number):
    picture.set_data(frames[number].reshape(16, 16))
    ax.set_title(f"connections per pixel, rewiring {number}")


animation = FuncAnimation(figure, show, frames=len(frames), interval=150)
animation.save(Path(tempfile.gettempdir()) / "evolving-topology.gif", writer="pillow")
