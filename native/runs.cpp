#include "runs.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "topology.hpp"

namespace ratoon {
namespace {

constexpr Index kFewestLanes = 32;
// Links are read from memory, too.  With few lanes that takes as long as computing does.
constexpr Index kFewLanes = 64, kMostOfFewLanes = Index(1) << 18;
// Rows of a layer beyond this many bytes leave the cache; tiles then use each loaded row more
// often.
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
    if (which == Of::outputs) return;
    // Slots are in the order of groups of inputs, tile by tile, and a part is whole groups.
    static_assert(kAtOnce % kGroup == 0);
    std::vector<std::vector<Slots>> found(static_cast<std::size_t>(n_parts()));
    Index last = -1;
    each([&](Index run, Index, Index slot) {
        std::vector<Slots>& of_part = found[std::size_t(run / kAtOnce)];
        if (run / kAtOnce != last) of_part.push_back({slot, slot});
        of_part.back().end = slot + 1;
        last = run / kAtOnce;
    });
    part_starts_.push_back(0);
    for (const std::vector<Slots>& of_part : found) {
        slots_.insert(slots_.end(), of_part.begin(), of_part.end());
        part_starts_.push_back(Index(slots_.size()));
    }
}

bool Runs::pay(const Topology& topology, Index lanes, Index bytes_per_number) {
    const Grid& grid = topology.grid();
    const Index widest = std::max(grid.n_in, grid.n_out);
    const Index most = lanes < kFewLanes ? kMostOfFewLanes : (Index(1) << 32) - 1;
    // A vector of eight lanes should fit a register.  Where it does not, passes by runs take 1.2
    // to 2.5 times as long as by tiles.
    const std::string isa = isa_in_use();
    if (isa != "avx512" && !(isa == "avx2" && bytes_per_number == 4)) return false;
    return lanes >= kFewestLanes && topology.n_connections() <= most &&
           widest * std::min(lanes, kMostLanes) * bytes_per_number <= kMostBytes;
}

}  // namespace ratoon
