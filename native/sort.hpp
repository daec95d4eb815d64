// Radix sort.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "common.hpp"

namespace ratoon {

constexpr int kMostBits = 11;  // of a digit

// Sorts by the bits from `low` on, least significant digit first; all digits are counted in one
// visit.
template <int n_digits, typename U>
void sort_by_digits(U* values, Index n, U* scratch, int low, int digit) {
    std::uint32_t counts[n_digits][1 << kMostBits];
    const std::uint32_t mask = (1u << digit) - 1;
    const auto digit_of = [&](U value, int d) {
        return std::uint32_t(value >> (low + d * digit)) & mask;
    };
    for (auto& table : counts) std::fill_n(table, mask + 1, 0u);
    for (Index k = 0; k < n; ++k) {
        for (int d = 0; d < n_digits; ++d) ++counts[d][digit_of(values[k], d)];
    }
    U* from = values;
    U* to = scratch;
    for (int d = 0; d < n_digits; ++d) {
        std::uint32_t* next = counts[d];
        std::uint32_t sum = 0;
        for (std::uint32_t c = 0; c <= mask; ++c) sum += std::exchange(next[c], sum);
        for (Index k = 0; k < n; ++k) to[next[digit_of(from[k], d)]++] = from[k];
        std::swap(from, to);
    }
    if (from != values) std::copy_n(from, n, values);
}

// Sorts by the upper 32 bits, which are below `limit` <= 2^32; equal ones stay in their order.
inline void sort_upper_halves(std::uint64_t* values, Index n, std::uint64_t* scratch,
                              std::uint64_t limit) {
    if (n < 128) {
        std::stable_sort(values, values + n, [](auto a, auto b) { return a >> 32 < b >> 32; });
        return;
    }
    const int bits = std::max(1, int(std::bit_width(limit - 1)));
    const int n_digits = bits > 2 * kMostBits ? 3 : bits > kMostBits ? 2 : 1;
    const int digit = (bits + n_digits - 1) / n_digits;
    if (n_digits == 1) sort_by_digits<1>(values, n, scratch, 32, digit);
    if (n_digits == 2) sort_by_digits<2>(values, n, scratch, 32, digit);
    if (n_digits == 3) sort_by_digits<3>(values, n, scratch, 32, digit);
}

inline void insertion_sort(std::uint32_t* values, Index n) {
    for (Index k = 1; k < n; ++k) {
        const std::uint32_t value = values[k];
        Index at = k;
        for (; at > 0 && values[at - 1] > value; --at) values[at] = values[at - 1];
        values[at] = value;
    }
}

// Sorts draws that are uniform below `limit`.  Sorting by the upper bits nearly suffices: so many
// that only some neighbours agree in them; insertion sorts the rest.
inline void sort_uniform(std::uint32_t* values, Index n, std::uint32_t* scratch,
                         std::uint64_t limit) {
    if (n < 128) {
        std::sort(values, values + n);
        return;
    }
    const int all = std::bit_width(limit - 1);
    // Small tiles take one pass, with a table one to four times as long as the draws, and more
    // comparing; large ones, whose table would leave the first cache, two or three.
    const bool is_small = n < 1 << kMostBits;
    const int width = int(std::bit_width(std::uint64_t(n)));
    const int bits = std::min(all, is_small ? std::min(width + 1, kMostBits) : width + 4);
    const int n_digits = is_small ? 1 : bits > 2 * kMostBits ? 3 : 2;
    const int digit = (bits + n_digits - 1) / n_digits;
    if (n_digits == 1) sort_by_digits<1>(values, n, scratch, all - bits, digit);
    if (n_digits == 2) sort_by_digits<2>(values, n, scratch, all - bits, digit);
    if (n_digits == 3) sort_by_digits<3>(values, n, scratch, all - bits, digit);
    if (bits < all) insertion_sort(values, n);
}

}  // namespace ratoon
