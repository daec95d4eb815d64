// All kernels for one instruction set.  This file is compiled once per set, with other flags and
// with RATOON_ISA naming the set; everything is in a namespace of that name.
#include "../kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "../bfloat16.hpp"
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
#include "runs.hpp"
#include "masked.hpp"
#include "non_zeros.hpp"
#include "normal.hpp"
#include "exponential.hpp"
#include "rows.hpp"
#include "halves.hpp"
#include "activations.hpp"
#include "scan.hpp"
// clang-format on

template <typename T>
Kernels<T> table() {
    return {
        .forward = forward<T>,
        .forward_narrow = forward_narrow<T>,
        .backward = backward<T>,
        .forward_runs = forward_runs<T>,
        .backward_runs = backward_runs<T>,
        .forward_non_zero = forward_non_zero<T>,
        .backward_non_zero = backward_non_zero<T>,
        .update = update<T>,
        .fill_rows = fill_rows<T>,
        .row_sums = row_sums<T>,
        .activations = kActivations<T>,
        .drop = drop<T>,
        .drop_errors = drop_errors<T>,
        .multiply = multiply<T>,
        .load_f32 = load_samples<T, float>,
        .load_f64 = load_samples<T, double>,
        .load_u8 = load_samples<T, std::uint8_t>,
        .load_i8 = load_samples<T, std::int8_t>,
        .load_u16 = load_samples<T, std::uint16_t>,
        .load_i16 = load_samples<T, std::int16_t>,
        .normal = normal<T>,
        .scan = scan<T>,
    };
}

}  // namespace

const KernelTables& kernel_tables() {
    static const KernelTables tables = [] {
        KernelTables both{.f32 = table<float>(), .f64 = table<double>()};
        both.f32.widen = widen;
        both.f32.round_at_random = round_at_random;
#if defined(__AVX2__)
        both.f32.masked_forward = masked_forward;
        both.f32.masked_backward = masked_backward;
#endif
        return both;
    }();
    return tables;
}

}  // namespace RATOON_ISA
}  // namespace ratoon
