// Numbers from the bytes of a fuzzer: small ones, unusual ones, and values such as NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace ratoon::fuzz {

// A condition is violated: end the program, so that the input is kept.
inline void must(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

class Bytes {
  public:
    Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

    bool empty() const { return left_ == 0; }
    std::uint8_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *data_++;
    }
    std::uint64_t word() {
        std::uint64_t value = 0;
        for (int k = 0; k < 8; ++k) value |= std::uint64_t(byte()) << (8 * k);
        return value;
    }
    Index between(Index least, Index most) {
        const Index range = most - least + 1;
        return least + (range <= 256 ? byte() : Index(word() >> 1)) % range;
    }
    // Mostly a valid number, sometimes an invalid one.
    Index index(Index least, Index most) {
        static const Index odd[] = {-1,
                                    0,
                                    65535,
                                    65536,
                                    65537,
                                    (Index(1) << 31) - 1,
                                    Index(1) << 31,
                                    (Index(1) << 32) + 1,
                                    std::numeric_limits<Index>::max(),
                                    std::numeric_limits<Index>::min()};
        const std::uint8_t kind = byte();
        if (kind == 255) return Index(word());
        if (kind >= 245) return odd[kind - 245];
        return between(least, most);
    }
    // The side of a tile: a multiple of the group's width, mostly.
    Index side(Index most) {
        const Index value = index(1, most);
        return value > 0 && value <= most ? value * kGroup : value;
    }
    template <typename T>
    T number() {
        const std::uint8_t kind = byte();
        switch (kind) {
            case 250:
                return std::numeric_limits<T>::quiet_NaN();
            case 251:
                return std::numeric_limits<T>::infinity();
            case 252:
                return -std::numeric_limits<T>::infinity();
            case 253:
                return std::numeric_limits<T>::max();
            case 254:
                return std::numeric_limits<T>::denorm_min();
            case 255:
                return T(-0.0);
            default:
                return (T(kind) - T(125)) / T(64);
        }
    }
    template <typename T>
    std::vector<T> numbers(Index n) {
        std::vector<T> values(static_cast<std::size_t>(n));
        // When the bytes are used up, all others are the same: not every input need be long.
        std::generate(values.begin(), values.end(), [this] { return number<T>(); });
        return values;
    }

  private:
    const std::uint8_t* data_;
    std::size_t left_;
};

}  // namespace ratoon::fuzz
