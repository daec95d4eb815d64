// How a gradient updates a connection: the optimizers' rules, each with its formula.
//
// To add one: a name in `Rule`, a row in `kRules`, a branch in `apply_rule`, a case in `with_rule`.
#pragma once

#include "common.hpp"

namespace ratoon {

// `store` and `add` write gradients to the first array; `add` is for native code only.
enum class Rule : int {
    add = -1,
    store = 0,
    sgd = 1,
    momentum = 2,
    nesterov = 3,
    adam = 4,
    rmsprop = 5
};

// The numbers above, from `store` on, are places in this table.
struct RuleInfo {
    const char* name;
    int n_arrays;    // numbers kept per connection
    bool is_linear;  // a step without gradient is a linear map of (weight, first array)
};
constexpr RuleInfo kRules[] = {
    {.name = "store", .n_arrays = 1, .is_linear = false},
    {.name = "sgd", .n_arrays = 0, .is_linear = true},
    {.name = "momentum", .n_arrays = 1, .is_linear = true},
    {.name = "nesterov", .n_arrays = 1, .is_linear = true},
    {.name = "adam", .n_arrays = 2, .is_linear = false},
    {.name = "rmsprop", .n_arrays = 1, .is_linear = false},
};
constexpr int kNumberOfRules = int(sizeof(kRules) / sizeof(kRules[0]));

constexpr bool changes_weights(Rule rule) { return rule != Rule::store && rule != Rule::add; }
constexpr const RuleInfo& info_of(Rule rule) {
    return kRules[int(rule == Rule::add ? Rule::store : rule)];
}

// Hyperparameters of one step.
//   sgd        w += -lr g
//   momentum   v = mu v - lr g;  w += v
//   nesterov   v = mu v - lr g;  w += mu v - lr g
//   adam       m = b1 m + (1 - b1) g;  s = b2 s + (1 - b2) g^2;  w += -lr m / (sqrt(s) c + eps)
//   rmsprop    s = b2 s + (1 - b2) g^2;  w += -lr g / (sqrt(s) c + eps)
// where g already has l2 * w added, and w loses shrink * w on top (the released SET code's decay;
// with shrink = lr * decay also AdamW's).  Biases have no l2 and lose shrink_bias * b.  For Adam,
// b1 is mu; lr and c hold bias corrections.
template <typename T>
struct Step {
    T lr = 0, mu = 0, l2 = 0, shrink = 0;
    T beta2 = 0, adam_eps = 0, correction = 1;
    T shrink_bias = 0;
    std::uint64_t rounding_seed = 0;  // for weights kept in bfloat16
};

// Arrays aligned with the slots of a tile; which are used depends on the rule.
template <typename T>
struct Values {
    T* weights = nullptr;
    T* first = nullptr;      // momentum, or a moment; the gradient under store and add
    T* second = nullptr;     // Adam's second moment
    Half* halves = nullptr;  // weights in bfloat16, instead of `weights`; see bfloat16.hpp
    Values at(Index slot) const {
        return {weights ? weights + slot : nullptr, first ? first + slot : nullptr,
                second ? second + slot : nullptr, halves ? halves + slot : nullptr};
    }
};

// The formulas, for the eight connections from k on or for one: `Access` reads and writes as many
// numbers as V holds, and is a type of one instruction set (isa/update.hpp).
template <Rule rule, typename Access, typename T, typename V>
RATOON_INLINE void apply_rule(const Values<T>& values, Index k, V gradient, const Step<T>& step) {
    using A = Access;
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
        } else if constexpr (rule == Rule::rmsprop) {
            const V s =
                A::all(step.beta2) * A::get(values.first + k) + A::all(1 - step.beta2) * g * g;
            A::put(values.first + k, s);
            change = -A::all(step.lr) * g /
                     (A::root(s) * A::all(step.correction) + A::all(step.adam_eps));
        } else {
            static_assert(rule == Rule::adam);
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
        case Rule::rmsprop:
            return f.template operator()<Rule::rmsprop>();
        case Rule::add:
            return f.template operator()<Rule::add>();
    }
}

}  // namespace ratoon
