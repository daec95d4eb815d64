"""Draw `step.svg`, the picture of docs/how-a-step-works.md.

python docs/images/step.py [another.png]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.patches import FancyArrowPatch, Rectangle

mpl.use("svg")
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ratoon", "font.size": 9})

from matplotlib.figure import Figure  # noqa: E402

BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#7F7F7F"
N, TILE = 12, 4  # neurons on either side, and the side of a tile


def connections():
    """Return inputs and outputs of the connections, in the order of their slots."""
    rng = np.random.default_rng(3)
    chosen = rng.permutation(N * N)[:26]
    pairs = [(int(p // N), int(p % N)) for p in chosen]
    return sorted(pairs, key=lambda p: (p[1] // TILE, p[0] // TILE, p[0], p[1]))


def box(ax, x, y, w, h, text="", colour="white", edge="0.55", **how):
    ax.add_patch(Rectangle((x, y), w, h, facecolor=colour, edgecolor=edge, linewidth=0.8))
    how = {"ha": "center", "va": "center", "fontsize": 8, **how}
    ax.text(x + w / 2, y + h / 2, text, **how)


def arrow(ax, start, end, colour="0.3", bend=0.0):
    ax.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=9, color=colour, linewidth=1.1,
            connectionstyle=f"arc3,rad={bend}",
        )
    )  # fmt: skip


def plane(ax, pairs, marked):
    """Draw the plane of inputs by outputs with its tiles, and the slots of one of them."""
    ax.set_title("1  A layer: connections in tiles", loc="left", weight="bold")
    for t_out in range(N // TILE):
        for t_in in range(N // TILE):
            chosen = (t_in, t_out) == marked
            ax.add_patch(
                Rectangle(
                    (t_out * TILE, t_in * TILE), TILE, TILE,
                    facecolor=ORANGE if chosen else "white", alpha=0.25 if chosen else 1.0,
                    edgecolor="0.55", linewidth=0.8,
                )
            )  # fmt: skip
            number = t_out * (N // TILE) + t_in
            ax.text(
                t_out * TILE + 0.15, t_in * TILE + 0.65, str(number), fontsize=7, color=GREY
            )  # fmt: skip
    for i, j in pairs:
        here = (i // TILE, j // TILE) == marked
        ax.plot(j + 0.5, i + 0.5, "o", color=RED if here else BLUE, markersize=4)
    ax.annotate("outputs", (N / 2, -0.5), ha="center", fontsize=8)
    ax.text(-0.5, N / 2, "inputs", rotation=90, ha="right", va="center", fontsize=8)
    # The slots.
    starts = [0]
    for tile in range((N // TILE) ** 2):
        count = sum(1 for i, j in pairs if j // TILE * (N // TILE) + i // TILE == tile)
        starts.append(starts[-1] + count)
    number = marked[1] * (N // TILE) + marked[0]
    y, width = 14.3, 12 / len(pairs)
    for name, row in (("packed", 0), ("weights", 1), ("momentum", 2)):
        ax.text(-0.5, y + row * 1.5 + 0.6, name, ha="right", va="center", fontsize=8)
        for slot in range(len(pairs)):
            own = starts[number] <= slot < starts[number + 1]
            ax.add_patch(
                Rectangle(
                    (slot * width, y + row * 1.5), width, 1.2,
                    facecolor=ORANGE if own else "white", alpha=0.45 if own else 1.0,
                    edgecolor="0.6", linewidth=0.6,
                )
            )  # fmt: skip
    middle = (starts[number] + starts[number + 1]) / 2 * width
    arrow(ax, (marked[1] * TILE + 2, marked[0] * TILE + TILE), (middle, y - 0.1), ORANGE)
    ax.text(
        0, y + 5.3,
        "slots, tile by tile; packed = local input << 16 | local output\n"
        "4 + 4 + 4 bytes a connection, nothing else",
        fontsize=8, va="top", color="0.25",
    )  # fmt: skip
    ax.set(xlim=(-3.4, 12.3), ylim=(22.2, -1.4))


def rows(ax, x, y, n, name, colour, *, marked=None, lanes=8, batch=5):
    """Draw activations: a row per neuron, a column per sample."""
    for r in range(n):
        alpha = 0.75 if r == marked else 0.16
        top, width = y + 0.75 * r, 0.55 * batch
        ax.add_patch(Rectangle((x, top), width, 0.75, facecolor=colour, alpha=alpha))
    ax.add_patch(
        Rectangle(
            (x + 0.55 * batch, y), 0.55 * (lanes - batch), 0.75 * n,
            facecolor="white", edgecolor="0.7", linewidth=0.5, hatch="////",
        )
    )  # fmt: skip
    for r in range(n + 1):
        ax.plot([x, x + 0.55 * lanes], [y + 0.75 * r] * 2, color="0.75", linewidth=0.5)
    for c in range(lanes + 1):
        ax.plot([x + 0.55 * c] * 2, [y, y + 0.75 * n], color="0.75", linewidth=0.5)
    ax.text(x + 2.2, y - 0.25, name, ha="center", fontsize=8)


def forward(ax):
    ax.set_title("2  Forward: one row is added to another", loc="left", weight="bold")
    rows(ax, 0, 1, 6, "x: inputs x batch", BLUE, marked=1)
    rows(ax, 8.2, 1, 6, "y: outputs x batch", GREEN, marked=4)
    arrow(ax, (4.6, 2.1), (8.05, 4.35), RED)
    ax.text(6.2, 2.3, "weight w", color=RED, fontsize=8, ha="center")
    ax.text(
        0, 6.6,
        "y[output, :] += w * x[input, :]\n"
        "8 samples in one vector instruction; a batch of 5 is padded to 8.\n"
        "A tile of outputs belongs to one thread, and stays in its cache.",
        fontsize=8, va="top", color="0.25",
    )  # fmt: skip
    ax.set(xlim=(-0.3, 13), ylim=(9.6, -0.4))


def backward(ax):
    ax.set_title("3  Backward: three things in one pass", loc="left", weight="bold")
    rows(ax, 0, 1, 6, "x and dx", BLUE, marked=1)
    rows(ax, 8.2, 1, 6, "dy", GREEN, marked=4)
    box(ax, 5.15, 4.15, 2.3, 0.9, "w, v", colour="#f7e3c2", color="0.1")
    arrow(ax, (8.1, 4.2), (4.55, 1.95), RED)
    ax.text(6.5, 2.1, "dx += w dy", color=RED, fontsize=8, ha="center")
    arrow(ax, (4.5, 2.5), (5.6, 4.1), "0.3")
    arrow(ax, (8.1, 4.6), (7.5, 4.6), "0.3")
    ax.text(6.3, 5.75, "g = <x, dy>", fontsize=8, ha="center")
    ax.text(
        0, 6.6,
        "The gradient g is kept in a register: it is a dot product over the batch,\n"
        "then v = mu v - lr g, w += v at once.  A strip of inputs belongs to one\n"
        "thread, so no other thread adds to its rows of dx.",
        fontsize=8, va="top", color="0.25",
    )  # fmt: skip
    ax.set(xlim=(-0.3, 13), ylim=(9.6, -0.4))


def rewire(ax):
    ax.set_title("4  Rewiring, tile by tile, in place", loc="left", weight="bold")
    before = [0.9, -0.1, 0.4, 0.05, -0.7, 0.02, 0.3, -0.6]
    gone = {1, 3, 5}
    for k, w in enumerate(before):
        box(
            ax, 1.2 * k, 0.6, 1.2, 0.9, f"{w:g}",
            colour="#f6d9c9" if k in gone else "white", color=RED if k in gone else "0.1",
        )  # fmt: skip
    kept = [w for k, w in enumerate(before) if k not in gone]
    for k, w in enumerate(kept):
        box(ax, 1.2 * k, 2.6, 1.2, 0.9, f"{w:g}")
    after = [0.9, None, 0.4, -0.7, None, None, 0.3, -0.6]
    for k, w in enumerate(after):
        box(
            ax, 1.2 * k, 4.6, 1.2, 0.9, "new" if w is None else f"{w:g}",
            colour="#d4efe4" if w is None else "white", color=GREEN if w is None else "0.1",
        )  # fmt: skip
    for y, text in (
        (1.05, "of each sign the\nweakest go"),
        (3.05, "close up; momentum\ncomes along"),
        (5.05, "merge with drawn\nempty positions"),
    ):
        ax.text(9.8, y, text, fontsize=8, va="center", color="0.25")
    arrow(ax, (0.6, 1.55), (0.6, 2.55))
    arrow(ax, (0.6, 3.55), (0.6, 4.55))
    ax.text(
        0, 6.1,
        "The count is the same afterwards, always.  Random numbers are a function\n"
        "of seed, step, layer and place: any number of threads draws the same.",
        fontsize=8, va="top", color="0.25",
    )  # fmt: skip
    ax.set(xlim=(-0.3, 13), ylim=(8.2, -0.4))


def main():
    figure = Figure(figsize=(9.6, 7.4), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=(1.12, 1))
    left = figure.add_subplot(grid[:, 0])
    plane(left, connections(), (2, 0))
    for row, draw in enumerate((forward, backward, rewire)):
        draw(figure.add_subplot(grid[row, 1]))
    for ax in figure.axes:
        ax.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})
    for path in sys.argv[1:]:
        figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
