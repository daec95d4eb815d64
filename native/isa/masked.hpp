// Narrow layers that are nearly full: a mask of 16 bits instead of 16 indices.
//
// Connections of such a layer come in groups of 16 inputs, output by output.  A mask shows which of
// the 16 inputs an output is connected to; its weights are moved to their places, and the rest is
// the arithmetic of a dense layer, eight inputs at a time.  Inputs, errors and weights stay in
// registers, and no index is read.
//
// For at most eight samples in single precision, where a connection otherwise costs most.
#pragma once

#if defined(__AVX2__)

// For every mask of eight bits: which of the numbers given for its set bits goes to each place
// (negative for no number), and the places of its set bits in turn.
struct Places {
    std::int8_t spread[256][8], gather[256][8];
};
constexpr Places kPlaces = [] {
    Places places{};
    for (int mask = 0; mask < 256; ++mask) {
        int n = 0;
        for (int bit = 0; bit < 8; ++bit) {
            const bool is_set = (mask >> bit & 1) != 0;
            places.spread[mask][bit] = std::int8_t(is_set ? n : -1);
            if (is_set) places.gather[mask][n++] = std::int8_t(bit);
        }
    }
    return places;
}();

RATOON_INLINE __m256i widened(const std::int8_t* eight) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight)));
}

// Takes as many numbers as there are set bits and puts them there, 0 elsewhere.  Reads eight in any
// case.
RATOON_INLINE F32x8 taken(const float*& numbers, unsigned mask) {
    const __m256i from = widened(kPlaces.spread[mask]);
    const __m256 at_places = _mm256_permutevar8x32_ps(_mm256_loadu_ps(numbers), from);
    numbers += __builtin_popcount(mask);
    return F32x8(_mm256_blendv_ps(at_places, _mm256_setzero_ps(), _mm256_castsi256_ps(from)));
}

// Writes the numbers at the set bits, and anything behind them, eight in all; returns how many.
RATOON_INLINE Index put(float* to, F32x8 at_places, unsigned mask) {
    const __m256i from = widened(kPlaces.gather[mask]);
    store(to, F32x8(_mm256_permutevar8x32_ps(__m256(at_places), from)));
    return __builtin_popcount(mask);
}

constexpr Index kGroupInputs = 16, kMostOfGroup = kGroupInputs * kNarrow;

// The rows of a group of inputs become vectors over inputs: sample s of inputs 0 to 7 is low[s], of
// inputs 8 to 15 high[s].
struct Group {
    F32x8 low[8], high[8];

    RATOON_INLINE Group(const float* rows, Index n_inputs) {
        float padded[kGroupInputs * kLanes];
        if (n_inputs < kGroupInputs) {  // the last of a layer
            std::fill_n(std::copy_n(rows, n_inputs * kLanes, padded),
                        (kGroupInputs - n_inputs) * kLanes, 0.0f);
            rows = padded;
        }
        for (int i = 0; i < 8; ++i) {
            low[i] = load(rows + i * kLanes);
            high[i] = load(rows + (8 + i) * kLanes);
        }
        transpose8(low);
        transpose8(high);
    }
};

// The weights of a group.  What lies behind those of the last group belongs to another task,
// which may be changing it: they are copied.
RATOON_INLINE const float* readable(const float* weights, Index left, float* copy) {
    if (left >= kMostOfGroup + kLanes) return weights;
    std::fill_n(std::copy_n(weights, left, copy), kLanes, 0.0f);
    return copy;
}

