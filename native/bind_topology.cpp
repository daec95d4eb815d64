// Topologies: created here only, then read-only.
#include "bindings.hpp"
#include "claim.hpp"
#include "rewire.hpp"
#include "topology.hpp"

namespace ratoon {
namespace {

template <typename T>
std::span<const T> as_span(const Vector<const T>& array) {
    return {array.data(), array.size()};
}

Grid make_grid(Index n_in, Index n_out, Index tile_in, Index tile_out, bool grouped) {
    const Grid grid{n_in, n_out, tile_in, tile_out, grouped};
    grid.check();
    return grid;
}

Grid suited_grid(Index n_in, Index n_out, Index n_connections) {
    require(n_in >= 1 && n_out >= 1, "a layer needs at least one input and one output");
    const Grid grid = Grid::suited_to(n_in, n_out, n_connections);
    grid.check();
    return grid;
}

// Arrays on memory of the topology, always read-only.
template <typename T>
auto read_only(std::span<const T> values, nb::handle owner) {
    return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(values.data(), {values.size()}, owner);
}

template <typename W, typename T>
std::vector<MemoryRange> arrays_in_use(Index n, const W* weights, const std::vector<T*>& carried) {
    std::vector<MemoryRange> ranges{range_of(weights, n)};
    for (const T* array : carried) ranges.push_back(range_of(array, n));
    return ranges;
}

template <typename W, typename T>
nb::tuple bound_rewire(const TopologyPtr& topology, Vector<W> weights,
                       const std::vector<Vector<T>>& carried, double zeta, double sigma,
                       std::uint64_t weight_seed, std::uint64_t seed, int n_threads) {
    const Index n = topology->n_connections();
    require_size(weights, n, "weights");
    std::vector<T*> arrays;
    for (const auto& array : carried) {
        require_size(array, n, "carried");
        arrays.push_back(array.data());
    }
    const WriteClaim claim(arrays_in_use(n, weights.data(), arrays));
    const Rewired rewired = interruptible([&](const ShouldStop& should_stop) {
        return rewire_by_sign<W, T>(*topology, weights.data(), arrays, zeta, {sigma, weight_seed},
                                    seed, n_threads, should_stop);
    });
    return nb::make_tuple(rewired.topology, rewired.n_grown);
}

}  // namespace

void bind_topology(nb::module_& m) {
    nb::class_<Grid>(m, "Grid")
        .def_static("suited_to", &suited_grid, "n_in"_a, "n_out"_a, "n_connections"_a)
        .def_static("of", &make_grid, "n_in"_a, "n_out"_a, "tile_in"_a, "tile_out"_a, "grouped"_a)
        .def_ro("n_in", &Grid::n_in)
        .def_ro("n_out", &Grid::n_out)
        .def_ro("tile_in", &Grid::tile_in)
        .def_ro("tile_out", &Grid::tile_out)
        .def_ro("grouped", &Grid::grouped)
        .def_prop_ro("n_tiles", &Grid::n_tiles)
        .def("__eq__", [](const Grid& a, const Grid& b) { return a == b; });

    nb::class_<Topology>(m, "Topology")
        .def_static(
            "checked",
            [](const Grid& grid, Vector<const Index> starts, Vector<const Packed> packed) {
                return Topology::checked(grid, as_span(starts), as_span(packed));
            },
            "grid"_a, "starts"_a.noconvert(), "packed"_a.noconvert(),
            nb::call_guard<nb::gil_scoped_release>())
        .def_static(
            "from_pairs",
            [](const Grid& grid, Vector<const Index> inputs, Vector<const Index> outputs) {
                Buffer<Index> order{Index(inputs.size())};
                TopologyPtr topology;
                {
                    nb::gil_scoped_release release;
                    topology =
                        Topology::from_pairs(grid, as_span(inputs), as_span(outputs), order.data());
                }
                return nb::make_tuple(topology, to_numpy(std::move(order)));
            },
            "grid"_a, "inputs"_a.noconvert(), "outputs"_a.noconvert())
        .def_static(
            "random",
            [](const Grid& grid, Index n_connections, std::uint64_t seed, int n_threads) {
                return interruptible([&](const ShouldStop& should_stop) {
                    return random_topology(grid, n_connections, seed, n_threads, should_stop);
                });
            },
            "grid"_a, "n_connections"_a, "seed"_a, "n_threads"_a)
        .def_prop_ro("grid", &Topology::grid, nb::rv_policy::copy)
        .def_prop_ro("n_connections", &Topology::n_connections)
        .def_prop_ro("starts",
                     [](nb::handle self) {
                         return read_only(nb::cast<const Topology&>(self).starts(), self);
                     })
        .def_prop_ro("packed",
                     [](nb::handle self) {
                         return read_only(nb::cast<const Topology&>(self).packed(), self);
                     })
        .def("pairs",
             [](const Topology& self) {
                 Buffer<Index> inputs(self.n_connections()), outputs(self.n_connections());
                 self.expand(inputs.data(), outputs.data());
                 return nb::make_tuple(to_numpy(std::move(inputs)), to_numpy(std::move(outputs)));
             })
        .def("degrees",
             [](const Topology& self) {
                 Buffer<Index> inputs(self.grid().n_in), outputs(self.grid().n_out);
                 self.degrees(inputs.data(), outputs.data());
                 return nb::make_tuple(to_numpy(std::move(inputs)), to_numpy(std::move(outputs)));
             })
        .def(
            "regrow_uniformly",
            [](const Topology& self, Vector<const Index> kept, Index count, std::uint64_t seed,
               int n_threads) {
                Regrown regrown = interruptible([&](const ShouldStop& should_stop) {
                    return regrow_uniformly(self, as_span(kept), count, seed, n_threads,
                                            should_stop);
                });
                return nb::make_tuple(regrown.topology, to_numpy(std::move(regrown.origin)));
            },
            "kept"_a.noconvert(), "count"_a, "seed"_a, "n_threads"_a);

    const auto bind_for = [&](auto rewire) {
        m.def("rewire_by_sign", rewire, "topology"_a, "weights"_a.noconvert(),
              "carried"_a.noconvert(), "zeta"_a, "sigma"_a, "weight_seed"_a, "seed"_a,
              "n_threads"_a);
    };
    bind_for(&bound_rewire<float, float>);
    bind_for(&bound_rewire<double, double>);
    bind_for(&bound_rewire<Half, float>);  // weights in bfloat16
}

}  // namespace ratoon
