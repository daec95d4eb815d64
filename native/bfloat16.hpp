// Weights in bfloat16: the upper half of a float, which halves their memory.
//
// Kernels compute with floats only: a chunk of the weights is widened, worked with and rounded back
// while it stays in the first-level cache.  Rounding is stochastic, with probabilities in
// proportion to the part that is cut off, so that it is exact on average; with rounding to nearest,
// every step below 1/512 of a weight would be lost and training would stop.  The random numbers are
// a pure function of (seed, slot), independent of threads and tiles.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels.hpp"

namespace ratoon {

// `noise` below 2^16 decides whether to round up; NaN stays NaN.
RATOON_INLINE Half to_bfloat16(float w, std::uint32_t noise) {
    const auto bits = std::bit_cast<std::uint32_t>(w);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return Half(bits >> 16 | 0x40u);
    return Half((bits + noise) >> 16);
}

// To the nearest; of two equally near, the one whose last bit is 0.
inline Half nearest_bfloat16(float w) {
    return to_bfloat16(w, 0x7fffu + (std::bit_cast<std::uint32_t>(w) >> 16 & 1u));
}

// Calls work(k, size, values) for the slots first .. first + n, in chunks that begin at k, with
// weights as floats, and stores changed ones.  `values` are those of slot `first` onwards.
template <typename T, typename Work>
void in_chunks(const Values<T>& values, Index first, Index n, bool changed, std::uint64_t seed,
               Work work) {
    if constexpr (std::is_same_v<T, float>) {
        if (values.halves != nullptr) {
            constexpr Index kChunk = 2048;
            float weights[kChunk];
            for (Index k = 0; k < n; k += kChunk) {
                const Index size = std::min(kChunk, n - k);
                kernels<float>().widen(values.halves + k, size, weights);
                Values<float> chunk = values.at(k);
                chunk.weights = weights;
                work(k, size, chunk);
                if (changed) {
                    kernels<float>().round_at_random(weights, seed, std::uint64_t(first + k), size,
                                                     values.halves + k);
                }
            }
            return;
        }
    }
    work(Index(0), n, values);
}

}  // namespace ratoon
