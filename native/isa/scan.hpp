// The inner loop of the search for large absent gradients: products of a block of inputs and
// outputs, of which only the large ones are kept.
#pragma once

// Whether any lane of a comparison holds.
template <typename Mask>
RATOON_INLINE bool any(Mask mask) {
    std::uint64_t words[sizeof(Mask) / 8], all = 0;
    std::memcpy(words, &mask, sizeof(Mask));
    for (std::uint64_t word : words) all |= word;
    return all != 0;
}

template <typename T>
Index scan(const T* const* rows, Panels<T> panels, Index first, Index last, T least,
           Hits<T>& hits) {
    constexpr int kVectors = kPanel / kLanes;
    const Vec<T> bound = broadcast(least);
    const Index depth = panels.depth;
    for (Index p = first; p < last; ++p) {
        if (hits.size + kScanRows * kPanel > hits.capacity) return p;
        const T* panel = panels.numbers + p * depth * kPanel;
        Vec<T> sums[kScanRows][kVectors] = {};
        for (Index c = 0; c < depth; ++c) {
            Vec<T> outputs[kVectors];
            for (int v = 0; v < kVectors; ++v) outputs[v] = load(panel + c * kPanel + v * kLanes);
            for (int r = 0; r < kScanRows; ++r) {
                const Vec<T> input = broadcast(rows[r][c]);
                for (int v = 0; v < kVectors; ++v) sums[r][v] += input * outputs[v];
            }
        }
        auto large = magnitude(sums[0][0]) >= bound;
        for (int r = 0; r < kScanRows; ++r) {
            for (int v = 0; v < kVectors; ++v) large |= magnitude(sums[r][v]) >= bound;
        }
        if (!any(large)) continue;
        for (int r = 0; r < kScanRows; ++r) {
            for (int k = 0; k < kPanel; ++k) {
                const T value = std::abs(sums[r][k / kLanes][k % kLanes]);
                if (value >= least) {
                    hits.places[hits.size++] = {value, std::uint32_t(r),
                                                std::uint32_t(p * kPanel + k)};
                }
            }
        }
    }
    return last;
}
