#include "draw.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "random.hpp"
#include "sort.hpp"
#include "stop_watch.hpp"
#include "threads.hpp"

namespace ratoon {
namespace {

// So many draws or positions take a few milliseconds at most.
constexpr Index kBetweenChecks = 1 << 18;
constexpr Index kTilesBetweenChecks = 64;

// Finds the tile a global rank falls into: a table gets close, a short walk finishes.
class TileFinder {
  public:
    explicit TileFinder(const std::vector<Index>& room) : ends_(room) {
        std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
        for (std::size_t t = 0; t < room.size(); ++t) firsts_.push_back(ends_[t] - room[t]);
        const std::uint64_t total = std::uint64_t(ends_.back());
        // Cells so small that most lie within one tile: a walk is a misprediction.  But not
        // so many that the table fills the first cache.
        const std::uint64_t cells = std::max<std::uint64_t>(4 * room.size(), 1 << 12);
        while ((total >> shift_) > cells) ++shift_;
        table_.resize((total >> shift_) + 1);
        Index tile = 0;
        for (std::size_t cell = 0; cell < table_.size(); ++cell) {
            while (tile + 1 < Index(room.size()) && std::uint64_t(ends_[tile]) <= cell << shift_) {
                ++tile;
            }
            table_[cell] = std::int32_t(tile);
        }
    }
    Index total() const { return ends_.back(); }
    Index first(Index tile) const { return firsts_[tile]; }
    // The tile at the beginning of each cell of 2^shift ranks.
    const std::int32_t* table() const { return table_.data(); }
    int shift() const { return shift_; }
    Index operator()(std::uint64_t rank) const {
        Index tile = table_[rank >> shift_];
        while (std::uint64_t(ends_[tile]) <= rank) ++tile;
        return tile;
    }

  private:
    std::vector<Index> ends_, firsts_;
    std::vector<std::int32_t> table_;
    int shift_ = 0;
};

using Extra = std::vector<std::pair<Index, std::uint32_t>>;  // (tile, rank)

// One large round of independent draws, sorted per tile, repetitions dropped in place.
struct Round {
    std::vector<Index> starts, sizes;  // tile t has room for starts[t + 1] - starts[t]
    Buffer<std::uint32_t> ranks;
    Extra extra;  // draws beyond the capacity of their tile

