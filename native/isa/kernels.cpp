// All kernels for one instruction set.  This file is compiled once per set, with other flags and
// with RATOON_ISA naming the set; everything lives in a namespace of that name.
#include "../kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "../random.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ratoon {
namespace RATOON_ISA {
namespace {

// Inside the namespace on purpose, and in this order: each builds on those before it.
// clang-format off
#include "simd.hpp"
#include "indices.hpp"
#include "update.hpp"
#include "forward.hpp"
#include "backward.hpp"
#include "masked.hpp"
#include "non_zeros.hpp"
#include "rows.hpp"
#include "normal.hpp"
// clang-format on

template <typename T>
Kernels<T> table() {
    return {forward<T>,
            forward_narrow<T>,
            backward<T>,
            nullptr,
            nullptr,
            forward_non_zero<T>,
            backward_non_zero<T>,
            update<T>,
            fill_rows<T>,
            row_sums<T>,
            activate<T>,
            derive<T>,
            drop<T>,
            load_samples<T, float>,
            load_samples<T, double>,
            normal<T>};
}

}  // namespace

const Kernels<float>& kernels_f32() {
    static const Kernels<float> kernels = [] {
        Kernels<float> found = table<float>();
#if defined(__AVX2__)
        found.masked_forward = masked_forward;
        found.masked_backward = masked_backward;
#endif
        return found;
    }();
    return kernels;
}
const Kernels<double>& kernels_f64() {
    static const Kernels<double> kernels = table<double>();
    return kernels;
}

}  // namespace RATOON_ISA
}  // namespace ratoon
