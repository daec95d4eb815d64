// For strategies other than SET: gradients of absent connections, and growth at given positions.
#include "absent.hpp"
#include "bindings.hpp"
#include "paths.hpp"

namespace ratoon {
namespace {

std::span<const Index> as_span(const Vector<const Index>& array) {
    return {array.data(), array.size()};
}

template <typename T>
auto bound_largest_absent(const Topology& topology, Vector<const Index> kept, Rows<const T> x,
                          Rows<const T> d, Index count, int n_threads) {
    require(Index(x.shape(0)) == topology.grid().n_in, "x needs one row per input");
    require(Index(d.shape(0)) == topology.grid().n_out, "d needs one row per output");
    require(x.shape(1) == d.shape(1), "x and d need as many columns");
    Buffer<Index> positions;
    {
        nb::gil_scoped_release release;
        positions = largest_absent<T>(topology, as_span(kept),
                                      {x.data(), d.data(), Index(x.shape(1))}, count, n_threads);
    }
    return to_numpy(std::move(positions));
}

nb::tuple bound_best_by_paths(const Topology& topology, Vector<const Index> kept, int score,
                              Index count, std::optional<std::uint64_t> seed,
                              const Topology* allowed, int n_threads) {
    require(score == int(PathScore::ch3_l3p) || score == int(PathScore::ch2_l3n),
            "unknown path score");
    const PathSearch search{PathScore(score), count, seed, allowed};
    ScoredPositions found = interruptible([&](const ShouldStop& should_stop) {
        return best_by_paths(topology, as_span(kept), search, n_threads, should_stop);
    });
    return nb::make_tuple(to_numpy(std::move(found.positions)), to_numpy(std::move(found.values)));
}

template <typename T>
auto bound_largest_per_output(const Topology& topology, Vector<const Index> kept, Rows<const T> x,
                              Rows<const T> d, Vector<const Index> counts, int n_threads) {
    require(Index(x.shape(0)) == topology.grid().n_in, "x needs one row per input");
    require(Index(d.shape(0)) == topology.grid().n_out, "d needs one row per output");
    require(x.shape(1) == d.shape(1), "x and d need as many columns");
    require_size(counts, topology.grid().n_out, "counts");
    return to_numpy(interruptible([&](const ShouldStop& should_stop) {
        return largest_absent_per_output<T>(topology, as_span(kept),
                                            {x.data(), d.data(), Index(x.shape(1))},
                                            as_span(counts), n_threads, should_stop);
    }));
}

}  // namespace

void bind_evolution(nb::module_& m) {
    m.def("largest_absent", &bound_largest_absent<float>, "topology"_a, "kept"_a.noconvert(),
          "x"_a.noconvert(), "d"_a.noconvert(), "count"_a, "n_threads"_a);
    m.def("largest_absent", &bound_largest_absent<double>, "topology"_a, "kept"_a.noconvert(),
          "x"_a.noconvert(), "d"_a.noconvert(), "count"_a, "n_threads"_a);
    m.def("best_by_paths", &bound_best_by_paths, "topology"_a, "kept"_a.noconvert(), "score"_a,
          "count"_a, "seed"_a.none(), "allowed"_a.none(), "n_threads"_a);
    m.def("largest_absent_per_output", &bound_largest_per_output<float>, "topology"_a,
          "kept"_a.noconvert(), "x"_a.noconvert(), "d"_a.noconvert(), "counts"_a.noconvert(),
          "n_threads"_a);
    m.def("largest_absent_per_output", &bound_largest_per_output<double>, "topology"_a,
          "kept"_a.noconvert(), "x"_a.noconvert(), "d"_a.noconvert(), "counts"_a.noconvert(),
          "n_threads"_a);
    m.def(
        "empty_among",
        [](const Topology& topology, Vector<const Index> kept, Vector<const Index> positions) {
            Buffer<Index> empty;
            {
                nb::gil_scoped_release release;
                empty = empty_among(topology, as_span(kept), as_span(positions));
            }
            return to_numpy(std::move(empty));
        },
        "topology"_a, "kept"_a.noconvert(), "positions"_a.noconvert());
    m.def(
        "slots_of",
        [](const Topology& topology, Vector<const Index> positions) {
            return to_numpy(slots_of(topology, as_span(positions)));
        },
        "topology"_a, "positions"_a.noconvert());
    m.def(
        "laid_out",
        [](const Topology& topology, const Grid& grid) {
            LaidOut moved;
            {
                nb::gil_scoped_release release;
                moved = laid_out(topology, grid);
            }
            return nb::make_tuple(moved.topology, to_numpy(std::move(moved.order)));
        },
        "topology"_a, "grid"_a);
    m.def(
        "grow_at",
        [](const Topology& topology, Vector<const Index> kept, Vector<const Index> positions) {
            GrownAt grown;
            {
                nb::gil_scoped_release release;
                grown = grow_at(topology, as_span(kept), as_span(positions));
            }
            return nb::make_tuple(grown.topology, to_numpy(std::move(grown.origin)));
        },
        "topology"_a, "kept"_a.noconvert(), "positions"_a.noconvert());
}

}  // namespace ratoon
