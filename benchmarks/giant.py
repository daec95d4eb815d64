"""Forty million neurons, 800 million connections on one machine: built, stepped, rewired, kept.

Model e with hidden layers of 20,000,000: every phase with its seconds and its peak of memory.  The
file takes 12 bytes per connection (9.7 GB) in ``--folder`` for as long as the script runs.  Without
momentum a connection takes 8 bytes, in memory and in the file, with weights in bfloat16 6; and more
layers make a rewiring's peak smaller, since one layer is rewired after the other.  So a hundred
million neurons fit too.
"""

from __future__ import annotations

from common.isolate import run_fresh
from common.lifecycle import table_rows
from common.machine import MachineState, describe
from common.models import Model
from common.tables import markdown, numbers, parser, write_json

EXAMPLES = """\
  giant.py --json giant.json --folder /var/tmp     14 GB of memory, 10 GB of disk, some minutes
  giant.py --neurons 4e5                           a hundredth of it, in seconds
  giant.py --neurons 1e7 --no-save --threads 2
  giant.py --neurons 1e8 --layers 10 --momentum 0 --dtype bfloat16 --batches 1     15 GB
"""


def giant(n_hidden: int, n_layers: int) -> Model:
    """Return the network with that many hidden neurons, in equal layers."""
    hidden = [max(32, n_hidden // n_layers)] * n_layers
    return Model("giant", (54675, *hidden, 18), 5, learning_rate=0.05)


def main() -> None:
    """Lead the network through its life, print a table, write JSON."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument(
        "--neurons", type=float, default=4e7, help="hidden neurons, in all layers (default 4e7)"
    )
    arguments.add_argument("--layers", type=int, default=2, help="equal hidden layers")
    arguments.add_argument("--momentum", type=float, default=0.9, help="0 needs no memory for it")
    arguments.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    arguments.add_argument("--batches", type=numbers, default=[5, 1], help="batch sizes to step")
    arguments.add_argument("--steps", type=int, default=1, help="training steps per batch size")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--folder", default=".", help="where the file goes meanwhile")
    arguments.add_argument("--no-save", action="store_true", help="leave saving and loading out")
    given = arguments.parse_args()
    model = giant(int(given.neurons), given.layers)
    with MachineState() as machine:
        found = run_fresh(
            "common.lifecycle:live",
            n_threads=given.threads,
            timeout_s=4 * 3600,
            model=model.to_dict(),
            threads=given.threads,
            batches=given.batches,
            minibatches=given.steps,
            momentum=given.momentum,
            dtype=given.dtype,
            folder=None if given.no_save else given.folder,
        )
    if "failed" in found:
        raise SystemExit(found["failed"])
    print(f"{model.n_neurons:,} neurons, {found['connections']:,} connections\n")
    print(markdown(table_rows(found)))
    print(
        f"\nPeak {found['peak_rss_mb'] / 1e3:.2f} GB, {found['peak_bytes_per_connection']:.1f}"
        f" bytes per connection; parameters alone {found['parameter_bytes_per_connection']:.2f}."
    )
    print("\n" + describe(machine.facts()))
    write_json(given.json, {"machine": machine.facts(), "model": model.to_dict(), **found})


if __name__ == "__main__":
    main()
