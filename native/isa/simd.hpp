// Eight lanes of one type, in the compiler's own vector extension (GCC and Clang).
//
// The same source becomes SSE2, AVX2, AVX-512 or NEON code by the flags it is compiled with; a
// vector wider than the machine's registers is split.  Included in one namespace per instruction
// set, so that no symbol of one set can replace that of another.
#pragma once

typedef float F32x8 __attribute__((vector_size(32)));
typedef double F64x8 __attribute__((vector_size(64)));
typedef float F32x8Unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef double F64x8Unaligned __attribute__((vector_size(64), aligned(8), may_alias));

template <typename T>
struct Lanes;
template <>
struct Lanes<float> {
    using Vec = F32x8;
    using Unaligned = F32x8Unaligned;
};
template <>
struct Lanes<double> {
    using Vec = F64x8;
    using Unaligned = F64x8Unaligned;
};
template <typename T>
using Vec = typename Lanes<T>::Vec;

template <typename T>
RATOON_INLINE Vec<T> load(const T* p) {
    return *reinterpret_cast<const typename Lanes<T>::Unaligned*>(p);
}
template <typename T>
RATOON_INLINE void store(T* p, Vec<T> v) {
    *reinterpret_cast<typename Lanes<T>::Unaligned*>(p) = v;
}
template <typename T>
RATOON_INLINE Vec<T> broadcast(T a) {
    return Vec<T>{a, a, a, a, a, a, a, a};
}

// The bytes of the widest register.  A wider vector is taken through memory by GCC where it is
// chosen between or shifted, which makes it ten times slower.
#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

// As many numbers as a register holds, for work number by number, where lanes do not matter.
template <typename T>
struct RegisterOf {
    typedef T Type __attribute__((vector_size(kRegisterBytes)));
    typedef T Unaligned __attribute__((vector_size(kRegisterBytes), aligned(sizeof(T)), may_alias));
};
template <typename T>
using Register = typename RegisterOf<T>::Type;
template <typename T>
constexpr Index kInRegister = Index(kRegisterBytes / sizeof(T));

template <typename T>
RATOON_INLINE Register<T> load_register(const T* p) {
    return *reinterpret_cast<const typename RegisterOf<T>::Unaligned*>(p);
}
template <typename T>
RATOON_INLINE void store_register(T* p, Register<T> v) {
    *reinterpret_cast<typename RegisterOf<T>::Unaligned*>(p) = v;
}

// Four numbers side by side, for `broadcast_of` to take one of them into all lanes.  In single
// precision that is one load and four shuffles instead of four loads, of which kernels have too
// many already.
template <typename T>
struct Four {
    const T* numbers;
    template <int q>
    RATOON_INLINE Vec<T> broadcast_of() const {
        return broadcast(numbers[q]);
    }
};
#if defined(__AVX2__)
template <>
struct Four<float> {
    typedef float F32x4Unaligned __attribute__((vector_size(16), aligned(4), may_alias));
    F32x8 twice;
    RATOON_INLINE explicit Four(const float* numbers) {
        const F32x4Unaligned half = *reinterpret_cast<const F32x4Unaligned*>(numbers);
        twice = __builtin_shufflevector(half, half, 0, 1, 2, 3, 0, 1, 2, 3);
    }
    template <int q>
    RATOON_INLINE F32x8 broadcast_of() const {
        constexpr int r = q + 4;
        return __builtin_shufflevector(twice, twice, q, q, q, q, r, r, r, r);
    }
};
#endif

// An AVX-512 instruction takes a number from memory into all lanes by itself, which is better still
// where its other operands are in registers.
#if defined(__AVX512VL__)
constexpr bool kOperandsBroadcast = true;
#else
constexpr bool kOperandsBroadcast = false;
#endif

template <typename V>
using NumberIn = std::remove_cvref_t<decltype(V{}[0])>;

// The integers that hold the bits of a vector's numbers.
template <typename V>
struct BitsOfVector {
    using Number = std::conditional_t<sizeof(NumberIn<V>) == 4, std::int32_t, std::int64_t>;
    typedef Number Type __attribute__((vector_size(sizeof(V))));
    static constexpr Number kSign = std::numeric_limits<Number>::min();
};
template <typename V>
using BitsOf = typename BitsOfVector<V>::Type;

