// Counter-based random numbers: number i of a stream is a pure function of (seed, i).
//
// A counter gives the same number in any order and on any thread, which makes topologies
// independent of the number of threads.  The generator is SplitMix64 (Steele, Lea and Flood, OOPSLA
// 2014) read at an arbitrary place of its sequence.
#pragma once

#include <cstdint>

namespace ratoon {

constexpr std::uint64_t kRandomStep = 0x9E3779B97F4A7C15ull;

inline std::uint64_t random_state(std::uint64_t seed, std::uint64_t counter) {
    return seed + (counter + 1) * kRandomStep;
}

// The random number of a state, or of a vector of states.
template <typename U>
inline __attribute__((always_inline)) U mixed(U z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
    return mixed(random_state(seed, counter));
}

// Uniform in [0, n): the upper half of a 128-bit product (bias below n / 2^64).
inline std::uint64_t random_below(std::uint64_t seed, std::uint64_t counter, std::uint64_t n) {
    return std::uint64_t((static_cast<unsigned __int128>(random_bits(seed, counter)) * n) >> 64);
}

}  // namespace ratoon
