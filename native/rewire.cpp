#include "rewire.hpp"

#include <algorithm>

#include "bfloat16.hpp"
#include "draw.hpp"
#include "kernels.hpp"
#include "prune.hpp"
#include "threads.hpp"

namespace ratoon {
namespace {

constexpr Index kChunk = 1 << 16;

// The arrays a rewiring moves: weights and other values of the connections.  The number of carried
// arrays is a compile-time constant for the usual ones, so the inner loops stay tight.
template <typename W, typename T, int n_carried>
struct Moved {
    W* weights;
    T* carried[n_carried > 0 ? n_carried : 1];

    void move(Index from, Index to) const {
        weights[to] = weights[from];
        for (int c = 0; c < n_carried; ++c) carried[c][to] = carried[c][from];
    }
    void start(Index slot, W weight) const {
        weights[slot] = weight;
        for (int c = 0; c < n_carried; ++c) carried[c][slot] = 0;
    }
};

// The number of positions of every tile that its survivors leave empty.
std::vector<Index> empty_room(const Grid& grid, const std::vector<Index>& survivor_starts) {
    std::vector<Index> n_empty(std::size_t(grid.n_tiles()));
    for (Index t = 0; t < grid.n_tiles(); ++t) {
        n_empty[t] = grid.tile(t).area() - (survivor_starts[t + 1] - survivor_starts[t]);
    }
    return n_empty;
}

// Merges survivors and new connections of one tile, from the last to the first: calls `place` with
// the new slot of each survivor, and `grow` with the slot and position of each new connection.
//
// A drawn rank r is the r-th *empty* position.  With s survivors below it, it lies at key r + s;
// and survivor number s, at key K, has K - s empty positions below it.
template <typename Survivor, typename Place, typename Grow>
void merge_backwards(const Tile& tile, Index n_survivors, Survivor survivor,
                     const std::uint32_t* ranks, Index n_ranks, Index slot, Place place,
                     Grow grow) {
    Index s = n_survivors, r = n_ranks;
    while (s > 0) {
        const Packed packed = survivor(s - 1);
        const std::uint64_t empty_below = tile.key(packed) - std::uint64_t(s - 1);
        while (r > 0 && ranks[r - 1] >= empty_below) {
            --r;
            grow(--slot, tile.at(ranks[r] + std::uint64_t(s)));
        }
        --s;
        place(--slot, s, packed);
    }
    while (r > 0) {
        --r;
        grow(--slot, tile.at(ranks[r]));
    }
}

std::vector<Index> summed(const std::vector<Index>& a, const std::vector<Index>& b) {
    std::vector<Index> sum(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
    return sum;
}

}  // namespace

TopologyPtr random_topology(const Grid& grid, Index n_connections, std::uint64_t seed,
                            int n_threads, const ShouldStop& should_stop) {
    grid.check();
    std::vector<Index> no_slots(std::size_t(grid.n_tiles()) + 1, 0);
    DrawnRanks drawn =
        draw_distinct(empty_room(grid, no_slots), n_connections, seed, n_threads, should_stop);
    Buffer<Packed> packed(n_connections);
    parallel_for(grid.n_tiles(), n_threads, [&](Index t) {
        const Tile tile = grid.tile(t);
        for (Index slot = drawn.starts[t]; slot < drawn.starts[t + 1]; ++slot) {
            packed[slot] = tile.at(drawn.ranks[slot]);
        }
    });
    return std::make_shared<Topology>(Topology::Trusted{}, grid, std::move(drawn.starts),
                                      std::move(packed));
}

namespace {

// Where each tile's survivors begin when stored without gaps.
template <typename T>
std::vector<Index> survivor_starts(const Topology& topology, const T* weights,
                                   const Weakest<T>& weakest) {
    const auto starts = topology.starts();
    std::vector<Index> survivors(starts.size(), 0);
    auto ties = weakest.ties();
    for (std::size_t t = 0; t + 1 < starts.size(); ++t) {
        survivors[t + 1] =
            survivors[t] + weakest.survivors(weights + starts[t], starts[t + 1] - starts[t], ties);
    }
    return survivors;
}

// Survivors move to the left of the arrays; their indices move to a separate array.
template <typename W, typename T, int n_carried>
void compact(const Topology& topology, const Moved<W, T, n_carried>& values,
             const Weakest<W>& weakest, Packed* packed) noexcept {
    const Packed* old = topology.packed().data();
    auto ties = weakest.ties();
    Index kept = 0;
    for (Index slot = 0; slot < topology.n_connections(); ++slot) {
        const bool stays = weakest.survives(values.weights[slot], ties);
        packed[kept] = old[slot];
        values.move(slot, kept);
        kept += stays;
    }
}

// One of two, without a branch.
template <typename T>
T chosen(bool second, T a, T b) {
    const auto first = std::bit_cast<Bits<T>>(a);
    const Bits<T> difference = Bits<T>((first ^ std::bit_cast<Bits<T>>(b)) & -Bits<T>(second));
    return std::bit_cast<T>(Bits<T>(first ^ difference));
}

// How many empty positions lie below each survivor of a tile: number s, at key K, has K - s.
template <bool in_groups>
void count_empty_below(Tile tile, const Packed* packed, Index n,
                       std::uint32_t* empty_below) noexcept {
    for (Index s = 0; s < n; ++s) {
        empty_below[s] = std::uint32_t(tile.template key<in_groups>(packed[s])) - std::uint32_t(s);
    }
}

// Spreads the survivors of one tile, which lie at first .. first + s, to the right and sets the
// r new connections between them; `slot` is where the tile ends.
//
// Whether the next one is old or new is random and cannot be predicted by the processor, so both
// are computed and one is selected.  The condition is precomputed in `empty_below`.  Arguments are
// copies, so that the compiler knows that storing an index does not change them.
template <bool in_groups, typename W, typename T, int n_carried>
void spread(Tile tile, Moved<W, T, n_carried> values, Packed* packed, Index first, Index s,
            const std::uint32_t* ranks, const W* fresh, Index r, Index slot,
            std::uint32_t* empty_below) noexcept {
    count_empty_below<in_groups>(tile, packed + first, s, empty_below);
    while (s > 0 && r > 0) {
        const Index from = first + s - 1;
        const std::uint32_t rank = ranks[r - 1];
        const bool is_new = rank >= empty_below[s - 1];
        const Packed place = tile.template at<in_groups>(std::uint64_t(rank) + std::uint64_t(s));
        --slot;
        packed[slot] = chosen(is_new, packed[from], place);
        values.weights[slot] = chosen(is_new, values.weights[from], fresh[r - 1]);
        for (int c = 0; c < n_carried; ++c) {
            values.carried[c][slot] = chosen(is_new, values.carried[c][from], T(0));
        }
        r -= is_new;
        s -= !is_new;
    }
    for (; s > 0; --s) {
        packed[--slot] = packed[first + s - 1];
        values.move(first + s - 1, slot);
    }
    for (; r > 0; --r) {
        packed[--slot] = tile.at(ranks[r - 1]);
        values.start(slot, fresh[r - 1]);
    }
}

template <typename W>
Buffer<W> drawn_weights(GrownWeights how, Index n, int n_threads) {
    Buffer<W> weights(n);
    if (how.sigma == 0) {
        weights.fill_zero();
        return weights;
    }
    parallel_for(divided_up(n, kChunk), n_threads, [&](Index c) {
        const Index first = c * kChunk, size = std::min(kChunk, n - first);
        if constexpr (std::is_same_v<W, Half>) {
            Buffer<float> drawn(size);
            kernels<float>().normal(how.seed, float(how.sigma), drawn.data(), first, size);
            for (Index k = 0; k < size; ++k) weights[first + k] = nearest_bfloat16(drawn[k]);
        } else {
            kernels<W>().normal(how.seed, W(how.sigma), weights.data() + first, first, size);
        }
    });
    return weights;
}

template <typename W, typename T, int n_carried>
Rewired rewire_moved(const Topology& topology, const Moved<W, T, n_carried>& values, double zeta,
                     GrownWeights first_weights, std::uint64_t seed, int n_threads,
                     const ShouldStop& should_stop) {
    const Grid& grid = topology.grid();
    // Allocated first, since it is kept: memory that is freed at the end then lies behind it.
    Buffer<Packed> indices(topology.n_connections());
    Packed* packed = indices.data();
    const Weakest<W> weakest(values.weights, topology.n_connections(), zeta, n_threads);
    const std::vector<Index> survivors = survivor_starts(topology, values.weights, weakest);
    const Index n_grown = weakest.n_pruned();
    const DrawnRanks drawn =
        draw_distinct(empty_room(grid, survivors), n_grown, seed, n_threads, should_stop);
    const Buffer<W> fresh = drawn_weights<W>(first_weights, n_grown, n_threads);
    std::vector<Index> starts = summed(survivors, drawn.starts);
    Index most = 0;  // survivors of a tile
    for (Index t = 0; t < grid.n_tiles(); ++t) {
        most = std::max(most, survivors[t + 1] - survivors[t]);
    }
    Buffer<std::uint32_t> empty_below(most);
    auto next = std::make_shared<Topology>(Topology::Trusted{}, grid, std::move(starts),
                                           std::move(indices));
    // All memory has been allocated: from here on nothing can fail, so no rewiring is left
    // incomplete.
    //
    // From the left, where the survivors go, they are spread to the right again.  So all arrays
    // but the indices are changed in place.
    compact(topology, values, weakest, packed);
    for (Index t = grid.n_tiles() - 1; t >= 0; --t) {
        const Index first_new = drawn.starts[t];
        const auto in_order =
            grid.grouped ? spread<true, W, T, n_carried> : spread<false, W, T, n_carried>;
        in_order(grid.tile(t), values, packed, survivors[t], survivors[t + 1] - survivors[t],
                 drawn.ranks.data() + first_new, fresh.data() + first_new,
                 drawn.starts[t + 1] - first_new, next->starts()[t + 1], empty_below.data());
    }
    return {std::move(next), n_grown};
}

}  // namespace

template <typename W, typename T>
Rewired rewire_by_sign(const Topology& topology, W* weights, const std::vector<T*>& carried,
                       double zeta, GrownWeights first_weights, std::uint64_t seed, int n_threads,
                       const ShouldStop& should_stop) {
    if (!(zeta >= 0 && zeta < 1)) throw std::invalid_argument("zeta must be in [0, 1)");
    const auto run = [&](auto moved) {
        return rewire_moved(topology, moved, zeta, first_weights, seed, n_threads, should_stop);
    };
    switch (carried.size()) {
        case 0:
            return run(Moved<W, T, 0>{weights, {nullptr}});
        case 1:
            return run(Moved<W, T, 1>{weights, {carried[0]}});
        case 2:
            return run(Moved<W, T, 2>{weights, {carried[0], carried[1]}});
        default:
            throw std::invalid_argument("at most two arrays can be carried along");
    }
}

Regrown regrow_uniformly(const Topology& topology, std::span<const Index> kept, Index count,
                         std::uint64_t seed, int n_threads, const ShouldStop& should_stop) {
    const Grid& grid = topology.grid();
    const Index n_tiles = grid.n_tiles(), n_kept = Index(kept.size());
    const auto starts = topology.starts();
    const Packed* old = topology.packed().data();
    for (Index k = 0; k < n_kept; ++k) {
        if (kept[k] < 0 || kept[k] >= topology.n_connections() ||
            (k > 0 && kept[k] <= kept[k - 1])) {
            throw std::invalid_argument("kept slots must be ascending and in range");
        }
    }
    std::vector<Index> kept_starts(std::size_t(n_tiles) + 1);
    for (Index t = 0; t <= n_tiles; ++t) {
        kept_starts[t] = std::lower_bound(kept.begin(), kept.end(), starts[t]) - kept.begin();
    }
    DrawnRanks drawn =
        draw_distinct(empty_room(grid, kept_starts), count, seed, n_threads, should_stop);
    std::vector<Index> new_starts = summed(kept_starts, drawn.starts);
    Buffer<Packed> packed(n_kept + count);
    Buffer<Index> origin(n_kept + count);
    parallel_for(n_tiles, n_threads, [&](Index t) {
        const Index first = kept_starts[t];
        merge_backwards(
            grid.tile(t), kept_starts[t + 1] - first, [&](Index s) { return old[kept[first + s]]; },
            drawn.ranks.data() + drawn.starts[t], drawn.starts[t + 1] - drawn.starts[t],
            new_starts[t + 1],
            [&](Index slot, Index s, Packed p) {
                packed[slot] = p;
                origin[slot] = kept[first + s];
            },
            [&](Index slot, Packed p) {
                packed[slot] = p;
                origin[slot] = -1;
            });
    });
    return {std::make_shared<Topology>(Topology::Trusted{}, grid, std::move(new_starts),
                                       std::move(packed)),
            std::move(origin)};
}

#define RATOON_INSTANTIATE(W, T)                                                         \
    template Rewired rewire_by_sign(const Topology&, W*, const std::vector<T*>&, double, \
                                    GrownWeights, std::uint64_t, int, const ShouldStop&);
RATOON_INSTANTIATE(float, float)
RATOON_INSTANTIATE(double, double)
RATOON_INSTANTIATE(Half, float)

}  // namespace ratoon