template <typename V>
RATOON_INLINE V magnitude(V v) {
    return std::bit_cast<V>(std::bit_cast<BitsOf<V>>(v) & ~BitsOfVector<V>::kSign);
}

// `size` is not negative.
template <typename V>
RATOON_INLINE V with_sign_of(V v, V size) {
    const BitsOf<V> sign = std::bit_cast<BitsOf<V>>(v) & BitsOfVector<V>::kSign;
    return std::bit_cast<V>(std::bit_cast<BitsOf<V>>(size) | sign);
}

template <typename V>
RATOON_INLINE V square_root(V x) {
    V r{};
    for (int i = 0; i < 8; ++i) r[i] = __builtin_sqrt(x[i]);
    return r;
}
template <>
RATOON_INLINE F32x8 square_root(F32x8 x) {
    F32x8 r{};
    for (int i = 0; i < 8; ++i) r[i] = __builtin_sqrtf(x[i]);
    return r;
}

// A product that is not taken together with a later addition, rounded once instead of twice.  GCC
// does that where halves of a vector are registers and get added, and so for eight products at a
// time but not for one by itself.  Clang does it within an expression only.
template <typename V>
RATOON_INLINE V product_of(V a, V b) {
#if __has_builtin(__builtin_assoc_barrier)
    if constexpr (sizeof(V) > kRegisterBytes) return __builtin_assoc_barrier(a * b);
#endif
    return a * b;
}

// The lower half of a vector, and the upper half of another.
template <typename V>
RATOON_INLINE V halves_of(V lower, V upper) {
    return __builtin_shufflevector(lower, upper, 0, 1, 2, 3, 12, 13, 14, 15);
}
#if defined(__AVX512VL__)
// As a choice: with these registers GCC's shuffle goes to fewer of the processor's units, and
// updates with the error at the inputs took 6 % longer.  With AVX2 it is the other way round.
template <>
RATOON_INLINE F32x8 halves_of(F32x8 lower, F32x8 upper) {
    typedef int I32x8 __attribute__((vector_size(32)));
    return I32x8{-1, -1, -1, -1} ? lower : upper;
}
#endif

// Eight vectors in, the eight sums over their lanes out: half the work of eight separate sums.  In
// two parts, for loops that do something else between them.
template <typename V>
struct Folded {
    V q[4];

    RATOON_INLINE explicit Folded(const V p[8]) {
        for (int i = 0; i < 4; ++i) {
            q[i] = __builtin_shufflevector(p[i], p[i + 4], 4, 5, 6, 7, 8, 9, 10, 11) +
                   halves_of(p[i], p[i + 4]);
        }
    }

    RATOON_INLINE V sums() const {
        const V r0 = __builtin_shufflevector(q[0], q[1], 0, 8, 1, 9, 4, 12, 5, 13) +
                     __builtin_shufflevector(q[0], q[1], 2, 10, 3, 11, 6, 14, 7, 15);
        const V r1 = __builtin_shufflevector(q[2], q[3], 0, 8, 1, 9, 4, 12, 5, 13) +
                     __builtin_shufflevector(q[2], q[3], 2, 10, 3, 11, 6, 14, 7, 15);
        return __builtin_shufflevector(r0, r1, 0, 1, 8, 9, 4, 5, 12, 13) +
               __builtin_shufflevector(r0, r1, 2, 3, 10, 11, 6, 7, 14, 15);
    }
};

// One sum, in the same order of additions as above: a connection's gradient must not depend on
// whether it came in a group of eight or in the remainder.
template <typename V>
RATOON_INLINE auto sum_of(V p) {
    const auto a = p[0] + p[4], b = p[1] + p[5], c = p[2] + p[6], d = p[3] + p[7];
    return (a + c) + (b + d);
}

// Rows become columns: 8 vectors of 8.
template <typename V>
RATOON_INLINE void transpose8(V r[8]) {
    V a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        a[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < 8; i += 4) {
        for (int j = 0; j < 2; ++j) {
            b[i + j] = __builtin_shufflevector(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            b[i + j + 2] =
                __builtin_shufflevector(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
