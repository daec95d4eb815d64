// Growing connections at given positions: a merge, tile by tile.  And moving to another tiling.
#include <algorithm>
#include <vector>

#include "absent.hpp"

namespace ratoon {
namespace {

// Tile in the upper half, key inside it in the lower: sorts as slots do.
std::vector<std::uint64_t> coded(const Grid& grid, std::span<const Index> positions) {
    std::vector<std::uint64_t> codes;
    codes.reserve(positions.size());
    for (Index position : positions) {
        const Index input = position / grid.n_out, output = position % grid.n_out;
        const Index in_tile = input / grid.tile_in, out_tile = output / grid.tile_out;
        const auto local = Packed((input - grid.first_input(in_tile)) << 16 |
                                  (output - grid.first_output(out_tile)));
        codes.push_back(std::uint64_t(out_tile * grid.tiles_in() + in_tile) << 32 |
                        grid.tile(in_tile, out_tile).key(local));
    }
    std::sort(codes.begin(), codes.end());
    return codes;
}

}  // namespace

GrownAt grow_at(const Topology& topology, std::span<const Index> kept,
                std::span<const Index> positions) {
    check_kept(topology, kept);
    const Grid& grid = topology.grid();
    check_positions(grid, positions);
    const auto codes = coded(grid, positions);
    const auto starts = topology.starts();
    const Packed* old = topology.packed().data();
    const Index n = Index(kept.size() + codes.size());
    std::vector<Index> new_starts(std::size_t(grid.n_tiles()) + 1, 0);
    Buffer<Packed> packed(n);
    Buffer<Index> origin(n);
    std::size_t next_kept = 0, next_grown = 0;
    Index slot = 0;
    for (Index t = 0; t < grid.n_tiles(); ++t) {
        const Tile tile = grid.tile(t);
        // Above any key, so that the other side is merged first.
        constexpr std::uint64_t kNone = ~std::uint64_t(0);
        std::uint64_t last = kNone;
        while (true) {
            const bool has_kept = next_kept < kept.size() && kept[next_kept] < starts[t + 1];
            const bool has_grown = next_grown < codes.size() && Index(codes[next_grown] >> 32) == t;
            if (!has_kept && !has_grown) break;
            const std::uint64_t kept_key = has_kept ? tile.key(old[kept[next_kept]]) : kNone;
            const std::uint64_t grown_key = has_grown ? codes[next_grown] & 0xffffffffu : kNone;
            const std::uint64_t key = std::min(kept_key, grown_key);
            if (key == last) {
                throw std::invalid_argument("a position to grow at is taken already");
            }
            last = key;
            packed[slot] = tile.at(key);
            origin[slot++] = kept_key <= grown_key ? kept[next_kept++] : -1;
            next_grown += grown_key < kept_key;
        }
        new_starts[t + 1] = slot;
    }
    return {std::make_shared<Topology>(Topology::Trusted{}, grid, std::move(new_starts),
                                       std::move(packed)),
            std::move(origin)};
}

LaidOut laid_out(const Topology& topology, const Grid& grid) {
    grid.check();
    const Grid& old = topology.grid();
    if (grid.n_in != old.n_in || grid.n_out != old.n_out) {
        throw std::invalid_argument("the tiling is that of a layer of another shape");
    }
    const Packed* packed = topology.packed().data();
    const Index n = topology.n_connections();
    // Calls take(slot, tile, packed) with every connection's place in the new tiling.
    const auto for_each = [&](auto take) {
        for (Index t = 0; t < old.n_tiles(); ++t) {
            const Index first_in = old.first_input(t % old.tiles_in());
            const Index first_out = old.first_output(t / old.tiles_in());
            for (Index slot = topology.starts()[t]; slot < topology.starts()[t + 1]; ++slot) {
                const Index input = first_in + (packed[slot] >> 16);
                const Index output = first_out + (packed[slot] & 0xffffu);
                const Index in_tile = input / grid.tile_in, out_tile = output / grid.tile_out;
                const auto local = Packed((input - grid.first_input(in_tile)) << 16 |
                                          (output - grid.first_output(out_tile)));
                take(slot, out_tile * grid.tiles_in() + in_tile, local);
            }
        }
    };
    std::vector<Index> starts(std::size_t(grid.n_tiles()) + 1, 0);
    for_each([&](Index, Index t, Packed) { ++starts[t + 1]; });
    for (Index t = 0; t < grid.n_tiles(); ++t) starts[t + 1] += starts[t];
    struct Moved {
        std::uint32_t key;
        Packed packed;
        Index slot;
    };
    // For one tile at a time, so that the peak of memory is that of the result.
    Buffer<Packed> moved(n);
    Buffer<Index> order(n);
    std::vector<Index> next(starts.begin(), starts.end() - 1);
    for_each([&](Index slot, Index t, Packed local) {
        moved[next[t]] = local;
        order[next[t]++] = slot;
    });
    std::vector<Moved> tile_moved;
    for (Index t = 0; t < grid.n_tiles(); ++t) {
        const Tile tile = grid.tile(t);
        tile_moved.clear();
        for (Index k = starts[t]; k < starts[t + 1]; ++k) {
            tile_moved.push_back({std::uint32_t(tile.key(moved[k])), moved[k], order[k]});
        }
        std::sort(tile_moved.begin(), tile_moved.end(),
                  [](const Moved& a, const Moved& b) { return a.key < b.key; });
        for (std::size_t k = 0; k < tile_moved.size(); ++k) {
            moved[starts[t] + Index(k)] = tile_moved[k].packed;
            order[starts[t] + Index(k)] = tile_moved[k].slot;
        }
    }
    return {
        std::make_shared<Topology>(Topology::Trusted{}, grid, std::move(starts), std::move(moved)),
        std::move(order)};
}

}  // namespace ratoon
