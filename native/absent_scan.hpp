// The inner loop of the search for large absent gradients, compiled once per instruction set.
#pragma once

#include "common.hpp"

namespace ratoon {

constexpr Index kScanRows = 4;  // inputs looked at together
constexpr Index kPanel = 16;    // outputs of a panel, looked at together

// Outputs in panels: number c of output k of panel p lies at (p * depth + c) * kPanel + k, so that
// one load brings the same number of several outputs.
template <typename T>
struct Panels {
    const T* numbers;
    Index depth;  // numbers per output, as many as per input
};

template <typename T>
struct Hit {
    T magnitude;
    std::uint32_t row;     // which of the kScanRows inputs
    std::uint32_t column;  // which output, counted from the first panel
};

// Where hits go: the caller's array, of which `size` places are taken.
template <typename T>
struct Hits {
    Hit<T>* places;
    Index capacity;
    Index size;
};

// Appends every product |<rows[r], output>| >= least of the panels first <= p < last.  Stops before
// a panel whose hits might not fit; returns the panel to go on with.
//
// A product is summed in the order of its numbers whatever its place in rows and panels.
template <typename T>
using Scan = Index (*)(const T* const* rows, Panels<T> panels, Index first, Index last, T least,
                       Hits<T>& hits);

}  // namespace ratoon
