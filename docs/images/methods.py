"""Draw the pictures of docs/methods: one rewiring of a small network by every strategy.

Nothing is drawn by hand: strategies themselves rewire two small layers, with weights and signals
made up so that inputs and outputs differ in how strong they are.

python docs/images/methods.py [folder]
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ratoon import SparseBernoulliRBM, evolution
from ratoon.evolution import Clock, LayerState, StatefulStrategy, find_ticket, start_state
from ratoon.initialise import seed_topologies
from ratoon.kernels.paths import best_by_paths
from ratoon.layers import make_layer
from ratoon.topology import Topology

BLUE, ORANGE, RED = "#0072B2", "#E69F00", "#D55E00"
CELL, GAP, TOP = 15, 46, 34
WIDTHS = (12, 16, 9)
CLOCK = Clock(step=20, steps_per_epoch=10, total_steps=100)

STRATEGIES = {
    "static": evolution.Static(),
    "set": evolution.SET(),
    "rigl": evolution.RigL(),
    "srigl": evolution.SRigL(gamma=0.6),
    "gse": evolution.GSE(),
    "mest": evolution.MEST(memory="soft"),
    "granet": evolution.GraNet(final=0.5, zeta=0.3),
    "snfs": evolution.SNFS(zeta=0.3),
    "cht": evolution.CHT(),
    "dsr": evolution.DSR(threshold=0.25),
    "deep-r": evolution.DeepR(alpha=20.0),
    "nest": evolution.NeST(peak=2.0),
    "wast": evolution.WAST(),
    "neurofs": evolution.NeuroFS(6),
    "neuron-pruning": evolution.NeuronPruning(warm_up=0.0, prune_every=1, percentile=25.0),
}
BY_GRADIENT = {"rigl", "srigl", "gse", "granet", "snfs", "nest", "neurofs"}


def network(name):
    """Return two layers; some inputs are strong, some errors are large, one neuron is weak."""
    rng = np.random.default_rng(1)
    shapes = list(pairwise(WIDTHS))
    topologies = [
        Topology.random(shape, round(0.3 * shape[0] * shape[1]), seed=5 + k)
        for k, shape in enumerate(shapes)
    ]
    if name == "nest":  # some hidden neurons are idle
        topologies = seed_topologies(WIDTHS, in_use=(11,), density=0.3, seed=3)
        idle = slice(11, None)
    strength = [np.exp(rng.normal(scale=0.8, size=(width, 1))) for width in WIDTHS]
    layers = []
    for k, (n_in, n_out) in enumerate(shapes):
        x = strength[k] * np.abs(rng.normal(size=(n_in, 3)))
        d = strength[k + 1] * rng.normal(size=(n_out, 3))
        if name == "nest":  # and neither say nor hear anything
            (x, d)[1 - k][idle] = 0.0
        weights = rng.normal(size=topologies[k].n_connections).astype(np.float32)
        momentum = (0.1 + k) * rng.normal(size=weights.size).astype(np.float32)
        signals = (x.astype(np.float32), d.astype(np.float32))
        layers.append(
            LayerState(
                topologies[k], weights, (momentum,), signals=lambda s=signals: s, learning_rate=0.01
            )
        )
    return layers


def rewired(strategy, layers):
    """Return the rewirings, after a look at the minibatch for strategies that watch."""
    state = start_state(strategy, layers, 0)
    if not isinstance(strategy, StatefulStrategy):
        return strategy.rewire(layers, CLOCK, 0)
    for _ in range(min(strategy.n_watched, 3)):
        state = strategy.watch(state, layers, CLOCK)
    return strategy.rewire_from(state, layers, CLOCK, 0)[0]


def square(x, y, fill, *, edge="none", opacity=1.0):
    """Return a square as its path, and how it looks."""
    size = CELL - 2
    return (fill, edge, round(opacity, 1)), f"M{x + 1} {y + 1}h{size}v{size}h-{size}z"


def text(x, y, words):
    return None, f'<text x="{x}" y="{y}">{words}</text>'


def grid(left, shape, old, new, looked_at, title):
    """Return the plane of a layer: inputs downwards, outputs to the right.

    ``old`` holds the places connected before, ``new`` those connected after, and whether they are
    new; ``looked_at`` is what empty places are shaded by.
    """
    n_in, n_out = shape
    parts = [text(left, 20, title)]
    shade = np.zeros(shape) if looked_at is None else np.sqrt(looked_at / looked_at.max())
    for i in range(n_in):
        for j in range(n_out):
            x, y, place = left + j * CELL, TOP + i * CELL, i * n_out + j
            parts.append(square(x, y, "#7F7F7F", opacity=0.1 + 0.6 * shade[i, j]))
            if place in new:
                parts.append(square(x, y, ORANGE if new[place] else BLUE, opacity=0.9))
            elif place in old:
                parts.append(square(x, y, "none", edge=RED))
    return parts


def legend(y, entries):
    parts, x = [], 0
    for words, fill, edge, opacity in entries:
        parts.append(square(x, y, fill, edge=edge, opacity=opacity))
        parts.append(text(x + CELL + 5, y + 12, words))
        x += CELL + 22 + round(6.4 * len(words))
    return parts


def save(path, parts, width, height):
    """Write all squares that look alike as one path: files a tenth as large."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-6 0 {width + 12} {height}"'
        f' width="{width + 12}" font-family="sans-serif" font-size="12">',
        f'<rect x="-6" width="{width + 12}" height="{height}" fill="white"/>',
    ]
    for look in sorted({look for look, _ in parts if look}):
        fill, edge, opacity = look
        path_of = "".join(part for other, part in parts if other == look)
        lines.append(
            f'<path fill="{fill}" fill-opacity="{opacity}" stroke="{edge}" d="{path_of}"/>'
        )
    lines += [part for look, part in parts if look is None]
    path.write_text("\n".join([*lines, "</svg>", ""]))


