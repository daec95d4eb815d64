// Helpers of the binding files, the only ones that use both Python and C++.
//
// Arrays come in as views: never copied, never converted (a converted output would be written and
// thrown away).  Everything a kernel assumes about sizes is checked here; everything it
// assumes about indices is checked by Topology and Samples.  std::invalid_argument
// becomes ValueError, std::bad_alloc MemoryError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "draw.hpp"
#include "kernels.hpp"

namespace ratoon {

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Rows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OptionalVector = std::optional<Vector<T>>;

inline void require(bool holds, const std::string& message) {
    if (!holds) throw std::invalid_argument(message);
}

template <typename Array>
void require_size(const Array& array, Index size, const char* name) {
    require(Index(array.size()) == size, std::string(name) + " has " +
                                             std::to_string(array.size()) + " entries, needs " +
                                             std::to_string(size));
}

template <typename T>
T* data_or_null(const OptionalVector<T>& array) {
    return array.has_value() ? array->data() : nullptr;
}

// The rule with this number, of those available from Python.
inline Rule checked_rule(int number) {
    require(number >= 0 && number < kNumberOfRules, "unknown update rule");
    return Rule(number);
}

// Everything that the rule reads and writes must be given.
template <typename T>
void require_arrays(Rule rule, const Values<T>& values) {
    const RuleInfo& info = info_of(rule);
    const int n_arrays = !values.first ? 0 : !values.second ? 1 : 2;
    require(n_arrays >= info.n_arrays,
            std::string("the rule ") + info.name + " needs " + std::to_string(info.n_arrays) +
                " arrays besides the weights, got " + std::to_string(n_arrays));
}

template <typename T>
const ActivationKernel<T>& checked_activation(int number) {
    require(number >= 0 && std::size_t(number) < kernels<T>().activations.size(),
            "unknown activation");
    return kernels<T>().activations[std::size_t(number)];
}

// Calls draw(should_stop) without the interpreter's lock, so that Ctrl-C stops it.
template <typename Draw>
auto interruptible(Draw draw) {
    try {
        nb::gil_scoped_release release;
        return draw([] {
            nb::gil_scoped_acquire acquire;
            return PyErr_CheckSignals() != 0;
        });
    } catch (const DrawStopped&) {
        throw nb::python_error();  // what the signal handler raised
    }
}

// Gives a buffer to NumPy, which frees it with the last array that uses it.
template <typename T>
auto to_numpy(Buffer<T>&& buffer) {
    auto* kept = new Buffer<T>(std::move(buffer));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {std::size_t(kept->size())}, owner);
}

void bind_topology(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_network(nb::module_& m);
void bind_evolution(nb::module_& m);

}  // namespace ratoon
