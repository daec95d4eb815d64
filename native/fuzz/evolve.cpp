// Prune and grow in all ways, with any weights, and check the results.
#include <stdexcept>

#include "absent.hpp"
#include "bytes.hpp"
#include "rewire.hpp"

using namespace ratoon;
using ratoon::fuzz::Bytes;
using ratoon::fuzz::must;

namespace {

// Topologies from outside are validated completely; those made by native code must also be valid.
void must_be_valid(const Topology& topology, const Grid& grid) {
    must(topology.grid() == grid, "the plane is the same");
    Topology::checked(topology.grid(), topology.starts(), topology.packed());
}

void must_fit(const Topology& before, const Topology& after, const Buffer<Index>& origin) {
    must(origin.size() == after.n_connections(), "every slot has an origin");
    Index last = -1;
    for (Index k = 0; k < origin.size(); ++k) {
        must(origin[k] >= -1 && origin[k] < before.n_connections(), "an origin exists");
        if (origin[k] >= 0) {
            must(origin[k] > last, "survivors keep their order");
            last = origin[k];
        }
    }
}

std::vector<Index> some_slots(Bytes& bytes, Index n) {
    std::vector<Index> kept;
    const Index one_in = bytes.between(1, 5);
    for (Index k = 0; k < n; ++k) {
        if (bytes.empty() ? k % one_in == 0 : bytes.byte() % one_in == 0) kept.push_back(k);
    }
    if (bytes.byte() >= 250) kept.push_back(bytes.index(0, n));
    return kept;
}

template <typename T>
void evolve(Bytes& bytes, TopologyPtr topology) {
    const Index rounds = bytes.between(1, 4);
    for (Index round = 0; round < rounds; ++round) {
        const Index n = topology->n_connections();
        const Grid grid = topology->grid();
        const std::uint64_t seed = bytes.word();
        const int threads = int(bytes.between(1, 3));
        const Index empty = grid.n_in * grid.n_out - n;
        switch (bytes.between(0, 4)) {
            case 0: {
                std::vector<T> weights = bytes.numbers<T>(n), carried(weights);
                // Not a number has no sign; networks that hold one are refused before this.
                for (T& w : weights) w = std::isnan(w) ? T(1) : w;
                const double zeta = double(bytes.byte()) / 256;
                const GrownWeights first{double(bytes.byte()) / 64, seed + 1};
                const Rewired rewired = rewire_by_sign<T, T>(
                    *topology, weights.data(), {carried.data()}, zeta, first, seed, threads);
                must(rewired.topology->n_connections() == n, "the count is kept");
                must(rewired.n_grown >= 0 && rewired.n_grown <= n, "as many grew as went");
                must_be_valid(*rewired.topology, grid);
                topology = rewired.topology;
                break;
            }
            case 1: {
                const std::vector<Index> kept = some_slots(bytes, n);
                check_kept(*topology, kept);
                const Index count = bytes.index(0, std::min<Index>(empty, 300));
                const Regrown grown = regrow_uniformly(*topology, kept, count, seed, threads);
                must(grown.topology->n_connections() == Index(kept.size()) + count, "the count");
                must_be_valid(*grown.topology, grid);
                must_fit(*topology, *grown.topology, grown.origin);
                topology = grown.topology;
                break;
            }
            case 2: {
                const Index depth = bytes.between(1, 5);
                std::vector<T> x = bytes.numbers<T>(grid.n_in * depth);
                std::vector<T> d = bytes.numbers<T>(grid.n_out * depth);
                const std::vector<Index> kept = some_slots(bytes, n);
                check_kept(*topology, kept);
                const Index count = bytes.between(0, 300);
                const Buffer<Index> found =
                    largest_absent<T>(*topology, kept, {x.data(), d.data(), depth}, count, threads);
                must(found.size() <= count, "no more than asked for");
                const std::vector<Index> counts(std::size_t(grid.n_out), count % 7);
                const Buffer<Index> each = largest_absent_per_output<T>(
                    *topology, kept, {x.data(), d.data(), depth}, counts, threads);
                must(each.size() <= count % 7 * grid.n_out, "no more than asked for");
                check_positions(grid, {each.data(), std::size_t(each.size())});
                const std::span<const Index> positions(found.data(), std::size_t(found.size()));
                check_positions(grid, positions);
                const GrownAt grown = grow_at(*topology, kept, positions);
                must(grown.topology->n_connections() == Index(kept.size()) + found.size(), "all");
                must_be_valid(*grown.topology, grid);
                must_fit(*topology, *grown.topology, grown.origin);
                topology = grown.topology;
                break;
            }
            case 3: {
                std::vector<Index> positions;
                for (Index k = bytes.byte() % 40; k > 0; --k) {
                    positions.push_back(bytes.index(0, grid.n_in * grid.n_out - 1));
                }
                std::ranges::sort(positions);
                check_positions(grid, positions);
                const Buffer<Index> slots = slots_of(*topology, positions);
                for (const Index slot : std::span(slots.data(), std::size_t(slots.size()))) {
                    must(slot >= -1 && slot < n, "a slot exists or is -1");
                }
                topology = grow_at(*topology, some_slots(bytes, n), positions).topology;
                must_be_valid(*topology, grid);
                break;
            }
            default: {
                const Grid other{grid.n_in, grid.n_out, bytes.side(8), bytes.index(1, 100),
                                 bytes.byte() % 2 == 1};
                other.check();
                const LaidOut moved = laid_out(*topology, other);
                must(moved.topology->n_connections() == n, "laid out anew, none is lost");
                must_be_valid(*moved.topology, other);
                topology = moved.topology;
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    try {
        const Index n_in = bytes.between(1, 120), n_out = bytes.between(1, 120);
        const bool wide = bytes.byte() >= 240;  // sometimes a plane of several full tiles
        const Grid grid{wide ? n_in + 65530 : n_in, n_out,
                        bytes.between(1, 8) * kGroup * (wide ? 512 : 1), bytes.between(1, 100),
                        bytes.byte() % 2 == 1};
        grid.check();
        const Index area = grid.n_in * grid.n_out;
        const Index count = bytes.byte() % 4 == 0 ? area - bytes.between(0, 3)
                                                  : Index(bytes.word() >> 1) % (area + 1);
        const TopologyPtr topology =
            random_topology(grid, std::clamp<Index>(count, 0, 2000), bytes.word(), 1);
        must_be_valid(*topology, grid);
        bytes.byte() % 2 == 1 ? evolve<float>(bytes, topology) : evolve<double>(bytes, topology);
    } catch (const std::invalid_argument&) {
    }
    return 0;
}
