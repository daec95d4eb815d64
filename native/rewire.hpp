// Prune and grow, in place and in O(connections): the native path of SET, and random starts.
#pragma once

#include <vector>

#include "topology.hpp"

namespace ratoon {

// A topology with exactly n_connections; every such topology is equally likely.
TopologyPtr random_topology(const Grid& grid, Index n_connections, std::uint64_t seed,
                            int n_threads);

struct Rewired {
    TopologyPtr topology;
    Index n_grown = 0;
};

// First weights of new connections: normal deviates number 0, 1, ... of a stream, in slot order.
struct GrownWeights {
    double sigma = 0;  // 0: they start at 0
    std::uint64_t seed = 0;
};

// One prune + grow at constant count.  Of each sign the fraction `zeta` nearest zero is pruned
// (rounded to whole connections, halves to even); of equal ones, those in lower slots first.
// `weights` and every array of `carried` are reordered in place; a new connection holds 0 in the
// latter.
//
// W is T, or Half for weights in bfloat16.
template <typename W, typename T>
Rewired rewire_by_sign(const Topology& topology, W* weights, const std::vector<T*>& carried,
                       double zeta, GrownWeights first_weights, std::uint64_t seed, int n_threads);

// The general step for any strategy: keep the given slots (ascending), then grow `count` uniformly
// among the empty positions.  `origin` of the new topology: old slot, or -1 for a new connection.
struct Regrown {
    TopologyPtr topology;
    Buffer<Index> origin;
};
Regrown regrow_uniformly(const Topology& topology, std::span<const Index> kept, Index count,
                         std::uint64_t seed, int n_threads);

}  // namespace ratoon
