// What the binding files share.  They are the only ones that know both Python and C++.
//
// Arrays come in as views: never copied, never converted (a converted output would be written and
// thrown away).  Everything a kernel takes for granted about sizes is checked here; everything it
// takes for granted about indices is checked by Topology and Samples.  std::invalid_argument
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

#include "common.hpp"

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

// Hands a buffer over to NumPy, which frees it when the last array on it goes.
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
