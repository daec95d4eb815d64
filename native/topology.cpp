#include "topology.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace ratoon {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

// The side of about `wanted` that cuts n into one, two, four or a multiple of eight equal parts, so
// that two, four and eight threads have equal shares: with 7.2 tiles one of two threads does four.
Index even_side(Index n, double wanted) {
    const double parts = double(n) / wanted;
    if (parts <= 1.0) return n;
    // Up to eight the nearest by ratio, beyond it the nearest multiple of eight.
    Index count = parts < 2.83 ? 2 : parts < 5.66 ? 4 : Index(parts / 8 + 0.5) * 8;
    while (divided_up(n, count) > kTileSide) count = divided_up(count + 1, Index(8)) * 8;
    return divided_up(n, count);
}

}  // namespace

Grid Grid::suited_to(Index n_in, Index n_out, Index n_connections) {
    const double area = double(n_in) * double(n_out);
    const double density = std::max(double(n_connections), 1.0) / area;
    // An output tile is long enough that an input meets about 2.5 of its outputs, better 5: its
    // row, once loaded, is then used more often.  But a tile of 9,000 rows of eight samples is as
    // much as the second-level cache should hold; and there are to be four tiles for threads to
    // share, or eight where that costs nothing.
    const double longer = std::min({5.0 / density, double(n_out) / 4, 9000.0});
    const double wanted_out = std::max({2.5 / density, longer, double(n_out) / 8, 64.0});
    // Backward, a thread goes through all outputs once for every strip of inputs.  Output layers
    // share out by strips alone.
    const double wider = n_out <= kNarrow ? 0.0 : std::min(double(n_in) / 4, 16384.0);
    const double wanted_in = std::max({wider, double(n_in) / 8, 512.0});
    const Index tile_out = even_side(n_out, std::min(wanted_out, double(kTileSide)));
    const Index inputs = even_side(n_in, std::min(wanted_in, double(kTileSide)));
    const Index tile_in = divided_up(inputs, kGroup) * kGroup;
    // Grouping pays while the outputs of a tile fit the second-level cache, and harms beyond.
    return {n_in, n_out, tile_in, tile_out, tile_out <= 16384};
}

void Grid::check() const {
    if (n_in < 1 || n_out < 1) refuse("a layer needs at least one input and one output");
    if (n_in > INT32_MAX || n_out > INT32_MAX) refuse("a layer is at most 2^31 - 1 neurons wide");
    if (tile_in < 1 || tile_in > kTileSide || tile_in % kGroup != 0) {
        refuse("tile_in must be a multiple of 16 in [16, 65536]");
    }
    if (tile_out < 1 || tile_out > kTileSide) refuse("tile_out must be in [1, 65536]");
    // Every tile costs a few words, connected or not.
    if (n_tiles() > Index(1) << 24) refuse("more than 2^24 tiles: the layer is too wide both ways");
}

TopologyPtr Topology::checked(const Grid& grid, std::span<const Index> starts,
                              std::span<const Packed> packed) {
    grid.check();
    const Index n_tiles = grid.n_tiles(), n = Index(packed.size());
    if (Index(starts.size()) != n_tiles + 1) refuse("starts must have one entry per tile plus one");
    if (starts[0] != 0 || starts[std::size_t(n_tiles)] != n) {
        refuse("starts must begin at 0 and end at the number of connections");
    }
    for (Index t = 0; t < n_tiles; ++t) {
        if (starts[t + 1] < starts[t] || starts[t + 1] > n) refuse("starts must not decrease");
        const Tile tile = grid.tile(t);
        std::uint64_t least_key = 0;
        for (Index slot = starts[t]; slot < starts[t + 1]; ++slot) {
            const Packed p = packed[std::size_t(slot)];
            if ((p >> 16) >= tile.inputs || (p & 0xffffu) >= tile.outputs) {
                refuse("connection " + std::to_string(slot) + " is outside its tile");
            }
            const std::uint64_t key = tile.key(p);
            if (key < least_key) {
                refuse("connection " + std::to_string(slot) + " is out of order or a duplicate");
            }
            least_key = key + 1;
        }
    }
    Buffer<Packed> copy(n);
    std::copy(packed.begin(), packed.end(), copy.data());
    return std::make_shared<Topology>(
        Trusted{}, grid, std::vector<Index>(starts.begin(), starts.end()), std::move(copy));
}

