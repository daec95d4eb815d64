// Prune and grow, in place and in O(connections): the native path of SET, and random starts.
#pragma once

#include <vector>

#include "topology.hpp"

namespace ratoon {

// A topology with exactly n_connections, every one of them equally likely.
TopologyPtr random_topology(const Grid& grid, Index n_connections, std::uint64_t seed,
                            int n_threads);

// Of each sign, the number of weights that go: the `n_negative` negative ones and the
// `n_positive` others nearest zero; of equal ones, those in lower slots go first.
struct PruneCounts {
    Index n_negative, n_positive;
};

struct Rewired {
    TopologyPtr topology;
    // Slots of the new connections, ascending: their values are for the caller to set.
    Buffer<Index> grown;
};

// One prune + grow at constant count.  `weights` and every array of `carried` are moved along in
// place; a new connection holds 0 in all of them.
template <typename T>
Rewired rewire_by_sign(const Topology& topology, T* weights, const std::vector<T*>& carried,
                       PruneCounts counts, std::uint64_t seed, int n_threads);

// The general step for any strategy: keep the given slots (ascending), then grow `count` uniformly
// among the empty positions.  `origin` of the new topology: old slot, or -1 for a new connection.
struct Regrown {
    TopologyPtr topology;
    Buffer<Index> origin;
};
Regrown regrow_uniformly(const Topology& topology, std::span<const Index> kept, Index count,
                         std::uint64_t seed, int n_threads);

// How many weights are negative.
template <typename T>
Index count_negative(const T* weights, Index n, int n_threads);

}  // namespace ratoon
