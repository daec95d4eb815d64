// Distinct random positions, exactly uniform, in time and memory proportional to their number.
#pragma once

#include <vector>

#include "common.hpp"

namespace ratoon {

// The drawn ranks of every tile: sorted, distinct; tile t owns ranks[starts[t] .. starts[t + 1]).
struct DrawnRanks {
    std::vector<Index> starts;
    Buffer<std::uint32_t> ranks;
};

// Draw `count` distinct ranks among n_empty[0] + n_empty[1] + ... ; ranks of tile t are below
// n_empty[t].
//
// Every set of `count` ranks is equally likely: ranks are drawn independently, repetitions are
// dropped and drawn again until there are enough.  For more than half of all ranks, those to leave
// out are drawn instead, so at most half of the draws of a round are repetitions.  Throws
// std::invalid_argument if there are fewer than `count` ranks.
DrawnRanks draw_distinct(const std::vector<Index>& n_empty, Index count, std::uint64_t seed,
                         int n_threads);

}  // namespace ratoon
