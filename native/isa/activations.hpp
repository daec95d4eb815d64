// Activations and their derivatives.
//
// To add one, write a struct like these and name it in `kActivations` at the end of the file:
//   value(z, slope)             f(z)
//   chain(d, known, slope)      d * f'(z), where `derived_from` says what is known of z
// The arguments are numbers; with `in_vectors` they are vectors.
#pragma once

struct Identity {
    static constexpr const char* name = "identity";
    static constexpr DerivedFrom derived_from = DerivedFrom::sign_of_output;
    template <typename T>
    static T value(T z, T) {
        return z;
    }
    template <typename T>
    static T chain(T d, T, T) {
        return d;
    }
};

struct Relu {
    static constexpr const char* name = "relu";
    static constexpr DerivedFrom derived_from = DerivedFrom::sign_of_output;
    // Written so that NaN stays NaN: a diverged network must be seen to have diverged.
    template <typename T>
    static T value(T z, T) {
        return z < 0 ? T(0) : z;
    }
    template <typename T>
    static T chain(T d, T y, T) {
        return y > 0 ? d : T(0);
    }
};

struct LeakyRelu {
    static constexpr const char* name = "leaky_relu";
    static constexpr DerivedFrom derived_from = DerivedFrom::sign_of_output;
    template <typename T>
    static T value(T z, T slope) {
        return z < 0 ? slope * z : z;
    }
    // An output of 0 does not show its input's sign where the slope is 0: as relu's.
    template <typename T>
    static T chain(T d, T y, T slope) {
        return y > 0 ? d : slope * d;
    }
};

struct Tanh {
    static constexpr const char* name = "tanh";
    static constexpr DerivedFrom derived_from = DerivedFrom::output;
    static constexpr bool in_vectors = true;
    template <typename V>
    RATOON_INLINE static V value(V z, V) {
        return hyperbolic_tangent(z);
    }
    template <typename V>
    RATOON_INLINE static V chain(V d, V y, V) {
        return d * (NumberIn<V>(1) - y * y);
    }
};

struct Logistic {
    static constexpr const char* name = "logistic";
    static constexpr DerivedFrom derived_from = DerivedFrom::output;
    static constexpr bool in_vectors = true;
    template <typename V>
    RATOON_INLINE static V value(V z, V) {
        return logistic(z);
    }
    template <typename V>
    RATOON_INLINE static V chain(V d, V y, V) {
        return d * (y * (NumberIn<V>(1) - y));
    }
};

// Leaky ReLU whose slope may be negative: then the sign of the output does not show that of z.
struct AllRelu {
    static constexpr const char* name = "all_relu";
    static constexpr DerivedFrom derived_from = DerivedFrom::input;
    template <typename T>
    static T value(T z, T slope) {
        return z < 0 ? slope * z : z;
    }
    template <typename T>
    static T chain(T d, T z, T slope) {
        return z < 0 ? slope * d : d;
    }
};

struct Silu {
    static constexpr const char* name = "silu";
    static constexpr DerivedFrom derived_from = DerivedFrom::input;
    static constexpr bool in_vectors = true;
    template <typename V>
    RATOON_INLINE static V value(V z, V) {
        return z * logistic(z);
    }
    template <typename V>
    RATOON_INLINE static V chain(V d, V z, V) {
        const V s = logistic(z);
        constexpr NumberIn<V> one = 1;
        return d * (s * (one + z * (one - s)));
    }
};

struct Elu {
    static constexpr const char* name = "elu";
    static constexpr DerivedFrom derived_from = DerivedFrom::output;
    static constexpr bool in_vectors = true;
    template <typename V>
    RATOON_INLINE static V value(V z, V slope) {
        const V least = V{} - Exponential<NumberIn<V>>::kSaturated;
        const V found = slope * exp_minus_one(z > V{} ? V{} : z < least ? least : z);
        return z < V{} ? found : z;
    }
    // Below zero the output is slope * (exp(z) - 1), so the derivative is the output plus slope.
    template <typename V>
    RATOON_INLINE static V chain(V d, V y, V slope) {
        return y > V{} ? d : d * (y + slope);
    }
};