TopologyPtr Topology::from_pairs(const Grid& grid, std::span<const Index> inputs,
                                 std::span<const Index> outputs, Index* order) {
    grid.check();
    if (inputs.size() != outputs.size()) refuse("as many inputs as outputs are needed");
    const Index n = Index(inputs.size()), n_tiles = grid.n_tiles(), tiles_in = grid.tiles_in();
    std::vector<Index> starts(std::size_t(n_tiles) + 1, 0);
    for (Index k = 0; k < n; ++k) {
        if (inputs[k] < 0 || inputs[k] >= grid.n_in || outputs[k] < 0 || outputs[k] >= grid.n_out) {
            refuse("connection " + std::to_string(k) + " (" + std::to_string(inputs[k]) + ", " +
                   std::to_string(outputs[k]) + ") is outside the layer");
        }
        ++starts[outputs[k] / grid.tile_out * tiles_in + inputs[k] / grid.tile_in + 1];
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());

    struct Keyed {
        std::uint64_t key;
        Index from;
    };
    std::vector<Keyed> keyed(static_cast<std::size_t>(n));
    std::vector<Index> next(starts.begin(), starts.end() - 1);
    for (Index k = 0; k < n; ++k) {
        const Index in_tile = inputs[k] / grid.tile_in, out_tile = outputs[k] / grid.tile_out;
        const Packed p = Packed((inputs[k] - grid.first_input(in_tile)) << 16 |
                                (outputs[k] - grid.first_output(out_tile)));
        const Index t = out_tile * tiles_in + in_tile;
        keyed[std::size_t(next[t]++)] = {grid.tile(t).key(p), k};
    }
    Buffer<Packed> packed(n);
    for (Index t = 0; t < n_tiles; ++t) {
        const Tile tile = grid.tile(t);
        std::sort(keyed.begin() + starts[t], keyed.begin() + starts[t + 1],
                  [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
        for (Index slot = starts[t]; slot < starts[t + 1]; ++slot) {
            const Keyed& here = keyed[std::size_t(slot)];
            if (slot > starts[t] && here.key == keyed[std::size_t(slot) - 1].key) {
                refuse("connection (" + std::to_string(inputs[here.from]) + ", " +
                       std::to_string(outputs[here.from]) + ") is given twice");
            }
            packed[slot] = tile.at(here.key);
            if (order != nullptr) order[slot] = here.from;
        }
    }
    return std::make_shared<Topology>(Trusted{}, grid, std::move(starts), std::move(packed));
}

void Topology::expand(Index* inputs, Index* outputs) const {
    for (Index t = 0; t < grid_.n_tiles(); ++t) {
        const Index first_in = grid_.first_input(t % grid_.tiles_in());
        const Index first_out = grid_.first_output(t / grid_.tiles_in());
        for (Index slot = starts_[t]; slot < starts_[t + 1]; ++slot) {
            inputs[slot] = first_in + (packed_[slot] >> 16);
            outputs[slot] = first_out + (packed_[slot] & 0xffffu);
        }
    }
}

const Runs& Topology::runs(Runs::Of which) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& found = runs_[int(which)];
    if (found == nullptr) found = std::make_unique<const Runs>(*this, which);
    return *found;
}

const Runs* Topology::runs_if_frequent(Runs::Of which) const {
    constexpr int kEnough = 3;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (runs_[int(which)] == nullptr && ++times_asked_[int(which)] < kEnough) return nullptr;
    }
    return &runs(which);
}

void Topology::degrees(Index* of_inputs, Index* of_outputs) const {
    std::fill_n(of_inputs, grid_.n_in, 0);
    std::fill_n(of_outputs, grid_.n_out, 0);
    for (Index t = 0; t < grid_.n_tiles(); ++t) {
        Index* inputs = of_inputs + grid_.first_input(t % grid_.tiles_in());
        Index* outputs = of_outputs + grid_.first_output(t / grid_.tiles_in());
        for (Index slot = starts_[t]; slot < starts_[t + 1]; ++slot) {
            ++inputs[packed_[slot] >> 16];
            ++outputs[packed_[slot] & 0xffffu];
        }
    }
}

}  // namespace ratoon
