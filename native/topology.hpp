// Topology: which connections a layer has, stored as *tiled flat COO*.
//
// The n_in x n_out plane is cut into tiles of at most 65,536 inputs by 65,536 outputs, so that a
// connection inside its tile needs one 32-bit word.  Tile t = out_tile * tiles_in + in_tile owns
// the slots starts[t] .. starts[t + 1]; inside a tile the connections are sorted by their *key*.
//
// A Topology can only be made through functions that check it.  Kernels take nothing else, so an
// index that was not checked never reaches them.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include "common.hpp"
#include "runs.hpp"

namespace ratoon {

constexpr Index kTileSide = 65536;
constexpr Index kGroup = 16;

// One tile's size and the order of the positions inside it.
//
// Plain order: by (input, output).  Grouped order: by (input / 16, output, input % 16), so that
// neighbouring connections differ in their input: the backward pass adds to the input's row, and
// adding twice in a row to one place stalls the processor.
struct Tile {
    std::uint32_t inputs, outputs;
    bool grouped;
    std::uint64_t reciprocal;       // of outputs, see at()
    std::uint64_t last_reciprocal;  // of the width of the last, narrower group

    Tile(Index n_inputs, Index n_outputs, bool is_grouped)
        : inputs(std::uint32_t(n_inputs)), outputs(std::uint32_t(n_outputs)), grouped(is_grouped) {
        reciprocal = ~std::uint64_t(0) / outputs + 1;
        const std::uint32_t width = inputs % std::uint32_t(kGroup);
        last_reciprocal = width == 0 ? 0 : ~std::uint64_t(0) / width + 1;
    }

    Index area() const { return Index(inputs) * Index(outputs); }

    // Place of a connection in the tile's order, below area() <= 2^32.
    std::uint64_t key(Packed packed) const {
        return grouped ? key<true>(packed) : key<false>(packed);
    }
    // The connection at a place of that order: the inverse of key().
    Packed at(std::uint64_t key) const { return grouped ? at<true>(key) : at<false>(key); }

    // The same for loops that are written once per order.
    template <bool in_groups>
    std::uint64_t key(Packed packed) const {
        // No part of the sum exceeds it, so 32 bits suffice and loops can be vectorised.
        const std::uint32_t input = packed >> 16, output = packed & 0xffffu;
        if (!in_groups) return input * outputs + output;
        const std::uint32_t group = std::uint32_t(kGroup), first = input & ~(group - 1);
        const std::uint32_t width = inputs - first < group ? inputs - first : group;
        return first * outputs + output * width + (input - first);
    }

    template <bool in_groups>
    Packed at(std::uint64_t key) const {
        if (!in_groups) {
            const std::uint64_t input = divide(key, outputs, reciprocal);
            return Packed(input << 16 | (key - input * outputs));
        }
        const std::uint64_t first = divide(key / kGroup, outputs, reciprocal) * kGroup;
        const std::uint64_t rest = key - first * outputs;
        if (inputs - first >= kGroup) {
            return Packed((first + rest % kGroup) << 16 | rest / kGroup);
        }
        const std::uint64_t width = inputs - first;
        const std::uint64_t output = divide(rest, width, last_reciprocal);
        return Packed((first + rest - output * width) << 16 | output);
    }

  private:
    // Exact for numerators below 2^32 and divisors up to 2^16; a divisor of 1 wraps to 0.
    static std::uint64_t divide(std::uint64_t a, std::uint64_t by, std::uint64_t reciprocal) {
        if (by == 1) return a;
        return std::uint64_t((static_cast<unsigned __int128>(a) * reciprocal) >> 64);
    }
};

// How the plane is divided into tiles.  It depends on shape and number of connections only, never
// on the machine.
struct Grid {
    Index n_in, n_out;
    Index tile_in, tile_out;
    bool grouped;

    // The tiling for a layer with about this many connections; see docs/performance.md.
    static Grid suited_to(Index n_in, Index n_out, Index n_connections);
    void check() const;  // throws std::invalid_argument

    Index tiles_in() const { return divided_up(n_in, tile_in); }
    Index tiles_out() const { return divided_up(n_out, tile_out); }
    Index n_tiles() const { return tiles_in() * tiles_out(); }
    Index first_input(Index in_tile) const { return in_tile * tile_in; }
    Index first_output(Index out_tile) const { return out_tile * tile_out; }
    Tile tile(Index in_tile, Index out_tile) const {
        const Index inputs = n_in - in_tile * tile_in, outputs = n_out - out_tile * tile_out;
        return {inputs < tile_in ? inputs : tile_in, outputs < tile_out ? outputs : tile_out,
                grouped};
    }
    Tile tile(Index t) const { return tile(t % tiles_in(), t / tiles_in()); }
    bool operator==(const Grid&) const = default;
};

class Topology {
  public:
    // Checks everything about arrays that come from outside, then copies them.
    static std::shared_ptr<const Topology> checked(const Grid& grid, std::span<const Index> starts,
                                                   std::span<const Packed> packed);
    // Builds from pairs in any order; refuses pairs out of range and duplicates.  order[k], when
    // requested, is the index of slot k in the given arrays.
    static std::shared_ptr<const Topology> from_pairs(const Grid& grid,
                                                      std::span<const Index> inputs,
                                                      std::span<const Index> outputs, Index* order);

    const Grid& grid() const { return grid_; }
    Index n_connections() const { return packed_.size(); }
    std::span<const Index> starts() const { return starts_; }
    std::span<const Packed> packed() const { return {packed_.data(), std::size_t(packed_.size())}; }
    // Global input and output of every slot.
    void expand(Index* inputs, Index* outputs) const;
    // How many connections each input and each output has.
    void degrees(Index* of_inputs, Index* of_outputs) const;

    // The connections output by output, or input by input; made when first asked for, and kept.
    const Runs& runs(Runs::Of which) const;
    // The same once it was asked for several times, and null before: a few passes do not pay.
    const Runs* runs_if_frequent(Runs::Of which) const;

    // Only for code that builds valid topologies by construction (rewire.cpp).
    struct Trusted {};
    Topology(Trusted, const Grid& grid, std::vector<Index> starts, Buffer<Packed> packed)
        : grid_(grid), starts_(std::move(starts)), packed_(std::move(packed)) {}

  private:
    Grid grid_;
    std::vector<Index> starts_;
    Buffer<Packed> packed_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<const Runs> runs_[2];
    mutable int times_asked_[2] = {0, 0};
};

using TopologyPtr = std::shared_ptr<const Topology>;

}  // namespace ratoon
