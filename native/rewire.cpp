#include "rewire.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels.hpp"
#include "sample.hpp"
#include "threads.hpp"

namespace ratoon {
namespace {

constexpr Index kChunk = 1 << 16;

// The bits of |w|, which order as the magnitudes do.
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T>
Bits<T> magnitude_bits(T w) {
    return std::bit_cast<Bits<T>>(w) & (~Bits<T>(0) >> 1);
}

// A histogram of magnitudes for each sign, over their upper bits.  A weight that is no number
// counts as negative, here and wherever signs are told apart.
template <typename T>
struct Histogram {
    static constexpr int kBins = 1 << 13, kShift = int(sizeof(T)) * 8 - 1 - 13;
    std::vector<std::atomic<Index>> bins = std::vector<std::atomic<Index>>(2 * kBins);

    Histogram(const T* weights, Index n, int n_threads) {
        const Index chunk = 4 * kChunk;
        parallel_for(divided_up(n, chunk), n_threads, [&](Index c) {
            std::vector<std::uint32_t> mine(2 * kBins, 0);
            for (Index k = c * chunk; k < std::min(n, (c + 1) * chunk); ++k) {
                ++mine[std::size_t(weights[k] >= 0) * kBins +
                       std::size_t(magnitude_bits(weights[k]) >> kShift)];
            }
            for (int b = 0; b < 2 * kBins; ++b) {
                if (mine[b] > 0) bins[b].fetch_add(mine[b], std::memory_order_relaxed);
            }
        });
    }
    Index count(int sign) const {
        Index sum = 0;
        for (int b = 0; b < kBins; ++b) sum += bins[sign * kBins + b];
        return sum;
    }
    // How many of this sign are to go.
    Index replaced(int sign, double zeta) const {
        return Index(std::nearbyint(zeta * double(count(sign))));
    }
};

// Weights of one sign with magnitude below `least` go, and the first `n_ties` equal to it.
template <typename T>
struct Threshold {
    Bits<T> least = 0;
    Index n_ties = 0;
};

// The exact threshold for "the n weakest of this sign".  The histogram tells the bin where the
// n-th lies; only that bin is looked at value by value.
template <typename T>
void find_thresholds(const T* weights, Index n, const Histogram<T>& histogram, double zeta,
                     Threshold<T> found[2]) {
    constexpr int kBins = Histogram<T>::kBins, kShift = Histogram<T>::kShift;
    Index bin_of[2], rest_of[2];
    for (int sign = 0; sign < 2; ++sign) {
        Index rest = histogram.replaced(sign, zeta), bin = 0;
        while (bin < kBins && histogram.bins[sign * kBins + bin] <= rest) {
            rest -= histogram.bins[sign * kBins + bin++];
        }
        bin_of[sign] = bin;
        rest_of[sign] = rest;
    }
    std::vector<Bits<T>> inside[2];
    for (Index k = 0; k < n; ++k) {
        const bool sign = weights[k] >= 0;
        const Bits<T> bits = magnitude_bits(weights[k]);
        if (Index(bits >> kShift) == bin_of[sign]) inside[sign].push_back(bits);
    }
    for (int sign = 0; sign < 2; ++sign) {
        auto& values = inside[sign];
        const Index rest = rest_of[sign];
        if (rest == 0) {  // nothing of this bin goes, everything below it does
            found[sign] = {Bits<T>(bin_of[sign]) << kShift, 0};
            continue;
        }
        std::nth_element(values.begin(), values.begin() + rest, values.end());
        const Bits<T> least = values[std::size_t(rest)];
        const Index lower = std::count_if(values.begin(), values.begin() + rest,
                                          [&](Bits<T> b) { return b < least; });
        found[sign] = {least, rest - lower};
    }
}

// The arrays a rewiring moves: weights and what is carried along, at most a few.  The number of
// carried arrays is a compile-time constant for the usual ones, so the inner loops stay tight.
template <typename T, int n_carried>
struct Moved {
    T* weights;
    T* carried[n_carried > 0 ? n_carried : 1];

