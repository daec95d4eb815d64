// exp, tanh and the logistic function of as many numbers at a time as a register holds.
//
// z = n log 2 + r with |r| <= log(2) / 2, so exp(z) = 2^n exp(r), and a short polynomial is as
// precise as the type.  Errors stay below 3 units in the last place; NaN stays NaN.  An element's
// result does not depend on the others.  Results of the logistic function below 1e-37 (in double
// precision 1e-307) count as zero.
#pragma once

template <typename T>
struct Exponential;

template <>
struct Exponential<float> {
    static constexpr float kMost = 87.0f;       // exp of the numbers within +-kMost is normal
    static constexpr float kSaturated = 20.0f;  // tanh of half of it is 1
    // 1.5 * 2^23 + 127: adding it rounds to an integer, in whose lower bits it is the exponent of
    // 2^n.
    static constexpr float kRound = 12583039.0f;
    static constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
    static constexpr int kMantissa = 23;
    // exp(r) = 1 + r + r^2 P(r): the P with the least relative error, 3.1e-9.
    static constexpr float kSeries[] = {0.49999993412501566f, 0.16666520107819590f,
                                        0.041668394210893869f, 0.0083687804111805336f,
                                        0.0013814467059326511f};
};

template <>
struct Exponential<double> {
    static constexpr double kMost = 708.0;
    static constexpr double kSaturated = 40.0;
    static constexpr double kRound = 6755399441056767.0;  // 1.5 * 2^52 + 1023
    static constexpr double kLog2High = 6.93145751953125e-1;
    static constexpr double kLog2Low = 1.42860682030941723212e-6;
    static constexpr int kMantissa = 52;
    // Taylor's, whose error is 4e-18.
    static constexpr double kSeries[] = {1.0 / 2,        1.0 / 6,         1.0 / 24,
                                         1.0 / 120,      1.0 / 720,       1.0 / 5040,
                                         1.0 / 40320,    1.0 / 362880,    1.0 / 3628800,
                                         1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
};

// 2^n and exp(r) - 1.
template <typename V>
struct Split {
    V power, rest;
};

// The terms first, first + 2, ... of the series, as a polynomial in r^2.
template <int first, typename V>
RATOON_INLINE V every_second_term(V square) {
    using E = Exponential<NumberIn<V>>;
    constexpr int kTerms = int(std::size(E::kSeries));
    int k = kTerms - 1 - (kTerms - 1 - first) % 2;
    V sum = V{} + E::kSeries[k];
    for (k -= 2; k >= first; k -= 2) sum = sum * square + E::kSeries[k];
    return sum;
}

template <typename V>
RATOON_INLINE Split<V> split_exponential(V z) {
    using E = Exponential<NumberIn<V>>;
    const V shifted = z * NumberIn<V>(1.4426950408889634) + E::kRound;
    const V n = shifted - E::kRound;
    const V r = (z - n * E::kLog2High) - n * E::kLog2Low;
    // Two sums, so that half as many operations wait for each other.
    const V square = r * r;
    const V series = every_second_term<1>(square) * r + every_second_term<0>(square);
    return {std::bit_cast<V>(std::bit_cast<BitsOf<V>>(shifted) << E::kMantissa),
            square * series + r};
}

// With h = 1 - exp(-2 |z|) it is h / (2 - h).
template <typename V>
RATOON_INLINE V hyperbolic_tangent(V z) {
    using E = Exponential<NumberIn<V>>;
    const V twice = magnitude(z) * NumberIn<V>(-2);
    const V least = V{} - E::kSaturated;
    const Split<V> e = split_exponential(twice < least ? least : twice);
    const V h = (NumberIn<V>(1) - e.power) - e.power * e.rest;
    return with_sign_of(z, h / (NumberIn<V>(2) - h));
}

// exp(z) - 1, precise around 0; z within -kMost and kMost.
template <typename V>
RATOON_INLINE V exp_minus_one(V z) {
    const Split<V> e = split_exponential(z);
    return e.power * e.rest + (e.power - NumberIn<V>(1));
}

template <typename V>
RATOON_INLINE V logistic(V z) {
    using E = Exponential<NumberIn<V>>;
    const V most = V{} + E::kMost;
    const V less = z > most ? most : z;
    const Split<V> e = split_exponential(-(less < -most ? -most : less));
    constexpr NumberIn<V> one = 1;
    const V found = one / (one + (e.power + e.power * e.rest));
    return z < -most ? V{} : found;
}
