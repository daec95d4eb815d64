"""How far two cores are apart: nanoseconds for a cache line to go there and back.

Run it before and after a measurement with two threads.  Cores that share a third-level cache are
about 100 ns apart, others several hundred; a virtual machine may be moved between the two at any
time, and two threads that exchange rows gain much on the first and little on the second.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from common.machine import MachineState, describe
from common.tables import parser, write_json

EXAMPLES = """\
  cores.py --pair 0,1
  cores.py --repeats 20 --json cores.json     how the distance changes over time
"""
SOURCE = r"""
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>

alignas(128) static std::atomic<int> line{0};
constexpr int kTrips = 200000;

static void stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) std::exit(2);
}

int main(int, char** argv) {
    std::thread there([&] {
        stay_on(std::atoi(argv[2]));
        for (int i = 0; i < kTrips; ++i) {
            while (line.load() != 2 * i + 1) {}
            line.store(2 * i + 2);
        }
    });
    stay_on(std::atoi(argv[1]));
    line.store(1);  // there and back once, so that both have arrived
    while (line.load() != 2) {}
    const auto start = std::chrono::steady_clock::now();
    for (int i = 1; i < kTrips; ++i) {
        line.store(2 * i + 1);
        while (line.load() != 2 * i + 2) {}
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    there.join();
    std::printf("%.0f\n", taken.count() / (kTrips - 1));
}
"""


def build(folder: Path) -> Path:
    """Compile the probe into ``folder``."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise SystemExit("no C++ compiler found; ratoon needs one to be built, too")
    source, program = folder / "apart.cpp", folder / "apart"
    source.write_text(SOURCE)
    command = [compiler, "-std=c++20", "-O2", "-pthread", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def round_trip_ns(program: Path, first: int, second: int) -> float:
    """Return nanoseconds of a round trip between two cores."""
    found = subprocess.run(
        [str(program), str(first), str(second)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if found.returncode != 0:
        raise SystemExit(f"cores {first} and {second} could not be used: is each there?")
    return float(found.stdout)


def main() -> None:
    """Print the distance of a pair of cores, repeat by repeat."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--pair", default="0,1", help="two cores, in commas")
    arguments.add_argument("--repeats", type=int, default=5)
    given = arguments.parse_args()
    first, second = (int(core) for core in given.pair.split(","))
    with tempfile.TemporaryDirectory() as folder, MachineState() as machine:
        program = build(Path(folder))
        found = [round_trip_ns(program, first, second) for _ in range(given.repeats)]
    print(f"cores {first} and {second}, ns there and back:", *(f"{ns:.0f}" for ns in found))
    print(describe(machine.facts()))
    content = {"machine": machine.facts(), "pair": [first, second], "round_trip_ns": found}
    write_json(given.json, content)


if __name__ == "__main__":
    main()
