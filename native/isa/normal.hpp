// Normal deviates: number k of a stream depends on k alone.
//
// Box and Muller: one random word gives two uniform numbers, and those two normal ones.  In single
// precision eight words go together, with vectorised versions of logarithm, sine and cosine: the
// upper 24 bits of the word are the radius' uniform number, the next 24 the angle, both exact in
// float.
#pragma once

typedef std::int32_t I32x8 __attribute__((vector_size(32)));

RATOON_INLINE F32x8 as_float(I32x8 x) { return __builtin_convertvector(x, F32x8); }

// The natural logarithm of k / 2^24, k in 1 .. 2^24.
//
// k = m * 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(f), f = (m - 1) / (m + 1), |f| <
// 0.172, of which the series needs four terms for the precision of float.
RATOON_INLINE F32x8 log_of_fraction(I32x8 k) {
    const I32x8 bits = std::bit_cast<I32x8>(as_float(k));
    // Adding so that the exponent steps up at sqrt(2) instead of at 2.
    const I32x8 raised = bits + (0x3f800000 - 0x3f3504f3);
    const F32x8 exponent = as_float((raised >> 23) - (127 + 24));
    const F32x8 m = std::bit_cast<F32x8>((raised & 0x007fffff) + 0x3f3504f3);
    const F32x8 f = (m - 1.0f) / (m + 1.0f), q = f * f;
    const F32x8 series = (((0.22222222f * q + 0.28571429f) * q + 0.4f) * q + 0.66666667f) * q;
    return exponent * 0.69314718f + (f + f + f * series);
}

// Sine and cosine of 2 pi k / 2^24, k in 0 .. 2^24 - 1.
//
// The nearest quarter turn follows from the upper bits, without rounding; what is left lies within
// an eighth of a turn, where the Taylor series is as precise as float.
RATOON_INLINE void turn_of_fraction(I32x8 k, F32x8& sine, F32x8& cosine) {
    constexpr int kEighth = 1 << 21, kQuarter = 1 << 22;
    const I32x8 quarter = (k + kEighth) >> 22;
    const F32x8 x = as_float(((k + kEighth) & (kQuarter - 1)) - kEighth) * 3.7450704e-7f;
    const F32x8 q = x * x;
    const F32x8 s =
        x + x * q * (((2.7557319e-6f * q - 1.9841270e-4f) * q + 8.3333333e-3f) * q - 0.16666667f);
    const F32x8 c =
        1.0f +
        q * ((((-2.7557319e-7f * q + 2.4801587e-5f) * q - 1.3888889e-3f) * q + 4.1666667e-2f) * q -
             0.5f);
    const I32x8 swapped = (quarter & 1) != 0;
    const I32x8 sine_sign = (quarter & 2) << 30, cosine_sign = ((quarter + 1) & 2) << 30;
    sine = std::bit_cast<F32x8>(std::bit_cast<I32x8>(swapped ? c : s) ^ sine_sign);
    cosine = std::bit_cast<F32x8>(std::bit_cast<I32x8>(swapped ? s : c) ^ cosine_sign);
}

// Sixteen deviates of the pairs first_pair .. first_pair + 7.
RATOON_INLINE void normal_pairs(std::uint64_t seed, std::uint64_t first_pair, float sigma,
                                float* out) {
    I32x8 radius_k, angle_k;
    for (int i = 0; i < 8; ++i) {
        const std::uint64_t bits = random_bits(seed, first_pair + std::uint64_t(i));
        // In 1 .. 2^24, so that the logarithm is finite.
        radius_k[i] = std::int32_t(bits >> 40) + 1;
        angle_k[i] = std::int32_t((bits >> 8) & 0xffffffu);
    }
    F32x8 sine, cosine;
    turn_of_fraction(angle_k, sine, cosine);
    const F32x8 radius = sigma * square_root(-2.0f * log_of_fraction(radius_k));
    sine *= radius;
    cosine *= radius;
    store(out, __builtin_shufflevector(cosine, sine, 0, 8, 1, 9, 2, 10, 3, 11));
    store(out + 8, __builtin_shufflevector(cosine, sine, 4, 12, 5, 13, 6, 14, 7, 15));
}

RATOON_INLINE void normal_pairs(std::uint64_t seed, std::uint64_t first_pair, double sigma,
                                double* out) {
    for (int i = 0; i < 8; ++i) {
        const std::uint64_t bits = random_bits(seed, first_pair + std::uint64_t(i));
        const double u = (double(bits >> 40) + 1) * (1.0 / 16777216.0);
        const double angle = double((bits >> 8) & 0xffffffu) * (6.283185307179586 / 16777216.0);
        const double radius = sigma * std::sqrt(-2.0 * std::log(u));
        out[2 * i] = radius * std::cos(angle);
        out[2 * i + 1] = radius * std::sin(angle);
    }
}

template <typename T>
void normal(std::uint64_t seed, T sigma, T* out, Index first, Index n) {
    constexpr Index kTogether = 16;
    Index k = 0;
    while (k < n) {
        const Index before = (first + k) % kTogether;
        const auto pair = std::uint64_t((first + k - before) / 2);
        if (before == 0 && n - k >= kTogether) {
            normal_pairs(seed, pair, sigma, out + k);
            k += kTogether;
            continue;
        }
        T some[kTogether];
        normal_pairs(seed, pair, sigma, some);
        const Index taken = std::min(n - k, kTogether - before);
        std::copy_n(some + before, taken, out + k);
        k += taken;
    }
}
