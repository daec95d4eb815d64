// The optimizer's rules, for eight connections at a time and for one.
#pragma once

// One expression serves vectors and scalars: `load_at` and `store_at` differ, arithmetic does not.
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
    using A = Access<T, V>;
    if constexpr (rule == Rule::store) {
        A::put(values.first + k, gradient);
    } else if constexpr (rule == Rule::add) {
        A::put(values.first + k, A::get(values.first + k) + gradient);
    } else {
        const V w = A::get(values.weights + k);
        const V g = gradient + A::all(step.l2) * w;
        const V shrunk = w - A::all(step.shrink) * w;
        V change;
        if constexpr (rule == Rule::sgd) {
            change = -A::all(step.lr) * g;
        } else if constexpr (rule == Rule::momentum || rule == Rule::nesterov) {
            const V v = A::all(step.mu) * A::get(values.first + k) - A::all(step.lr) * g;
            A::put(values.first + k, v);
            change = rule == Rule::momentum ? v : A::all(step.mu) * v - A::all(step.lr) * g;
        } else {
            const V m = A::all(step.mu) * A::get(values.first + k) + A::all(1 - step.mu) * g;
            const V s =
                A::all(step.beta2) * A::get(values.second + k) + A::all(1 - step.beta2) * g * g;
            A::put(values.first + k, m);
            A::put(values.second + k, s);
            change = -A::all(step.lr) * m /
                     (A::root(s) * A::all(step.correction) + A::all(step.adam_eps));
        }
        A::put(values.weights + k, shrunk + change);
    }
}

// Calls f with the rule as a compile-time constant.
template <typename F>
RATOON_INLINE void with_rule(Rule rule, F f) {
    switch (rule) {
        case Rule::store:
            return f.template operator()<Rule::store>();
        case Rule::sgd:
            return f.template operator()<Rule::sgd>();
        case Rule::momentum:
            return f.template operator()<Rule::momentum>();
        case Rule::nesterov:
            return f.template operator()<Rule::nesterov>();
        case Rule::adam:
            return f.template operator()<Rule::adam>();
        case Rule::add:
            return f.template operator()<Rule::add>();
    }
}

template <typename T>
void update(Rule rule, Values<T> values, const T* gradient, Index n, const Step<T>& given) {
    const Step<T> step = given;  // a copy: the compiler must not fear that storing changes it
    with_rule(rule, [&]<Rule r>() {
        Index k = 0;
        for (; k + 8 <= n; k += 8) apply<r, T, Vec<T>>(values, k, load(gradient + k), step);
        for (; k < n; ++k) apply<r, T, T>(values, k, gradient[k], step);
    });
}
