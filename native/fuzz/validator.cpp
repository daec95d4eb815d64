// Validation of arrays as a topology, the only way into native code.
//
// What the validator accepts is checked again here, in another, slower way.  It must refuse by
// std::invalid_argument only.
#include <set>
#include <stdexcept>
#include <utility>

#include "bytes.hpp"
#include "topology.hpp"

using namespace ratoon;
using ratoon::fuzz::Bytes;
using ratoon::fuzz::must;

namespace {

void look_again(const Topology& topology) {
    const Grid& grid = topology.grid();
    const Index n = topology.n_connections();
    std::vector<Index> inputs(static_cast<std::size_t>(n)), outputs(inputs);
    topology.expand(inputs.data(), outputs.data());
    std::set<std::pair<Index, Index>> pairs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        must(inputs[k] >= 0 && inputs[k] < grid.n_in, "an input exists");
        must(outputs[k] >= 0 && outputs[k] < grid.n_out, "an output exists");
        must(pairs.emplace(inputs[k], outputs[k]).second, "a connection is there once");
    }
    if (grid.n_in <= 100000 && grid.n_out <= 100000) {
        std::vector<Index> of_inputs(static_cast<std::size_t>(grid.n_in));
        std::vector<Index> of_outputs(static_cast<std::size_t>(grid.n_out));
        topology.degrees(of_inputs.data(), of_outputs.data());
        Index sum = 0;
        for (const Index degree : of_inputs) sum += degree;
        for (const Index degree : of_outputs) sum += degree;
        must(sum == 2 * n, "degrees count every connection twice");
    }
    // The same pairs, given in any order, make the same topology.
    std::vector<Index> order(inputs.size());
    std::reverse(inputs.begin(), inputs.end());
    std::reverse(outputs.begin(), outputs.end());
    const auto again = Topology::from_pairs(grid, inputs, outputs, order.data());
    must(std::ranges::equal(again->packed(), topology.packed()), "pairs give it back");
    for (std::size_t k = 0; k < order.size(); ++k) {
        must(order[k] == Index(order.size() - 1 - k), "the order is returned");
    }
}

void from_arrays(Bytes& bytes, const Grid& grid) {
    const Index n_tiles =
        bytes.byte() < 240 ? std::min<Index>(grid.n_tiles(), 4096) : bytes.index(0, 20);
    std::vector<Index> starts;
    for (Index t = 0; t <= std::clamp<Index>(n_tiles, 0, 5000); ++t) {
        const bool usual = bytes.byte() < 250;
        const Index before = starts.empty() ? 0 : starts.back();
        const Index more =
            usual && before >= 0 && before < 1000 ? before + bytes.byte() % 6 : bytes.index(0, 20);
        starts.push_back(starts.empty() && usual ? 0 : more);
    }
    Index n = bytes.byte() < 250 ? starts.back() : bytes.index(0, 40);
    n = std::clamp<Index>(n, 0, 5000);
    std::vector<Packed> packed;
    for (Index k = 0; k < n; ++k) {
        // Near the one before, as connections of one tile are, or anything.
        const Packed near = (packed.empty() ? 0 : packed.back()) + bytes.byte() % 4;
        packed.push_back(bytes.byte() < 250 ? near : Packed(bytes.word()));
    }
    look_again(*Topology::checked(grid, starts, packed));
}

void from_pairs(Bytes& bytes, const Grid& grid) {
    std::vector<Index> inputs, outputs;
    for (Index n = bytes.byte(); n > 0; --n) {
        inputs.push_back(bytes.index(0, std::min<Index>(grid.n_in - 1, 200)));
        outputs.push_back(bytes.index(0, std::min<Index>(grid.n_out - 1, 200)));
    }
    if (bytes.byte() >= 250 && !inputs.empty()) inputs.pop_back();
    std::vector<Index> order(outputs.size());
    look_again(*Topology::from_pairs(grid, inputs, outputs, order.data()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    try {
        const Grid grid{bytes.index(1, 300), bytes.index(1, 300), bytes.side(8),
                        bytes.index(1, 100), bytes.byte() % 2 == 1};
        grid.check();
        bytes.byte() % 2 == 1 ? from_arrays(bytes, grid) : from_pairs(bytes, grid);
    } catch (const std::invalid_argument&) {
    } catch (const std::bad_alloc&) {
    }
    return 0;
}