template <int S>
void masked_forward_of(const Masked& strip, const float* weights, const float* x, float* sums) {
    F32x8 partial[kNarrow][S] = {};
    float copy[kMostOfGroup + 2 * kLanes];
    Index left = strip.n_connections;
    for (Index first = 0; first < strip.n_inputs; first += kGroupInputs) {
        const Group group(x + first * kLanes, std::min(kGroupInputs, strip.n_inputs - first));
        const std::uint16_t* masks = strip.masks + first / kGroupInputs * strip.n_out;
        const float* w = readable(weights + (strip.n_connections - left), left, copy);
        const float* begin = w;
        for (Index i = 0; i < strip.n_out; ++i) {
            const unsigned low = masks[i] & 0xffu, high = masks[i] >> 8;
            const F32x8 to_low = taken(w, low), to_high = taken(w, high);
#pragma GCC unroll 8
            for (int s = 0; s < S; ++s) {
                partial[i][s] = to_low * group.low[s] + partial[i][s];
                partial[i][s] = to_high * group.high[s] + partial[i][s];
            }
        }
        left -= w - begin;
    }
    for (Index i = 0; i < strip.n_out; ++i) {
        for (int s = 0; s < kLanes; ++s) {
            sums[i * kLanes + s] = s < S ? sum_of(partial[i][s < S ? s : 0]) : 0.0f;
        }
    }
}

template <int S>
void masked_backward_of(Rule rule, const Masked& strip, Values<float> values, const float* x,
                        const float* dy, float* dx, const Step<float>& step) {
    constexpr Index kGroupsAtOnce = 4;  // an update has a beginning and an end, which cost
    float gradients[kGroupsAtOnce * kMostOfGroup + kLanes], copy[kMostOfGroup + 2 * kLanes];
    Index slot = 0, n = 0;  // gradients of the slots slot .. slot + n are waiting
    for (Index first = 0; first < strip.n_inputs; first += kGroupInputs) {
        const Index n_inputs = std::min(kGroupInputs, strip.n_inputs - first);
        const Group group(x + first * kLanes, n_inputs);
        const std::uint16_t* masks = strip.masks + first / kGroupInputs * strip.n_out;
        const float* w = readable(values.weights + slot + n, strip.n_connections - slot - n, copy);
        F32x8 dx_low[8] = {}, dx_high[8] = {};
        for (Index i = 0; i < strip.n_out; ++i) {
            const unsigned low = masks[i] & 0xffu, high = masks[i] >> 8;
            const F32x8 to_low = taken(w, low), to_high = taken(w, high);
            F32x8 of_low{}, of_high{};
#pragma GCC unroll 8
            for (int s = 0; s < S; ++s) {
                const F32x8 error = broadcast(dy[i * kLanes + s]);
                of_low = error * group.low[s] + of_low;
                of_high = error * group.high[s] + of_high;
                dx_low[s] = error * to_low + dx_low[s];
                dx_high[s] = error * to_high + dx_high[s];
            }
            n += put(gradients + n, of_low, low);
            n += put(gradients + n, of_high, high);
        }
        transpose8(dx_low);
        transpose8(dx_high);
        for (Index j = 0; j < n_inputs; ++j) {
            store(dx + (first + j) * kLanes, j < 8 ? dx_low[j] : dx_high[j - 8]);
        }
        const bool is_last = first + kGroupInputs >= strip.n_inputs;
        if (is_last || first / kGroupInputs % kGroupsAtOnce == kGroupsAtOnce - 1) {
            update<float>(rule, values.at(slot), gradients, n, step);
            slot += n;
            n = 0;
        }
    }
}

// Calls f with the number of samples, 1 to 8, as a compile-time constant.
template <typename F, int... S>
RATOON_INLINE void with_samples(Index n_samples, F f, std::integer_sequence<int, S...>) {
    ((n_samples == S + 1 ? f.template operator()<S + 1>() : void()), ...);
}
constexpr std::make_integer_sequence<int, kLanes> kSamples{};

inline void masked_forward(const Masked& strip, const float* weights, const float* x,
                           Index n_samples, float* sums) {
    const auto run = [&]<int S>() { masked_forward_of<S>(strip, weights, x, sums); };
    with_samples(n_samples, run, kSamples);
}

inline void masked_backward(Rule rule, const Masked& strip, Values<float> values, const float* x,
                            const float* dy, float* dx, Index n_samples, const Step<float>& step) {
    const auto run = [&]<int S>() { masked_backward_of<S>(rule, strip, values, x, dy, dx, step); };
    with_samples(n_samples, run, kSamples);
}

#endif
