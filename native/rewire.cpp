#include "rewire.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

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

// Weights of one sign with magnitude below `least` go, and the first `n_ties` equal to it.
template <typename T>
struct Threshold {
    Bits<T> least = 0;
    Index n_ties = 0;
};

// The exact threshold for "the n weakest of this sign".  A histogram over the upper bits finds the
// bin where the n-th lies; only that bin is looked at value by value.
template <typename T>
void find_thresholds(const T* weights, Index n, PruneCounts counts, int n_threads,
                     Threshold<T> found[2]) {
    constexpr int kBins = 1 << 13, kShift = int(sizeof(T)) * 8 - 1 - 13;
    const Index n_chunks = divided_up(n, kChunk * 4);
    std::vector<std::atomic<Index>> bins(2 * kBins);
    parallel_for(n_chunks, n_threads, [&](Index c) {
        std::vector<std::uint32_t> mine(2 * kBins, 0);
        for (Index k = c * kChunk * 4; k < std::min(n, (c + 1) * kChunk * 4); ++k) {
            ++mine[std::size_t(weights[k] >= 0) * kBins +
                   std::size_t(magnitude_bits(weights[k]) >> kShift)];
        }
        for (int b = 0; b < 2 * kBins; ++b) {
            if (mine[b] > 0) bins[b].fetch_add(mine[b], std::memory_order_relaxed);
        }
    });
    const Index wanted[2] = {counts.n_negative, counts.n_positive};
    Index bin_of[2], below[2];
    for (int sign = 0; sign < 2; ++sign) {
        Index sum = 0, bin = 0;
        while (bin < kBins && sum + bins[sign * kBins + bin] <= wanted[sign]) {
            sum += bins[sign * kBins + bin++];
        }
        bin_of[sign] = bin;
        below[sign] = sum;
    }
    std::vector<Bits<T>> inside[2];
    for (Index k = 0; k < n; ++k) {
        const bool sign = weights[k] >= 0;
        const Bits<T> bits = magnitude_bits(weights[k]);
        if (Index(bits >> kShift) == bin_of[sign]) inside[sign].push_back(bits);
    }
    for (int sign = 0; sign < 2; ++sign) {
        const Index rest = wanted[sign] - below[sign];
        auto& values = inside[sign];
        if (rest <= 0 || rest >= Index(values.size())) {
            // Nothing of this bin goes: everything below it does.
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

template <typename T>
Index count_negative(const T* weights, Index n, int n_threads) {
    std::atomic<Index> total{0};
    parallel_for(divided_up(n, kChunk), n_threads, [&](Index c) {
        Index count = 0;
        for (Index k = c * kChunk; k < std::min(n, (c + 1) * kChunk); ++k)
            count += !(weights[k] >= 0);
        total.fetch_add(count, std::memory_order_relaxed);
    });
    return total.load();
}

template <typename T>
Rewired rewire_by_sign(const Topology& topology, T* weights, const std::vector<T*>& carried,
                       PruneCounts counts, std::uint64_t seed, int n_threads) {
    const Grid& grid = topology.grid();
    const Index n = topology.n_connections(), n_tiles = grid.n_tiles();
    const Index n_grown = counts.n_negative + counts.n_positive;
    const auto starts = topology.starts();
    const Packed* old = topology.packed().data();

    // A weight that is no number counts as negative here and below, so the sums always agree.
    const Index n_negative = count_negative(weights, n, n_threads);
    if (counts.n_negative < 0 || counts.n_negative > n_negative || counts.n_positive < 0 ||
        counts.n_positive > n - n_negative) {
        throw std::invalid_argument("more connections of one sign are to go than there are");
    }
    Threshold<T> threshold[2];
    find_thresholds(weights, n, counts, n_threads, threshold);

    // Survivors move to the left of the same arrays (of a fresh one for the indices); from there
    // the merge below spreads them to the right again.  So the peak is one index array more.
    Buffer<Packed> packed(n);
    std::vector<Index> survivor_starts(std::size_t(n_tiles) + 1, 0);
    Index kept = 0;
    Index ties_left[2] = {threshold[0].n_ties, threshold[1].n_ties};
    for (Index t = 0; t < n_tiles; ++t) {
        for (Index slot = starts[t]; slot < starts[t + 1]; ++slot) {
            const T w = weights[slot];
            const bool sign = w >= 0;
            const Bits<T> bits = magnitude_bits(w);
            bool keep = bits >= threshold[sign].least;
            if (bits == threshold[sign].least && ties_left[sign] > 0) {
                --ties_left[sign];
                keep = false;
            }
            packed[kept] = old[slot];
            weights[kept] = w;
            for (T* values : carried) values[kept] = values[slot];
            kept += keep;
        }
        survivor_starts[t + 1] = kept;
    }

    DrawnRanks drawn = draw_distinct(empty_room(grid, survivor_starts), n_grown, seed, n_threads);
    std::vector<Index> new_starts = summed(survivor_starts, drawn.starts);
    Buffer<Index> grown(n_grown);
    Index next_grown = n_grown;
    for (Index t = n_tiles - 1; t >= 0; --t) {
        const Index first = survivor_starts[t];
        merge_backwards(
            grid.tile(t), survivor_starts[t + 1] - first,
            [&](Index s) { return packed[first + s]; }, drawn.ranks.data() + drawn.starts[t],
            drawn.starts[t + 1] - drawn.starts[t], new_starts[t + 1],
            [&](Index slot, Index s, Packed p) {
                packed[slot] = p;
                weights[slot] = weights[first + s];
                for (T* values : carried) values[slot] = values[first + s];
            },
            [&](Index slot, Packed p) {
                packed[slot] = p;
                weights[slot] = 0;
                for (T* values : carried) values[slot] = 0;
                grown[--next_grown] = slot;
            });
    }
    return {std::make_shared<Topology>(Topology::Trusted{}, grid, std::move(new_starts),
                                       std::move(packed)),
            std::move(grown)};
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

template Rewired rewire_by_sign(const Topology&, float*, const std::vector<float*>&, PruneCounts,
                                std::uint64_t, int);
template Rewired rewire_by_sign(const Topology&, double*, const std::vector<double*>&, PruneCounts,
                                std::uint64_t, int);
template Index count_negative(const float*, Index, int);
template Index count_negative(const double*, Index, int);

}  // namespace ratoon
