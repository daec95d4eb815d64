// Images that are shifted and flipped at random while they are read.
#pragma once

#include <algorithm>

#include "common.hpp"
#include "random.hpp"

namespace ratoon {

// The layout of an image, and how it may change.  Number ((p * height + y) * width + x) * inner + i
// of an image is pixel (y, x): channels come first (planes) or last (inner).
struct Augment {
    Index planes = 0, height = 0, width = 0, inner = 0;  // planes = 0: images are read as they are
    Index shift = 0;                                     // at most, in pixels, smaller than a side
    bool flip = false;                                   // half of the images, left to right
    std::uint64_t seed = 0;
    const Index* numbers = nullptr;  // of the samples; null: a sample has the number of its row

    struct Change {
        Index down = 0, right = 0;
        bool flip = false;
    };

    bool is_used() const { return planes > 0; }

    // A function of the seed and the number of the sample alone.
    Change change_of(Index row) const {
        const auto counter = 3 * std::uint64_t(numbers != nullptr ? numbers[row] : row);
        const auto places = std::uint64_t(2 * shift + 1);
        return {.down = Index(random_below(seed, counter, places)) - shift,
                .right = Index(random_below(seed, counter + 1, places)) - shift,
                .flip = flip && random_bits(seed, counter + 2) >> 63 != 0};
    }

    // Numbers first <= j < last of the changed image; what comes from outside the image is 0.
    template <typename X>
    void read(const X* image, const Change& change, Index first, Index last, X* out) const {
        const Index line = width * inner, from = std::max<Index>(0, change.right) * inner;
        const Index to = (width + std::min<Index>(0, change.right)) * inner;
        for (Index at = first; at < last;) {
            const Index number = at / line, begin = at % line;
            const Index end = std::min(line, begin + last - at);
            const Index y = number % height - change.down;
            X* pixels = out + (at - first);
            if (y < 0 || y >= height) {
                std::fill_n(pixels, end - begin, X(0));
            } else {
                const X* source = image + (number - change.down) * line;
                const Index low = std::clamp(from, begin, end), high = std::clamp(to, low, end);
                std::fill_n(pixels, low - begin, X(0));
                if (!change.flip) {
                    std::copy_n(source + low - change.right * inner, high - low,
                                pixels + low - begin);
                } else {
                    Index i = low % inner;
                    Index pixel = (width - 1 - low / inner + change.right) * inner;
                    for (Index e = low; e < high; ++e) {
                        pixels[e - begin] = source[pixel + i];
                        if (++i == inner) i = 0, pixel -= inner;
                    }
                }
                std::fill_n(pixels + high - begin, end - high, X(0));
            }
            at += end - begin;
        }
    }
};

}  // namespace ratoon
