// Single kernels on single layers: for tests, for PyTorch, for optimizers driven from Python.
#include <memory>

#include "bindings.hpp"
#include "linear.hpp"

namespace ratoon {
namespace {

Index checked_lanes(Index lanes) {
    require(lanes == 1 || (lanes > 0 && lanes % kLanes == 0),
            "rows must have 1 or a multiple of 8 columns, got " + std::to_string(lanes));
    return lanes;
}

template <typename Array>
void require_rows(const Array& rows, Index n, Index lanes, const char* name) {
    require(Index(rows.shape(0)) == n && Index(rows.shape(1)) == lanes,
            std::string(name) + " must be " + std::to_string(n) + " x " + std::to_string(lanes));
}

template <typename T>
void bound_forward(const Topology& topology, Vector<const T> weights, Vector<const T> bias,
                   Rows<const T> x, Rows<T> y, int n_threads) {
    const Index lanes = checked_lanes(Index(x.shape(1)));
    require_size(weights, topology.n_connections(), "weights");
    require_size(bias, topology.grid().n_out, "bias");
    require_rows(x, topology.grid().n_in, lanes, "x");
    require_rows(y, topology.grid().n_out, lanes, "y");
    Buffer<T> scratch;
    Values<T> values;
    values.weights = const_cast<T*>(weights.data());  // only read
    linear_forward<T>(topology, values, bias.data(), x.data(), y.data(), lanes, scratch, n_threads,
                      {});
}

// Values for a rule over n connections, with everything the rule touches present.
template <typename T>
Values<T> checked_values(Rule rule, const OptionalVector<T>& weights,
                         const OptionalVector<T>& first, const OptionalVector<T>& second, Index n) {
    require(weights.has_value() || rule == Rule::store, "this rule needs weights");
    if (weights) require_size(*weights, n, "weights");
    if (first) require_size(*first, n, "first");
    if (second) require_size(*second, n, "second");
    const Values<T> values{data_or_null(weights), data_or_null(first), data_or_null(second),
                           nullptr};
    require_arrays(rule, values);
    return values;
}

template <typename T>
void bound_backward(const Topology& topology, int rule_number, Vector<T> weights,
                    OptionalVector<T> first, OptionalVector<T> second, const Step<T>& step,
                    Rows<const T> x, Rows<const T> dy, std::optional<Rows<T>> dx, int n_threads) {
    const Rule rule = checked_rule(rule_number);
    const Index lanes = checked_lanes(Index(x.shape(1)));
    const Grid& grid = topology.grid();
    const Values<T> values = checked_values<T>(rule, OptionalVector<T>(weights), first, second,
                                               topology.n_connections());
    require_rows(x, grid.n_in, lanes, "x");
    require_rows(dy, grid.n_out, lanes, "dy");
    if (dx) require_rows(*dx, grid.n_in, lanes, "dx");
    linear_backward<T>(topology, rule, values, step, x.data(), dy.data(), dx ? dx->data() : nullptr,
                       lanes, n_threads, {});
}

template <typename T>
void bound_update(int rule_number, Vector<T> weights, OptionalVector<T> first,
                  OptionalVector<T> second, Vector<const T> gradient, const Step<T>& step) {
    const Rule rule = checked_rule(rule_number);
    const Index n = Index(gradient.size());
    const Values<T> values = checked_values<T>(rule, OptionalVector<T>(weights), first, second, n);
    const FlushDenormals flush;
    kernels<T>().update(rule, values, gradient.data(), n, step);
}

template <typename T>
void bound_activate(int kind, T slope, Vector<T> y) {
    checked_activation<T>(kind).activate(slope, y.data(), Index(y.size()));
}

template <typename T>
void bound_derive(int kind, T slope, Vector<const T> y, Vector<T> d) {
    const ActivationKernel<T>& activation = checked_activation<T>(kind);
    require_size(y, Index(d.size()), "y");
    activation.derive(slope, y.data(), T(1), d.data(), Index(d.size()));
}

template <typename T>
void bound_drop(T rate, std::uint64_t seed, Vector<T> d) {
    require(rate >= 0 && rate < 1, "the dropout rate must be in [0, 1)");
    kernels<T>().drop(rate, seed, 0, d.data(), Index(d.size()));
}

// Memory for results of a layer.  Steps ask for the same sizes again and again, and pages that are
// given back to the system cost a small layer a third of its time.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<2>> empty_rows(Index n_rows, Index lanes) {
    require(n_rows >= 0 && lanes >= 0, "sizes must not be negative");
    auto buffer = std::make_unique<Buffer<T>>(n_rows * lanes, Use::recurring);
    T* data = buffer->data();
    const nb::capsule owner(buffer.release(),
                            [](void* held) noexcept { delete static_cast<Buffer<T>*>(held); });
    return {data, {std::size_t(n_rows), std::size_t(lanes)}, owner};
}

// Samples as rows become neurons as rows: x is (n, n_features), out is (n_features, lanes).
template <typename T>
void bound_transpose(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> x, Rows<T> out,
                     int n_threads) {
    constexpr Index kChunk = 512;
    const Index n = Index(x.shape(0)), n_features = Index(x.shape(1));
    const Index lanes = checked_lanes(Index(out.shape(1)));
    require(n >= 1 && n <= lanes, "out must have a column for every sample");
    require(Index(out.shape(0)) == n_features, "out must have a row for every feature");
    require(n_features <= 1 || x.stride(1) == 1, "the features of a sample must be contiguous");
    require(x.stride(0) >= 0, "rows must follow each other in memory");
    std::vector<const T*> samples;
    for (Index i = 0; i < n; ++i) samples.push_back(x.data() + i * Index(x.stride(0)));
    T* to = out.data();
    run_tasks(divided_up(n_features, kChunk), n * n_features / kLanes, n_threads, [&](Index c) {
        const Index first = c * kChunk, last = std::min(n_features, first + kChunk);
        const auto load = [] {
            if constexpr (std::is_same_v<T, float>)
                return kernels<T>().load_f32;
            else
                return kernels<T>().load_f64;
        }();
        load(samples.data(), n, first, last, {}, to, lanes);
    });
}

template <typename T>
void bound_normal(std::uint64_t seed, T sigma, Vector<T> out, int n_threads) {
    constexpr Index kChunk = 1 << 16;
    const Index n = Index(out.size());
    run_tasks(divided_up(n, kChunk), n, n_threads, [&](Index c) {
        const Index first = c * kChunk;
        kernels<T>().normal(seed, sigma, out.data() + first, first, std::min(kChunk, n - first));
    });
}

template <typename T>
void bind_for(nb::module_& m, const char* step_name) {
    nb::class_<Step<T>>(m, step_name)
        .def(
            "__init__",
            [](Step<T>* self, T lr, T mu, T l2, T shrink, T beta2, T adam_eps, T correction,
               T shrink_bias) {
                new (self) Step<T>{lr, mu, l2, shrink, beta2, adam_eps, correction, shrink_bias, 0};
            },
            "lr"_a, "mu"_a = 0, "l2"_a = 0, "shrink"_a = 0, "beta2"_a = 0, "adam_eps"_a = 0,
            "correction"_a = 1, "shrink_bias"_a = 0);
    const auto unlocked = nb::call_guard<nb::gil_scoped_release>();
    m.def("linear_forward", &bound_forward<T>, "topology"_a, "weights"_a.noconvert(),
          "bias"_a.noconvert(), "x"_a.noconvert(), "y"_a.noconvert(), "n_threads"_a, unlocked);
    m.def("linear_backward", &bound_backward<T>, "topology"_a, "rule"_a, "weights"_a.noconvert(),
          "first"_a.noconvert().none(), "second"_a.noconvert().none(), "step"_a, "x"_a.noconvert(),
          "dy"_a.noconvert(), "dx"_a.noconvert().none(), "n_threads"_a, unlocked);
    m.def("update", &bound_update<T>, "rule"_a, "weights"_a.noconvert(),
          "first"_a.noconvert().none(), "second"_a.noconvert().none(), "gradient"_a.noconvert(),
          "step"_a, unlocked);
    m.def("activate", &bound_activate<T>, "kind"_a, "slope"_a, "y"_a.noconvert());
    m.def("derive", &bound_derive<T>, "kind"_a, "slope"_a, "y"_a.noconvert(), "d"_a.noconvert());
    m.def("drop", &bound_drop<T>, "rate"_a, "seed"_a, "d"_a.noconvert());
    m.def("transpose", &bound_transpose<T>, "x"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a,
          unlocked);
    m.def("normal", &bound_normal<T>, "seed"_a, "sigma"_a, "out"_a.noconvert(), "n_threads"_a,
          unlocked);
}

}  // namespace

void bind_linear(nb::module_& m) {
    m.def("empty_rows_f32", &empty_rows<float>, "n_rows"_a, "lanes"_a);
    m.def("empty_rows_f64", &empty_rows<double>, "n_rows"_a, "lanes"_a);
    bind_for<float>(m, "StepF32");
    bind_for<double>(m, "StepF64");
    // The tables, for Python to look numbers up by name.
    m.def("activations", [] {
        std::vector<std::tuple<std::string, bool>> table;  // name, whether derived from the input
        for (const auto& each : kernels<float>().activations) {
            table.emplace_back(each.name, each.derived_from == DerivedFrom::input);
        }
        return table;
    });
    m.def("rules", [] {
        std::vector<std::tuple<std::string, int>> table;  // name, arrays per connection
        for (const RuleInfo& each : kRules) table.emplace_back(each.name, each.n_arrays);
        return table;
    });
}

}  // namespace ratoon
