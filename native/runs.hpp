// The connections of a layer output by output, and input by input: for wide minibatches.
//
// Slots are in the order of tiles, which suits a few samples.  With 32 samples and more it pays to
// keep the row of an output, or of an input, in registers over all of its connections
// (isa/runs.hpp). A *run* is the connections of one output in the order of their inputs, or of one
// input in the order of its outputs.  Additions are those of slot order, so results have the same
// bits.
#pragma once

#include <span>
#include <vector>

#include "kernels.hpp"

namespace ratoon {

class Topology;

// Rows of more lanes are cut into blocks of this many.
constexpr Index kMostLanes = 128;

// All runs of one side.  Run i is the links starts[i] .. starts[i + 1].
class Runs {
  public:
    enum class Of { outputs, inputs };
    Runs(const Topology& topology, Of which);

    const Link* links() const { return links_.data(); }
    const Index* starts() const { return starts_.data(); }
    Index n_runs() const { return Index(starts_.size()) - 1; }
    // Runs are worked on in parts of kAtOnce, whose rows stay in the first-level cache.
    static constexpr Index kAtOnce = 32;
    Index n_parts() const { return divided_up(n_runs(), kAtOnce); }

    // Slots that follow each other and belong to one part: all slots of a part of inputs.
    struct Slots {
        Index begin, end;
    };
    std::span<const Slots> slots_of(Index part) const {
        const auto first = std::size_t(part_starts_[std::size_t(part)]);
        return std::span(slots_).subspan(first,
                                         std::size_t(part_starts_[std::size_t(part) + 1]) - first);
    }

    // Whether passes over a layer with rows of so many lanes are faster by runs.
    static bool pay(const Topology& topology, Index lanes, Index bytes_per_number);

  private:
    std::vector<Index> starts_;
    Buffer<Link> links_;
    std::vector<Slots> slots_;  // part by part; of inputs only
    std::vector<Index> part_starts_;
};

}  // namespace ratoon