// ReLU with a cap.  With dropout an output does not show whether it was the cap.
template <int cap>
struct CappedRelu {
    static constexpr const char* name = cap == 6 ? "relu6" : "relu32";
    static constexpr DerivedFrom derived_from = DerivedFrom::input;
    template <typename T>
    static T value(T z, T) {
        return z < 0 ? T(0) : z > cap ? T(cap) : z;
    }
    template <typename T>
    static T chain(T d, T z, T) {
        return z > 0 && z < cap ? d : T(0);
    }
};

template <typename A>
concept InVectors = A::in_vectors;

// Calls `body` with the place of as many numbers as a register holds, which it changes, and with
// the index of the first.  The remainder is copied, so that all numbers are computed by the same
// instructions.
template <typename T, typename Body>
RATOON_INLINE void in_registers(T* y, Index n, const Body& body) {
    constexpr Index kTogether = kInRegister<T>;
    Index k = 0;
    for (; k + kTogether <= n; k += kTogether) body(y + k, k, kTogether);
    if (k == n) return;
    T rest[kTogether] = {};
    std::copy_n(y + k, n - k, rest);
    body(rest, k, n - k);
    std::copy_n(rest, n - k, y + k);
}

template <typename A, typename T>
void activate(T slope, T* y, Index n) {
    if constexpr (InVectors<A>) {
        in_registers(y, n, [&](T* at, Index, Index) {
            store_register(at, A::value(load_register(at), Register<T>{} + slope));
        });
    } else if constexpr (!std::is_same_v<A, Identity>) {
        for (Index k = 0; k < n; ++k) y[k] = A::value(y[k], slope);
    }
}

// Only for activations whose derivative needs the input.
template <typename A, typename T>
void activate_keeping(T slope, T* y, T* derivative, Index n) {
    if constexpr (A::derived_from != DerivedFrom::input) {
        return;
    } else if constexpr (InVectors<A>) {
        in_registers(y, n, [&](T* at, Index k, Index size) {
            const Register<T> z = load_register(at), slopes = Register<T>{} + slope;
            store_register(at, A::value(z, slopes));
            const Register<T> slope_here = A::chain(Register<T>{} + T(1), z, slopes);
            if (size == kInRegister<T>) return store_register(derivative + k, slope_here);
            for (Index i = 0; i < size; ++i) derivative[k + i] = slope_here[i];
        });
    } else {
        for (Index k = 0; k < n; ++k) {
            derivative[k] = A::chain(T(1), y[k], slope);
            y[k] = A::value(y[k], slope);
        }
    }
}

template <typename A, typename T>
void derive(T slope, const T* known, T unscale, T* d, Index n) {
    constexpr bool is_scaled = A::derived_from == DerivedFrom::output;
    if constexpr (InVectors<A>) {
        in_registers(d, n, [&](T* at, Index k, Index size) {
            constexpr Index kTogether = kInRegister<T>;
            T some[kTogether] = {};
            if (size < kTogether) std::copy_n(known + k, size, some);
            const Register<T> z = load_register(size < kTogether ? some : known + k);
            store_register(at, A::chain(load_register(at), is_scaled ? z * unscale : z,
                                        Register<T>{} + slope));
        });
    } else if constexpr (!std::is_same_v<A, Identity>) {
        for (Index k = 0; k < n; ++k) {
            d[k] = A::chain(d[k], is_scaled ? known[k] * unscale : known[k], slope);
        }
    }
}

template <typename A, typename T>
constexpr ActivationKernel<T> kActivation = {.name = A::name,
                                             .derived_from = A::derived_from,
                                             .activate = activate<A, T>,
                                             .activate_keeping = activate_keeping<A, T>,
                                             .derive = derive<A, T>};

// The place in this table is the activation's number; the first is kIdentity.
template <typename T>
constexpr ActivationKernel<T> kActivations[] = {
    kActivation<Identity, T>,      kActivation<Relu, T>,     kActivation<LeakyRelu, T>,
    kActivation<Tanh, T>,          kActivation<Logistic, T>, kActivation<AllRelu, T>,
    kActivation<Silu, T>,          kActivation<Elu, T>,      kActivation<CappedRelu<6>, T>,
    kActivation<CappedRelu<32>, T>};