    void move(Index from, Index to) const {
        weights[to] = weights[from];
        for (int c = 0; c < n_carried; ++c) carried[c][to] = carried[c][from];
    }
    void start(Index slot, T weight) const {
        weights[slot] = weight;
        for (int c = 0; c < n_carried; ++c) carried[c][slot] = 0;
    }
};

// Room for new connections: the positions of every tile that its survivors leave empty.
std::vector<Index> empty_room(const Grid& grid, const std::vector<Index>& survivor_starts) {
    std::vector<Index> room(std::size_t(grid.n_tiles()));
    for (Index t = 0; t < grid.n_tiles(); ++t) {
        room[t] = grid.tile(t).area() - (survivor_starts[t + 1] - survivor_starts[t]);
    }
    return room;
}

// Merges survivors and new connections of one tile, from the last to the first.  `place` is told
// where each survivor goes, `grow` where each new connection is.
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
                            int n_threads) {
    grid.check();
    std::vector<Index> none(std::size_t(grid.n_tiles()) + 1, 0);
    DrawnRanks drawn = draw_distinct(empty_room(grid, none), n_connections, seed, n_threads);
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

// Survivors move to the left of the arrays (indices: of a fresh array); returns where each tile's
// survivors begin.
template <typename T, int n_carried>
std::vector<Index> compact(const Topology& topology, const Moved<T, n_carried>& values,
                           const Threshold<T> threshold[2], Packed* packed) {
    const Index n_tiles = topology.grid().n_tiles();
    const auto starts = topology.starts();
    const Packed* old = topology.packed().data();
    std::vector<Index> survivor_starts(std::size_t(n_tiles) + 1, 0);
    Index kept = 0, ties_left[2] = {threshold[0].n_ties, threshold[1].n_ties};
    const Bits<T> least[2] = {threshold[0].least, threshold[1].least};
    for (Index t = 0; t < n_tiles; ++t) {
        for (Index slot = starts[t]; slot < starts[t + 1]; ++slot) {
            const T w = values.weights[slot];
            const bool sign = w >= 0;
            const Bits<T> bits = magnitude_bits(w);
            bool keep = bits >= least[sign];
            if (bits == least[sign] && ties_left[sign] > 0) [[unlikely]] {
                --ties_left[sign];
                keep = false;
            }
            packed[kept] = old[slot];
            values.move(slot, kept);
            kept += keep;
        }
        survivor_starts[t + 1] = kept;
    }
    return survivor_starts;
}

template <typename T>
Buffer<T> drawn_weights(GrownWeights how, Index n, int n_threads) {
    Buffer<T> weights(n);
    parallel_for(divided_up(n, kChunk), n_threads, [&](Index c) {
        kernels<T>().normal(how.seed, T(how.sigma), weights.data() + c * kChunk, c * kChunk,
                            std::min(kChunk, n - c * kChunk));
    });
    return weights;
}

template <typename T, int n_carried>
Rewired rewire_moved(const Topology& topology, const Moved<T, n_carried>& values, double zeta,
                     GrownWeights first_weights, std::uint64_t seed, int n_threads) {
    const Grid& grid = topology.grid();
    const Index n = topology.n_connections();
    Threshold<T> threshold[2];
    {
        const Histogram<T> histogram(values.weights, n, n_threads);
        find_thresholds(values.weights, n, histogram, zeta, threshold);
    }
    // From the left, where the survivors go, the merge spreads them to the right again.  So all
    // arrays but the indices are changed in place, and the peak is one index array more.
    Buffer<Packed> packed(n);
    const std::vector<Index> survivors = compact(topology, values, threshold, packed.data());
    const Index n_grown = n - survivors.back();
    const DrawnRanks drawn = draw_distinct(empty_room(grid, survivors), n_grown, seed, n_threads);
    std::vector<Index> starts = summed(survivors, drawn.starts);
    const bool zeros = first_weights.sigma == 0;
    const Buffer<T> fresh = drawn_weights<T>(first_weights, zeros ? 0 : n_grown, n_threads);
    Index next_grown = n_grown;
    for (Index t = grid.n_tiles() - 1; t >= 0; --t) {
        const Index first = survivors[t];
        merge_backwards(
            grid.tile(t), survivors[t + 1] - first, [&](Index s) { return packed[first + s]; },
            drawn.ranks.data() + drawn.starts[t], drawn.starts[t + 1] - drawn.starts[t],
            starts[t + 1],
            [&](Index slot, Index s, Packed p) {
                packed[slot] = p;
                values.move(first + s, slot);
            },
            [&](Index slot, Packed p) {
                packed[slot] = p;
                --next_grown;
                values.start(slot, zeros ? T(0) : fresh[next_grown]);
            });
    }
    return {
        std::make_shared<Topology>(Topology::Trusted{}, grid, std::move(starts), std::move(packed)),
        n_grown};
}

}  // namespace

template <typename T>
Rewired rewire_by_sign(const Topology& topology, T* weights, const std::vector<T*>& carried,
                       double zeta, GrownWeights first_weights, std::uint64_t seed, int n_threads) {
    if (!(zeta >= 0 && zeta < 1)) throw std::invalid_argument("zeta must be in [0, 1)");
    const auto run = [&](auto moved) {
        return rewire_moved(topology, moved, zeta, first_weights, seed, n_threads);
    };
    switch (carried.size()) {
        case 0:
            return run(Moved<T, 0>{weights, {nullptr}});
        case 1:
            return run(Moved<T, 1>{weights, {carried[0]}});
        case 2:
            return run(Moved<T, 2>{weights, {carried[0], carried[1]}});
        default:
            throw std::invalid_argument("at most two arrays can be carried along");
    }
}

Regrown regrow_uniformly(const Topology& topology, std::span<const Index> kept, Index count,
                         std::uint64_t seed, int n_threads) {
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
    DrawnRanks drawn = draw_distinct(empty_room(grid, kept_starts), count, seed, n_threads);
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

#define RATOON_INSTANTIATE(T)                                                            \
    template Rewired rewire_by_sign(const Topology&, T*, const std::vector<T*>&, double, \
                                    GrownWeights, std::uint64_t, int);
RATOON_INSTANTIATE(float)
RATOON_INSTANTIATE(double)

}  // namespace ratoon
