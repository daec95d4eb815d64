// The connections of a layer output by output, and input by input: for wide minibatches.
//
// Slots are in the order of tiles, which suits a few samples.  With 32 samples and more it pays to
// keep the row of an output, or of an input, in registers over all of its connections (isa/runs.hpp).
// A *run* is the connections of one output in the order of their inputs, or of one input in the
// order of its outputs.  Additions are those of slot order, so results have the same bits.
#pragma once

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
    // Cuts the runs into parts of about equally many links; where part p of n begins.
    Index begin_of(Index part, Index n_parts) const;

    // Whether passes over a layer with rows of so many lanes are faster by runs.
    static bool pay(const Topology& topology, Index lanes, Index bytes_per_number);

  private:
    std::vector<Index> starts_;
    Buffer<Link> links_;
};

}  // namespace ratoon
