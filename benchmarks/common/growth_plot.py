"""The picture of growth: seconds per step and memory against connections, both logarithmic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from common.roofline import least_seconds

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

MARKERS = "osv^D<>ph"


def draw(content: dict[str, Any], path: str | Path) -> None:
    """Draw what `peers.py` wrote under ``growth`` into a picture file."""
    plt.rcParams["svg.hashsalt"] = "ratoon"  # the same figures make the same file
    figure, (time_axes, memory_axes) = plt.subplots(1, 2, figsize=(11, 4.6))
    growth = content["growth"]
    for (name, points), marker in zip(growth.items(), MARKERS, strict=False):
        shown = [point for point in points if "step_ms" in point]
        if not shown:
            continue
        style = {"marker": marker, "markersize": 4, "label": name}
        style["linewidth"] = 2.2 if name == "ratoon" else 1.0
        connections = [point["connections"] for point in shown]
        time_axes.plot(connections, [point["seconds"] for point in shown], **style)
        memory_axes.plot(connections, [point["step_rss_mb"] / 1e3 for point in shown], **style)
    everything = [
        point["connections"] for points in growth.values() for point in points if "step_ms" in point
    ]
    ends = [min(everything), max(everything)]
    speed = content["roofline"]["stream_gb_s"]
    roof = [least_seconds(n, speed) for n in ends]
    time_axes.plot(ends, roof, "k--", linewidth=1, label=f"memory bandwidth, {speed:.0f} GB/s")
    memory_axes.plot(ends, [12 * n / 1e9 for n in ends], "k--", linewidth=1, label="12 bytes each")
    for axes, label in ((time_axes, "seconds per step"), (memory_axes, "peak memory, GB")):
        axes.set(xscale="log", yscale="log", xlabel="connections", ylabel=label)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(True, which="major", alpha=0.3)
    time_axes.legend(fontsize=7)
    memory_axes.legend(handles=memory_axes.lines[-1:], fontsize=7)
    batch, threads = content["growth_batch"], content["threads"]
    figure.suptitle(
        f"1000-n-n-10, epsilon 10, batch {batch}, {threads} thread(s), {content['machine']['cpu']}"
    )
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)
    plt.close(figure)