    bool holds(Index t, std::uint32_t rank) const {
        const std::uint32_t* first = ranks.data() + starts[t];
        return std::binary_search(first, first + sizes[t], rank);
    }
};

// Room for what is expected and two standard deviations more.  Draws beyond it go to the list
// of extra ones, which costs less than counting all draws beforehand.
std::vector<Index> expected_starts(const std::vector<Index>& room, Index count, Index total) {
    std::vector<Index> starts(room.size() + 1, 0);
    for (std::size_t t = 0; t < room.size(); ++t) {
        const double expected = double(count) * double(room[t]) / double(total);
        starts[t + 1] = starts[t] + Index(expected + 2 * std::sqrt(expected)) + 4;
    }
    return starts;
}

// What a tile gets of the draws: ranks from first_rank to end_rank, slots from `next` to `end`.
struct Portion {
    std::uint64_t first_rank, end_rank;
    Index next, end;
};

// Draws n numbers from counter `first` on into the portions; returns those beyond the capacity.
template <bool is_shared>
Extra fill_portions(const TileFinder& find, std::uint64_t seed, Index first, Index n,
                    Portion* portions, std::uint32_t* slots) {
    constexpr Index kTogether = 256;
    std::uint64_t ranks[kTogether];
    const std::uint64_t total = std::uint64_t(find.total());
    const std::int32_t* const table = find.table();
    const int shift = find.shift();
    Extra extra;
    for (const Index end = first + n; first < end; first += kTogether) {
        const Index together = std::min(kTogether, end - first);
        for (Index i = 0; i < together; ++i) {
            ranks[i] = random_below(seed, std::uint64_t(first + i), total);
        }
        for (Index i = 0; i < together; ++i) {
            const std::uint64_t rank = ranks[i];
            Portion* portion = portions + table[rank >> shift];
            while (portion->end_rank <= rank) ++portion;
            const Index at =
                is_shared
                    ? std::atomic_ref<Index>(portion->next).fetch_add(1, std::memory_order_relaxed)
                    : portion->next++;
            if (at < portion->end) {
                slots[at] = std::uint32_t(rank - portion->first_rank);
            } else {
                extra.emplace_back(portion - portions, std::uint32_t(rank - portion->first_rank));
            }
        }
    }
    return extra;
}

Round draw_round(const TileFinder& find, const std::vector<Index>& room, Index count,
                 std::uint64_t seed, int n_threads, StopWatch& watch) {
    const Index n_tiles = Index(room.size());
    Round round{expected_starts(room, count, find.total()), {}, {}, {}};
    // Memory first, so that far too large a request fails at once.
    round.ranks = Buffer<std::uint32_t>(round.starts.back());
    round.sizes.resize(std::size_t(n_tiles));
    std::mutex extra_mutex;
    std::vector<Portion> portions;
    for (Index t = 0; t < n_tiles; ++t) {
        const std::uint64_t first = std::uint64_t(find.first(t));
        portions.push_back(
            {first, first + std::uint64_t(room[t]), round.starts[t], round.starts[t + 1]});
    }
    // The order in which threads fill a tile's portion is not defined: it is sorted below.
    const Index chunk = kBetweenChecks;
    parallel_for(divided_up(count, chunk), n_threads, [&](Index c) {
        if (watch.has_stopped()) return;
        const Index first = c * chunk, n = std::min(chunk, count - first);
        const auto fill = n_threads == 1 ? fill_portions<false> : fill_portions<true>;
        const Extra extra = fill(find, seed, first, n, portions.data(), round.ranks.data());
        const std::lock_guard lock(extra_mutex);
        round.extra.insert(round.extra.end(), extra.begin(), extra.end());
    });
    watch.check();
    parallel_for(n_tiles, n_threads, [&](Index t) {
        if (watch.has_stopped()) return;
        const Index n = std::min(portions[t].next, portions[t].end) - round.starts[t];
        Buffer<std::uint32_t> scratch(n);
        std::uint32_t* ranks = round.ranks.data() + round.starts[t];
        sort_uniform(ranks, n, scratch.data(), std::uint64_t(room[t]));
        round.sizes[t] = std::unique(ranks, ranks + n) - ranks;
    });
    watch.check();
    std::erase_if(round.extra, [&](const auto& one) { return round.holds(one.first, one.second); });
    return round;
}

void sort_distinct(Extra& extra) {
    std::sort(extra.begin(), extra.end());
    extra.erase(std::unique(extra.begin(), extra.end()), extra.end());
}

// Draws the ranks still missing, one small round after another, in addition to the extra ones.
Extra draw_missing(const TileFinder& find, const Round& round, Index wanted, std::uint64_t seed,
                   std::uint64_t counter, StopWatch& watch) {
    Extra extra = round.extra;
    sort_distinct(extra);
    const std::uint64_t total = std::uint64_t(find.total());
    while (Index missing = wanted - Index(extra.size())) {
        for (; missing > 0; --missing) {
            if (missing % kBetweenChecks == 0) watch.check();
            const std::uint64_t rank = random_below(seed, counter++, total);
            const Index t = find(rank);
            const auto local = std::uint32_t(rank - std::uint64_t(find.first(t)));
            if (!round.holds(t, local)) extra.emplace_back(t, local);
        }
        sort_distinct(extra);
    }
    return extra;
}

DrawnRanks merged(const Round& round, const Extra& extra, Index count, StopWatch& watch) {
    const Index n_tiles = Index(round.sizes.size());
    DrawnRanks drawn{std::vector<Index>(std::size_t(n_tiles) + 1, 0), Buffer<std::uint32_t>(count)};
    Index at = 0;
    auto next = extra.begin();
    for (Index t = 0; t < n_tiles; ++t) {
        if (t % kTilesBetweenChecks == 0) watch.check();
        drawn.starts[t] = at;
        const std::uint32_t* first = round.ranks.data() + round.starts[t];
        const std::uint32_t* last = first + round.sizes[t];
        for (; next != extra.end() && next->first == t; ++next) {
            const std::uint32_t* below = std::lower_bound(first, last, next->second);
            at += std::copy(first, below, drawn.ranks.data() + at) - (drawn.ranks.data() + at);
            drawn.ranks[at++] = next->second;
            first = below;
        }
        at += std::copy(first, last, drawn.ranks.data() + at) - (drawn.ranks.data() + at);
    }
    drawn.starts[n_tiles] = at;
    return drawn;
}

DrawnRanks complement(const DrawnRanks& left_out, const std::vector<Index>& room, Index count,
                      StopWatch& watch) {
    DrawnRanks drawn{std::vector<Index>(room.size() + 1, 0), Buffer<std::uint32_t>(count)};
    Index at = 0;
    for (std::size_t t = 0; t < room.size(); ++t) {
        drawn.starts[t] = at;
        Index skip = left_out.starts[t];
        for (Index rank = 0; rank < room[t]; ++rank) {
            if (rank % kBetweenChecks == 0) watch.check();
            if (skip < left_out.starts[t + 1] && left_out.ranks[skip] == std::uint32_t(rank)) {
                ++skip;
            } else {
                drawn.ranks[at++] = std::uint32_t(rank);
            }
        }
    }
    drawn.starts[room.size()] = at;
    return drawn;
}

// The same draw for layers that are not so sparse: one bit per place remembers what was drawn.
// The numbers are taken in the same order and the same ones are dropped, so the result is the same.
DrawnRanks draw_with_bits(const TileFinder& find, const std::vector<Index>& room, Index count,
                          std::uint64_t seed, StopWatch& watch) {
    const auto total = std::uint64_t(find.total());
    std::vector<std::uint64_t> bits(total / 64 + 1, 0);
    std::uint64_t counter = 0;
    for (Index missing = count; missing > 0;) {
        if (counter % std::uint64_t(kBetweenChecks) == 0) watch.check();
        const std::uint64_t rank = random_below(seed, counter++, total);
        const std::uint64_t mask = std::uint64_t(1) << (rank % 64);
        missing -= (bits[rank / 64] & mask) == 0;
        bits[rank / 64] |= mask;
    }
    DrawnRanks drawn{std::vector<Index>(room.size() + 1, 0), Buffer<std::uint32_t>(count)};
    Index at = 0;
    std::size_t tile = 0;
    for (std::uint64_t word = 0; word < bits.size(); ++word) {
        if (word % std::uint64_t(kBetweenChecks) == 0) watch.check();
        for (std::uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
            const std::uint64_t rank = word * 64 + std::uint64_t(std::countr_zero(rest));
            while (rank >= std::uint64_t(find.first(Index(tile)) + room[tile])) {
                drawn.starts[++tile] = at;
            }
            drawn.ranks[at++] = std::uint32_t(rank - std::uint64_t(find.first(Index(tile))));
        }
    }
    while (tile < room.size()) drawn.starts[++tile] = at;
    return drawn;
}

DrawnRanks draw_watched(const std::vector<Index>& room, Index count, std::uint64_t seed,
                        int n_threads, StopWatch& watch) {
    const TileFinder find(room);
    if (count < 0 || count > find.total()) {
        throw std::invalid_argument("more new connections are asked for than there are places");
    }
    if (count == 0) return {std::vector<Index>(room.size() + 1, 0), {}};
    if (count > find.total() / 2) {
        const Index left_out = find.total() - count;
        return complement(draw_watched(room, left_out, seed, n_threads, watch), room, count, watch);
    }
    constexpr Index kBitsPerDraw = 64;  // so the bits take at most twice the room of the result
    if (find.total() / count < kBitsPerDraw) {
        return draw_with_bits(find, room, count, seed, watch);
    }
    const Round round = draw_round(find, room, count, seed, n_threads, watch);
    Index held = 0;
    for (Index size : round.sizes) held += size;
    const auto extra = draw_missing(find, round, count - held, seed, std::uint64_t(count), watch);
    return merged(round, extra, count, watch);
}

}  // namespace

DrawnRanks draw_distinct(const std::vector<Index>& room, Index count, std::uint64_t seed,
                         int n_threads, const ShouldStop& should_stop) {
    StopWatch watch(should_stop);
    return draw_watched(room, count, seed, n_threads, watch);
}

}  // namespace ratoon
