"""What the first- and second-level cache and the multiply-add units of one core allow.

GFlop/s of loops that do no more than a sparse pass must (`probes/roofline.cpp`): rows picked at
random from so many that they fill a part of a cache, sums in registers.  `throughput.py` states
what the kernels reach as a share of these.
"""

from __future__ import annotations

from dataclasses import asdict

from common.limits import BLOCKS, Probe
from common.machine import MachineState
from common.tables import markdown, numbers, parser, write_json

EXAMPLES = """\
  roofline.py --rows 96,784,1568,8192 --json roofline.json
  roofline.py --avx2                                  without AVX-512
"""


def main() -> None:
    """Measure and print one line per number of lanes and rows."""
    options = parser(__doc__, EXAMPLES)
    options.add_argument("--rows", type=numbers, default=[96, 784, 1568, 8192])
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--avx2", action="store_true")
    arguments = options.parse_args()
    with MachineState() as machine:
        probe = Probe(("-mavx2", "-mfma") if arguments.avx2 else ("-march=native",))
        cases = [(lanes, rows) for rows in arguments.rows for lanes in BLOCKS]
        peak, limits = probe.measure(cases, arguments.repeats)
    print(f"multiply-adds from registers: {peak:.0f} GFlop/s\n")
    print(
        markdown(
            [
                {
                    "rows": limit.rows,
                    "lanes": limit.lanes,
                    "kB of rows": limit.rows * limit.lanes * 4 // 1000,
                    "forward": limit.forward,
                    "input gradient": limit.input_gradient,
                    "weight gradient": limit.weight_gradient,
                    "both gradients": limit.both,
                }
                for limit in limits
            ]
        )
    )
    content = {"peak": peak, "limits": [asdict(limit) for limit in limits]}
    write_json(arguments.json, content | {"machine": machine.facts()})


if __name__ == "__main__":
    main()
