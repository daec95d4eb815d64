// Backward, fused: gradient of the weight, optimizer's rule and gradient of the input in one pass.
//
//     g = <dy[output, :], x[input, :]>        a dot product over the batch
//     dx[input, :] += w * dy[output, :]       with the weight before its update
//     w, state = rule(w, state, g)
//
// As a loop, for momentum:
//
//     for (Index k = 0; k < n; ++k) {
//         const Index input = packed[k] >> 16, output = packed[k] & 0xffff;
//         T g = 0;
//         for (Index lane = 0; lane < lanes; ++lane) {
//             g += dy[output * lanes + lane] * x[input * lanes + lane];
//             dx[input * lanes + lane] += weights[k] * dy[output * lanes + lane];
//         }
//         momentum[k] = mu * momentum[k] - lr * g;
//         weights[k] += momentum[k];
//     }
//
// The rest of this file computes just that for every rule.  The gradient is kept in registers
// only.  Eight connections are taken together, because eight sums over lanes cost little more than
// two.
#pragma once

// Whether prefetching rows is worthwhile in small tiles too: 2 to 8 % faster with AVX2, 5 to 10 %
// slower with AVX-512, for an unknown reason.
constexpr bool kFetchSmall = !kOperandsBroadcast;

// Prefetches what the rule reads of the next connections.
template <Rule rule, bool with_dx, typename T>
RATOON_INLINE void fetch_streams(const Packed* packed, const Values<T>& values, Index k) {
    fetch_stream(packed, k);
    if constexpr (with_dx || changes_weights(rule)) fetch_stream(values.weights, k);
    if constexpr (info_of(rule).n_arrays >= 1) fetch_stream(values.first, k);
    if constexpr (info_of(rule).n_arrays >= 2) fetch_stream(values.second, k);
}

// How many connections come before the first whose weight begins a vector's worth of memory.  Eight
// weights that cross into the next cache line are read and written twice, as is their momentum; but
// one by one connections are slow, and a short tile has nothing to gain.
template <typename T>
RATOON_INLINE Index until_aligned(const T* weights, Index n) {
    constexpr std::uintptr_t size = sizeof(Vec<T>);
    const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(weights) % size;
    return n < 256 ? 0 : Index((size - beyond) % size / sizeof(T));
}

// Products of one connection, summed over the vectors of the row; V = 0 means lanes / 8 vectors.
template <typename T, int V, bool with_dx, bool far, bool small>
RATOON_INLINE Vec<T> backward_one(Packed p, Packed ahead, Vec<T> weight, const T* x, const T* dy,
                                  T* dx, Index given_lanes) {
    const Index lanes = V > 0 ? 8 * V : given_lanes;  // known to the compiler where it can be
    const T* d = output_row<small>(dy, p, lanes);
    const T* from = input_row<small>(x, p, lanes);
    if (far) __builtin_prefetch(output_row<small>(dy, ahead, lanes));
    const Index vectors = V > 0 ? V : lanes / 8;
    Vec<T> sum = product_of(load(d), load(from));
    if (with_dx) {
        T* to = input_row<small>(dx, p, lanes);
        store(to, weight * load(d) + load(to));
        for (Index v = 1; v < vectors; ++v) {
            const Vec<T> delta = load(d + 8 * v);
            sum = delta * load(from + 8 * v) + sum;
            store(to + 8 * v, weight * delta + load(to + 8 * v));
        }
    } else {
        for (Index v = 1; v < vectors; ++v) sum = load(d + 8 * v) * load(from + 8 * v) + sum;
    }
    return sum;
}

template <typename T, int V, bool with_dx, bool far, bool small>
RATOON_INLINE void backward_four(const Packed* p, const Packed* ahead, const T* weights, const T* x,
                                 const T* dy, T* dx, Index lanes, Vec<T>* products) {
    const TwoIndices<small> a(p), b(p + 2), c(ahead), d(ahead + 2);
    const auto one = [&](int q, Vec<T> weight) {
        const Packed at = q == 0 ? a.first : q == 1 ? a.second : q == 2 ? b.first : b.second;
        const Packed to_come = q == 0 ? c.first : q == 1 ? c.second : q == 2 ? d.first : d.second;
        products[q] =
            backward_one<T, V, with_dx, far, small>(at, to_come, weight, x, dy, dx, lanes);
    };
    if constexpr (with_dx && !kOperandsBroadcast) {
        const Four<T> w{weights};
        one(0, w.template broadcast_of<0>());
        one(1, w.template broadcast_of<1>());
        one(2, w.template broadcast_of<2>());
        one(3, w.template broadcast_of<3>());
    } else {
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) one(q, with_dx ? broadcast(weights[q]) : Vec<T>{});
    }
}

template <typename T, int V, bool with_dx, bool far, bool small>
RATOON_INLINE Folded<Vec<T>> backward_eight(const Packed* p, const Packed* ahead, const T* weights,
                                            const T* x, const T* dy, T* dx, Index lanes) {
    Vec<T> products[8];
    for (int q = 0; q < 8; q += 4) {
        backward_four<T, V, with_dx, far, small>(p + q, ahead + q, weights + q, x, dy, dx, lanes,
                                                 products + q);
    }
    return Folded<Vec<T>>(products);
}

