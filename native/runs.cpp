#include "runs.hpp"

#include <algorithm>
#include <numeric>

#include "topology.hpp"

namespace ratoon {
namespace {

constexpr Index kFewestLanes = 32;
// Rows of a layer beyond this many bytes leave the cache; tiles then use each loaded row more often.
constexpr Index kMostBytes = Index(4) << 20;

}  // namespace

Runs::Runs(const Topology& topology, Of which)
    : starts_(std::size_t(which == Of::outputs ? topology.grid().n_out : topology.grid().n_in) + 1,
              0),
      links_(topology.n_connections()) {
    const Grid& grid = topology.grid();
    const Packed* packed = topology.packed().data();
    const auto each = [&](auto visit) {
        for (Index t = 0; t < grid.n_tiles(); ++t) {
            const Index first_in = grid.first_input(t % grid.tiles_in());
            const Index first_out = grid.first_output(t / grid.tiles_in());
            for (Index slot = topology.starts()[t]; slot < topology.starts()[t + 1]; ++slot) {
                const Index input = first_in + Index(packed[slot] >> 16);
                const Index output = first_out + Index(packed[slot] & 0xffffu);
                which == Of::outputs ? visit(output, input, slot) : visit(input, output, slot);
            }
        }
    };
    each([&](Index run, Index, Index) { ++starts_[std::size_t(run) + 1]; });
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::vector<Index> next(starts_.begin(), starts_.end() - 1);
    each([&](Index run, Index other, Index slot) {
        links_[next[std::size_t(run)]++] = {std::uint32_t(other), std::uint32_t(slot)};
    });
}

Index Runs::begin_of(Index part, Index n_parts) const {
    if (part == n_parts) return n_runs();
    // A run costs something by itself, so layers with many empty runs are cut evenly, too.
    const auto cost = [&](Index run) { return starts_[std::size_t(run)] + run; };
    const Index wanted = cost(n_runs()) * part / n_parts;
    Index low = 0, high = n_runs();
    while (low < high) {
        const Index middle = (low + high) / 2;
        cost(middle) < wanted ? low = middle + 1 : high = middle;
    }
    return low;
}

bool Runs::pay(const Topology& topology, Index lanes, Index bytes_per_number) {
    const Grid& grid = topology.grid();
    const Index widest = std::max(grid.n_in, grid.n_out);
    return lanes >= kFewestLanes && topology.n_connections() < (Index(1) << 32) &&
           widest * std::min(lanes, kMostLanes) * bytes_per_number <= kMostBytes;
}

}  // namespace ratoon
