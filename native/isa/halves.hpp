// Weights in bfloat16 become floats and back (../bfloat16.hpp).
#pragma once

void widen(const Half* halves, Index n, float* weights) {
    for (Index k = 0; k < n; ++k) {
        weights[k] = std::bit_cast<float>(std::uint32_t(halves[k]) << 16);
    }
}

// Four decisions from one random word, 16 bits each; as many words at a time as a register holds.
void round_at_random(const float* weights, std::uint64_t seed, std::uint64_t first, Index n,
                     Half* halves) {
    using Words = Register<std::uint64_t>;
    constexpr Index kWords = kInRegister<std::uint64_t>, kTogether = 4 * kWords;
    const auto one_by_one = [&](Index k, Index end) {
        for (; k < end; ++k) {
            const std::uint64_t at = first + std::uint64_t(k);
            const std::uint64_t bits = random_bits(seed, at / 4) >> (16 * (at % 4));
            halves[k] = to_bfloat16(weights[k], std::uint32_t(bits) & 0xffffu);
        }
    };
    Index k = std::min(n, Index((4 - first % 4) % 4));
    one_by_one(0, k);
    Words states = random_states<Words>(seed, (first + std::uint64_t(k)) / 4);
    for (; k + kTogether <= n; k += kTogether) {
        const Words words = mixed(states);
        states += std::uint64_t(kWords) * kRandomStep;
        std::uint16_t noise[kTogether];
        std::memcpy(noise, &words, sizeof(words));
        for (Index i = 0; i < kTogether; ++i) halves[k + i] = to_bfloat16(weights[k + i], noise[i]);
    }
    one_by_one(k, n);
}
