// Distinct random places, exactly uniform, in time and memory that follow how many are drawn.
#pragma once

#include <functional>
#include <vector>

#include "common.hpp"

namespace ratoon {

// The drawn ranks of every tile: sorted, distinct; tile t owns ranks[starts[t] .. starts[t + 1]).
struct DrawnRanks {
    std::vector<Index> starts;
    Buffer<std::uint32_t> ranks;
};

// Asked every few milliseconds, on the thread that draws, whether to stop.  May be empty.
using ShouldStop = std::function<bool()>;

// Thrown by a draw that was asked to stop.
struct DrawStopped {};

// Draw `count` distinct ranks among room[0] + room[1] + ... ; a rank of tile t is below room[t].
//
// Every set of `count` ranks is equally likely: we draw independently, drop repetitions and draw
// as many again until none is missing.  When more than half is wanted the places left out are
// drawn instead, so at most half of the draws of a round are repetitions and the rounds end.
// Throws std::invalid_argument when there is not enough room, and DrawStopped.
DrawnRanks draw_distinct(const std::vector<Index>& room, Index count, std::uint64_t seed,
                         int n_threads, const ShouldStop& should_stop = {});

}  // namespace ratoon
