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
#include "random.hpp"

namespace ratoon {

inline float from_bfloat16(Half half) { return std::bit_cast<float>(std::uint32_t(half) << 16); }

// `noise` below 2^16 decides whether to round up; NaN stays NaN.
inline Half to_bfloat16(float w, std::uint32_t noise) {
    const auto bits = std::bit_cast<std::uint32_t>(w);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return Half(bits >> 16 | 0x40u);
    return Half((bits + noise) >> 16);
}

// To the nearest; of two equally near, the one whose last bit is 0.
inline Half nearest_bfloat16(float w) {
    return to_bfloat16(w, 0x7fffu + (std::bit_cast<std::uint32_t>(w) >> 16 & 1u));
}

// Rounds the weights of slots first .. first + n at random: four decisions from one random word.
inline void round_at_random(const float* weights, std::uint64_t seed, Index first, Index n,
                            Half* halves) {
    const auto one = [&](Index k, std::uint64_t bits, int q) {
        halves[k] = to_bfloat16(weights[k], std::uint32_t(bits >> (16 * q)) & 0xffffu);
    };
    Index k = 0;
    for (; k < n && (first + k) % 4 != 0; ++k) {
        one(k, random_bits(seed, std::uint64_t(first + k) / 4), int((first + k) % 4));
    }
    for (; k + 4 <= n; k += 4) {
        const std::uint64_t bits = random_bits(seed, std::uint64_t(first + k) / 4);
        for (int q = 0; q < 4; ++q) one(k + q, bits, q);
    }
    for (; k < n; ++k) {
        one(k, random_bits(seed, std::uint64_t(first + k) / 4), int((first + k) % 4));
    }
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
                for (Index i = 0; i < size; ++i) weights[i] = from_bfloat16(values.halves[k + i]);
                Values<float> chunk = values.at(k);
                chunk.weights = weights;
                work(k, size, chunk);
                if (changed) round_at_random(weights, seed, first + k, size, values.halves + k);
            }
            return;
        }
    }
    work(Index(0), n, values);
}

}  // namespace ratoon