def scores_by_paths(layer, rewiring):
    """Return the path scores that a rewiring by CHT has chosen by."""
    scores = np.zeros(layer.topology.shape)
    kept = np.sort(rewiring.origin[~rewiring.is_grown])
    found, values = best_by_paths(layer.topology, kept, "ch3_l3p", scores.size)
    scores.ravel()[found] = values
    return scores


def draw(name, strategy, folder):
    layers = network(name)
    parts, left = [], 0
    for number, (layer, rewiring) in enumerate(
        zip(layers, rewired(strategy, layers), strict=True), 1
    ):
        x, d = layer.signals()
        old = set(layer.topology.positions.tolist())
        new = dict(
            zip(rewiring.topology.positions.tolist(), rewiring.is_grown.tolist(), strict=True)
        )
        change = f", then {len(new)}" if len(new) != len(old) else ""
        title = f"layer {number}: {len(old)}{change}"
        looked_at = np.abs(x @ d.T) if name in BY_GRADIENT else None
        if name == "cht":
            looked_at = scores_by_paths(layer, rewiring)
        parts += grid(left, layer.topology.shape, old, new, looked_at, title)
        left += layer.topology.shape[1] * CELL + GAP
    low = TOP + max(WIDTHS[:2]) * CELL + 14
    entries = [
        ("stays", BLUE, "none", 0.9),
        ("goes", "none", RED, 1.0),
        ("comes", ORANGE, "none", 0.9),
    ]
    if name in BY_GRADIENT or name == "cht":
        what = "score" if name == "cht" else "gradient"
        entries.append((f"empty; the darker, the larger the {what}", "#7F7F7F", "none", 0.4))
    parts += legend(low, entries)
    save(folder / f"{name}.svg", parts, max(left - GAP, 440), low + CELL + 8)


def draw_tickets(folder):
    rng = np.random.default_rng(0)

    def train(layers):
        for layer in layers:
            layer.weights += rng.normal(scale=0.3, size=layer.weights.size).astype(np.float32)

    layers = [make_layer((12, 10), density=1.0, seed=0), make_layer((10, 3), density=1.0, seed=1)]
    parts, left, before = [], 0, None
    for number, found in enumerate(find_ticket(layers, train, rounds=6, zeta=0.35)[::2], 1):
        topology = found.ticket[0].topology
        new = dict.fromkeys(topology.positions.tolist(), False)
        old = set(new) if before is None else before
        title = f"round {2 * number - 1}: {topology.density:.0%}"
        parts += grid(left, topology.shape, old, new, None, title)
        before, left = set(new), left + topology.shape[1] * CELL + GAP
    low = TOP + 12 * CELL + 14
    parts += legend(
        low,
        [("stays, at its first weight", BLUE, "none", 0.9), ("went since", "none", RED, 1.0)],
    )
    save(folder / "lottery-ticket.svg", parts, left - GAP, low + CELL + 8)


def draw_machine(folder):
    """Draw digits, what a machine restores of them, and where its connections are."""
    images = (load_digits().data >= 8).astype(np.float32)
    rbm = SparseBernoulliRBM(256, epsilon=4, n_iter=20, random_state=0).fit(images[:1200])
    shown = images[[1205, 1210, 1217]]
    degrees = np.diff(rbm.components_.tocsc().indptr)
    rows = [
        [("held out", shown[0]), ("held out", shown[1]), ("held out", shown[2])],
        [("restored", image) for image in rbm.reconstruct(shown)],
    ]
    parts = []
    for down, row in enumerate(rows):
        for across, (title, image) in enumerate(row):
            parts += picture(across * (8 * CELL + 30), down * (8 * CELL + TOP), title, image)
    left = 3 * (8 * CELL + 30)
    start = make_layer((64, 256), epsilon=4, seed=0).topology.degrees()[0]
    top = max(start.max(), degrees.max())
    parts += picture(left, 0, f"{start.sum()} connections at random", start / top)
    parts += picture(left, 8 * CELL + TOP, "and after 20 epochs", degrees / top)
    save(folder / "set-rbm.svg", parts, left + 180, 2 * (8 * CELL + TOP) + 6)


def picture(left, top, title, values):
    """Return an image of 8 x 8 pixels."""
    parts = [text(left, top + 20, title)]
    for place, value in enumerate(values):
        x, y = left + place % 8 * CELL, top + TOP + place // 8 * CELL
        parts.append(square(x, y, BLUE, opacity=0.05 + 0.95 * float(value)))
    return parts


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "methods"
    folder.mkdir(exist_ok=True)
    for name, strategy in STRATEGIES.items():
        draw(name, strategy, folder)
    draw_tickets(folder)
    draw_machine(folder)


if __name__ == "__main__":
    main()
