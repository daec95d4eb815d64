// exp, tanh and the logistic function of eight numbers at a time.
//
// z = n log 2 + r with |r| <= log(2) / 2, so exp(z) = 2^n exp(r), and a short Taylor series is as
// precise as the type.  Errors stay below 3 units in the last place; NaN stays NaN.  An element's
// result does not depend on the others.  Results below 1e-37 (in double precision 1e-307) count as
// zero.
#pragma once

typedef std::int64_t I64x8 __attribute__((vector_size(64)));

template <typename V>
using NumberIn = std::remove_cvref_t<decltype(V{}[0])>;

template <typename V>
struct Exponential;

template <>
struct Exponential<F32x8> {
    using Bits = I32x8;
    static constexpr float kLeast = -87.0f;       // exp of less counts as zero
    static constexpr float kSaturated = 20.0f;    // tanh of half of it is 1
    static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    static constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
    static constexpr int kMantissa = 23, kBias = 127, kDegree = 7;
};

template <>
struct Exponential<F64x8> {
    using Bits = I64x8;
    static constexpr double kLeast = -708.0;
    static constexpr double kSaturated = 40.0;
    static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double kLog2High = 6.93145751953125e-1;
    static constexpr double kLog2Low = 1.42860682030941723212e-6;
    static constexpr int kMantissa = 52, kBias = 1023, kDegree = 13;
};

// 2^n and exp(r) - 1.
template <typename V>
struct Split {
    V power, rest;
};

template <typename V>
RATOON_INLINE Split<V> split_exponential(V z) {
    using E = Exponential<V>;
    using Bits = typename E::Bits;
    using T = NumberIn<V>;
    const V shifted = z * T(1.4426950408889634) + E::kRound;
    const V n = shifted - E::kRound;
    const V r = (z - n * E::kLog2High) - n * E::kLog2Low;
    // r^2 / 2! + r^3 / 3! + ..., from the last term on.
    T factorial = 1;
    for (int k = 2; k <= E::kDegree; ++k) factorial *= T(k);
    V series = V{} + 1 / factorial;
    for (int k = E::kDegree; k > 2; --k) {
        factorial /= T(k);
        series = series * r + 1 / factorial;
    }
    const Bits whole = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(V{} + E::kRound);
    return {std::bit_cast<V>((whole + E::kBias) << E::kMantissa), r + r * r * series};
}

// exp(z), z <= 0.
template <typename V>
RATOON_INLINE V exp_of_negative(V z) {
    const V least = V{} + Exponential<V>::kLeast;
    const Split<V> e = split_exponential(z < least ? V{} : z);
    return z < least ? V{} : e.power + e.power * e.rest;
}

// exp(z) - 1, precise around 0; z within -kSaturated and kSaturated.
template <typename V>
RATOON_INLINE V exp_minus_one(V z) {
    const Split<V> e = split_exponential(z);
    return e.power * e.rest + (e.power - NumberIn<V>(1));
}

// With h = (exp(2 z) - 1) / 2 it is h / (1 + h); for small h, h - h^2 / (1 + h) is more precise.
template <typename V>
RATOON_INLINE V hyperbolic_tangent(V z) {
    constexpr NumberIn<V> one = 1, half = 0.5, small = 0.25;
    const V most = V{} + Exponential<V>::kSaturated;
    const V twice = magnitude(z) + magnitude(z);
    const V h = exp_minus_one(twice > most ? most : twice) * half;
    const V quotient = h / (one + h);
    const V found = h < small ? h - h * quotient : quotient;
    return z < V{} ? -found : found;
}

template <typename V>
RATOON_INLINE V logistic(V z) {
    const V one = V{} + NumberIn<V>(1);
    const V e = exp_of_negative(-magnitude(z));
    return (z < V{} ? e : one) / (one + e);
}
