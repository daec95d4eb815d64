// The optimizers' rules (rules.hpp) for eight connections at a time and for one.
#pragma once

// One formula serves vectors and scalars: reading and writing differ, arithmetic does not.
template <typename T, typename V>
struct Access;
template <typename T>
struct Access<T, T> {
    static RATOON_INLINE T get(const T* p) { return *p; }
    static RATOON_INLINE void put(T* p, T v) { *p = v; }
    static RATOON_INLINE T all(T a) { return a; }
    static RATOON_INLINE T root(T a) { return T(__builtin_sqrt(double(a))); }
};
template <>
RATOON_INLINE float Access<float, float>::root(float a) {
    return __builtin_sqrtf(a);
}
template <>
struct Access<float, F32x8> {
    static RATOON_INLINE F32x8 get(const float* p) { return load(p); }
    static RATOON_INLINE void put(float* p, F32x8 v) { store(p, v); }
    static RATOON_INLINE F32x8 all(float a) { return broadcast(a); }
    static RATOON_INLINE F32x8 root(F32x8 a) { return square_root(a); }
};
template <>
struct Access<double, F64x8> {
    static RATOON_INLINE F64x8 get(const double* p) { return load(p); }
    static RATOON_INLINE void put(double* p, F64x8 v) { store(p, v); }
    static RATOON_INLINE F64x8 all(double a) { return broadcast(a); }
    static RATOON_INLINE F64x8 root(F64x8 a) { return square_root(a); }
};

template <Rule rule, typename T, typename V>
RATOON_INLINE void apply(const Values<T>& values, Index k, V gradient, const Step<T>& step) {
    apply_rule<rule, Access<T, V>>(values, k, gradient, step);
}

template <typename T>
void update(Rule rule, Values<T> values, const T* gradient, Index n, const Step<T>& given) {
    const Step<T> step = given;  // a copy: the compiler then knows that storing does not change it
    with_rule(rule, [&]<Rule r>() {
        Index k = 0;
        for (; k + 8 <= n; k += 8) apply<r, T, Vec<T>>(values, k, load(gradient + k), step);
        for (; k < n; ++k) apply<r, T, T>(values, k, gradient[k], step);
    });
}