template <Rule rule, typename T, int V, bool with_dx, bool far, bool small = false>
void backward_rows(const Packed* packed, Values<T> values, Index n, const T* x, const T* dy, T* dx,
                   Index lanes, const Step<T>& given) {
    const Step<T> step = given;  // a copy: the compiler then knows that storing does not change it
    const T* weights = values.weights;
    const auto one_alone = [&](Index k) {
        const Vec<T> weight = with_dx ? broadcast(weights[k]) : Vec<T>{};
        const Vec<T> product =
            backward_one<T, V, with_dx, false, false>(packed[k], 0, weight, x, dy, dx, lanes);
        apply<rule, T, T>(values, k, sum_of(product), step);
    };
    Index k = 0;
    const Index reach = far ? kAhead : 0;
    constexpr bool updates_later = small || !far;
    for (const Index head = until_aligned(weights, n); k < head; ++k) one_alone(k);
    const auto eight = [&](Index j) RATOON_IN_PLACE {
        return backward_eight<T, V, with_dx, far, small>(packed + j, packed + j + reach,
                                                         weights + j, x, dy, dx, lanes);
    };
    const auto update_eight = [&](Index j, const Folded<Vec<T>>& products) RATOON_IN_PLACE {
        apply<rule, T, Vec<T>>(values, j, products.sums(), step);
    };
    // Eight connections are updated after the products of the next eight: what an update waits for
    // is then there, and does not fill the processor's queues.  5 to 15 % faster than in turn, but
    // for far tiles, where memory is what everything waits for.
    if constexpr (updates_later) {
        if (k + 8 + reach <= n) {
            Folded<Vec<T>> products = eight(k);
            for (k += 8; k + 16 + reach <= n; k += 16) {  // to a line of the streams
                fetch_streams<rule, with_dx>(packed, values, k);
                const Folded<Vec<T>> next = eight(k);
                update_eight(k - 8, products);
                products = eight(k + 8);
                update_eight(k, next);
            }
            update_eight(k - 8, products);
        }
    } else {
        for (; k + 16 + reach <= n; k += 16) {
            fetch_streams<rule, with_dx>(packed, values, k);
#pragma GCC unroll 1
            for (Index j = k; j < k + 16; j += 8) update_eight(j, eight(j));
        }
    }
    for (; k + 8 + reach <= n; k += 8) update_eight(k, eight(k));
    for (; k < n; ++k) one_alone(k);
}

template <Rule rule, typename T, bool with_dx>
void backward_single(const Packed* packed, Values<T> values, Index n, const T* x, const T* dy,
                     T* dx, const Step<T>& given) {
    const Step<T> step = given;
    Index k = 0;
    for (; k + 8 <= n; k += 8) {
        T products[8];
#pragma GCC unroll 8
        for (int q = 0; q < 8; ++q) {
            const Packed p = packed[k + q];
            const T d = dy[p & 0xffffu];
            products[q] = d * x[p >> 16];
            if (with_dx) dx[p >> 16] += values.weights[k + q] * d;
        }
        apply<rule, T, Vec<T>>(values, k, load(products), step);
    }
    for (; k < n; ++k) {
        const T d = dy[packed[k] & 0xffffu];
        const T product = d * x[packed[k] >> 16];
        if (with_dx) dx[packed[k] >> 16] += values.weights[k] * d;
        apply<rule, T, T>(values, k, product, step);
    }
}

template <Rule rule, typename T, bool with_dx>
void backward_by_lanes(const Packed* packed, Values<T> values, Index n, const T* x, const T* dy,
                       T* dx, Index lanes, const Step<T>& step, TileKind kind) {
    const bool far = kind.far;
    if (lanes == 1) return backward_single<rule, T, with_dx>(packed, values, n, x, dy, dx, step);
    const auto run = [&](auto rows) { rows(packed, values, n, x, dy, dx, lanes, step); };
    if (lanes == 8) {
        if constexpr (kSmallRows<T>) {
            if (kind.small) {
                return far && kFetchSmall ? run(backward_rows<rule, T, 1, with_dx, true, true>)
                                          : run(backward_rows<rule, T, 1, with_dx, false, true>);
            }
        }
        return far ? run(backward_rows<rule, T, 1, with_dx, true>)
                   : run(backward_rows<rule, T, 1, with_dx, false>);
    }
    if (lanes == 16) return run(backward_rows<rule, T, 2, with_dx, false>);
    if (lanes == 32) return run(backward_rows<rule, T, 4, with_dx, false>);
    return run(backward_rows<rule, T, 0, with_dx, false>);
}

template <typename T>
void backward(Rule rule, const Packed* packed, Values<T> values, Index n, const T* x, const T* dy,
              T* dx, Index lanes, const Step<T>& step, TileKind kind) {
    with_rule(rule, [&]<Rule r>() {
        if (dx != nullptr) {
            backward_by_lanes<r, T, true>(packed, values, n, x, dy, dx, lanes, step, kind);
        } else {
            backward_by_lanes<r, T, false>(packed, values, n, x, dy, dx, lanes, step, kind);
        }
    });
}
