// Absent connections that would close many short cycles: scores by paths of length 3
// (Cannistraci-Hebb link prediction).
//
// A path i - b - a - j goes from input i to an output b, back to an input a, and on to output j.
// The fewer connections the inner neurons have outside of the paths, the higher the score.
#pragma once

#include <optional>
#include <span>

#include "draw.hpp"
#include "topology.hpp"

namespace ratoon {

// With n(x) the degree of a neuron and c(x, y) the number of common neighbours of two neurons of
// the same side, the score of an absent connection (i, j) is
//
//   ch3_l3p: the sum over all paths of 1 / sqrt((n(a) - c(i, a)) (n(b) - c(j, b)))
//   ch2_l3n: the sum over all distinct a of (c(i, a) + 1) / (n(a) - c(i, a)),
//            and likewise over all distinct b, with c(j, b) and n(b)
enum class PathScore { ch3_l3p, ch2_l3n };

struct PathSearch {
    PathScore score;
    Index count;                        // how many positions are wanted
    std::optional<std::uint64_t> seed;  // if given, positions are drawn in proportion to scores
    const Topology* allowed;            // if not null, only these positions
};

// Ascending positions and their values: the score, or the score divided by an exponential random
// number if they are drawn; the largest of these are a draw without replacement.
struct ScoredPositions {
    Buffer<Index> positions;
    Buffer<double> values;
};

// The `count` positions of largest value that the slots `kept` (ascending) leave empty; of equal
// ones the lower positions.  Positions without a path are never among them, so there may be fewer.
//
// Time is proportional to the number of paths of length 3, connections times the square of the
// degree; memory to connections, neurons and `count`.  Throws DrawStopped.
ScoredPositions best_by_paths(const Topology& topology, std::span<const Index> kept,
                              const PathSearch& search, int n_threads,
                              const ShouldStop& should_stop = {});

}  // namespace ratoon
