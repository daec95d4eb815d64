// Absent connections: which of them would have the largest gradient, and how to grow given ones.
// Both need memory for a small block of the inputs x outputs plane only.
#pragma once

#include <span>

#include "draw.hpp"
#include "topology.hpp"

namespace ratoon {

// Two thin matrices whose product is the gradient: at position (i, j) it is <x[i], d[j]>, over
// `depth` numbers (the samples of a minibatch, or of several).
template <typename T>
struct Factors {
    const T* x;  // (n_in, depth)
    const T* d;  // (n_out, depth)
    Index depth;
};

// The `count` positions with the largest |gradient| that the slots `kept` (ascending) leave empty;
// of equal ones the lower positions.  Ascending.  Positions without a gradient are never among
// them, so there may be fewer.
//
// Exact.  Faster if neurons differ: a pair is skipped if the product of its norms is less than the
// smallest gradient found so far.  Memory: about 24 bytes per position returned.
template <typename T>
Buffer<Index> largest_absent(const Topology& topology, std::span<const Index> kept,
                             const Factors<T>& factors, Index count, int n_threads);

// The same for every output on its own: `counts[j]` positions of output j.  Of equal magnitudes the
// lower position; ascending; exact.  Memory: about 50 bytes per position returned.  Throws
// DrawStopped.
template <typename T>
Buffer<Index> largest_absent_per_output(const Topology& topology, std::span<const Index> kept,
                                        const Factors<T>& factors, std::span<const Index> counts,
                                        int n_threads, const ShouldStop& should_stop = {});

// Those of the given positions that the slots `kept` (ascending) leave empty, in the given order.
Buffer<Index> empty_among(const Topology& topology, std::span<const Index> kept,
                          std::span<const Index> positions);

// The slot of the connection at each position, -1 where the position is empty.
Buffer<Index> slots_of(const Topology& topology, std::span<const Index> positions);

// Keep the given slots (ascending) and grow connections at the given positions (ascending, not
// occupied by what is kept).  `origin`: old slot, or -1 for a new connection.
struct GrownAt {
    TopologyPtr topology;
    Buffer<Index> origin;
};
GrownAt grow_at(const Topology& topology, std::span<const Index> kept,
                std::span<const Index> positions);

// The same connections in another tiling; order[k] is the slot that slot k had before.
struct LaidOut {
    TopologyPtr topology;
    Buffer<Index> order;
};
LaidOut laid_out(const Topology& topology, const Grid& grid);

// Throw std::invalid_argument unless slots are ascending and exist; unless positions exist.
void check_kept(const Topology& topology, std::span<const Index> kept);
void check_positions(const Grid& grid, std::span<const Index> positions);

}  // namespace ratoon
