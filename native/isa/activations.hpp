// Activations and their derivatives.
//
// To add one, write a struct like these and name it in `kActivations` at the end of the file:
//   value(z, slope)             f(z)
//   chain(d, known, slope)      d * f'(z), where `derived_from` says what is known of z
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
    template <typename T>
    static T value(T z, T) {
        return std::tanh(z);
    }
    template <typename T>
    static T chain(T d, T y, T) {
        return d * (1 - y * y);
    }
};

struct Logistic {
    static constexpr const char* name = "logistic";
    static constexpr DerivedFrom derived_from = DerivedFrom::output;
    template <typename T>
    static T value(T z, T) {
        return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z));
    }
    template <typename T>
    static T chain(T d, T y, T) {
        return d * (y * (1 - y));
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
    template <typename T>
    static T value(T z, T slope) {
        return z * Logistic::value(z, slope);
    }
    template <typename T>
    static T chain(T d, T z, T slope) {
        const T s = Logistic::value(z, slope);
        return d * (s * (1 + z * (1 - s)));
    }
};

struct Elu {
    static constexpr const char* name = "elu";
    static constexpr DerivedFrom derived_from = DerivedFrom::output;
    template <typename T>
    static T value(T z, T slope) {
        return z < 0 ? slope * std::expm1(z) : z;
    }
    // Below zero the output is slope * (exp(z) - 1), so the derivative is the output plus slope.
    template <typename T>
    static T chain(T d, T y, T slope) {
        return y > 0 ? d : d * (y + slope);
    }
};

template <typename A, typename T>
void activate(T slope, T* y, Index n) {
    if constexpr (std::is_same_v<A, Identity>) return;
    for (Index k = 0; k < n; ++k) y[k] = A::value(y[k], slope);
}

template <typename A, typename T>
void derive(T slope, const T* known, T unscale, T* d, Index n) {
    if constexpr (std::is_same_v<A, Identity>) return;
    if constexpr (A::derived_from == DerivedFrom::output) {
        for (Index k = 0; k < n; ++k) d[k] = A::chain(d[k], known[k] * unscale, slope);
    } else {
        for (Index k = 0; k < n; ++k) d[k] = A::chain(d[k], known[k], slope);
    }
}

template <typename A, typename T>
constexpr ActivationKernel<T> kActivation = {.name = A::name,
                                             .derived_from = A::derived_from,
                                             .activate = activate<A, T>,
                                             .derive = derive<A, T>};

// The place in this table is the activation's number; the first is kIdentity.
template <typename T>
constexpr ActivationKernel<T> kActivations[] = {kActivation<Identity, T>,  kActivation<Relu, T>,
                                                kActivation<LeakyRelu, T>, kActivation<Tanh, T>,
                                                kActivation<Logistic, T>,  kActivation<AllRelu, T>,
                                                kActivation<Silu, T>,      kActivation<Elu, T>};
