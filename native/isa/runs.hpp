// Forward and backward for wide minibatches, run by run (../runs.hpp).
//
//     for (Index run = first; run < last; ++run) {       // an output
//         for (lane ...) y[run, lane] = bias[run];
//         for (k = starts[run]; k < starts[run + 1]; ++k) {
//             for (lane ...) y[run, lane] += weights[links[k].slot] * x[links[k].other, lane];
//         }
//     }
//     for (Index run = first; run < last; ++run) {       // an input
//         for (lane ...) dx[run, lane] = 0;
//         for (k = starts[run]; k < starts[run + 1]; ++k) {
//             const auto [output, slot] = links[k];
//             for (lane ...) dx[run, lane] += weights[slot] * dy[output, lane];
//             gradients[slot] = sum over lanes of x[run, lane] * dy[output, lane];
//         }
//     }
//
// The sums of a run stay in registers, so a connection costs one load per vector of lanes: of a row
// of x forward, and of a row of dy backward, which serves both products.
#pragma once

// A vector of 64 bytes: one register with AVX-512, two with AVX2.
typedef float F32x16 __attribute__((vector_size(64)));
typedef float F32x16Unaligned __attribute__((vector_size(64), aligned(4), may_alias));

template <typename V>
struct Piece;  // of a row: how to read it, write it, and add its numbers up to eight
template <>
struct Piece<F32x16> {
    static constexpr Index kSize = 16;
    static RATOON_INLINE F32x16 get(const float* p) {
        return *reinterpret_cast<const F32x16Unaligned*>(p);
    }
    static RATOON_INLINE void put(float* p, F32x16 v) {
        *reinterpret_cast<F32x16Unaligned*>(p) = v;
    }
    static RATOON_INLINE F32x16 all(float a) {
        return F32x16{a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
    }
    static RATOON_INLINE F32x8 eight(F32x16 v) {
        return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
               __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    }
};
template <typename V>
    requires(sizeof(V) == 8 * sizeof(V{}[0]))
struct Piece<V> {
    using T = std::remove_cvref_t<decltype(V{}[0])>;
    static constexpr Index kSize = 8;
    static RATOON_INLINE V get(const T* p) { return load(p); }
    static RATOON_INLINE void put(T* p, V v) { store(p, v); }
    static RATOON_INLINE V all(T a) { return broadcast(a); }
    static RATOON_INLINE V eight(V v) { return v; }
};

template <typename T>
struct WideVector {
    using Type = Vec<T>;
};
template <>
struct WideVector<float> {
    using Type = F32x16;
};
template <typename T>
using Wide = typename WideVector<T>::Type;

// So many wide vectors of a row are worked on together, as registers allow.
#if defined(__AVX512F__)
constexpr int kMostTogether = 8;
#else
constexpr int kMostTogether = 4;
#endif

// The lanes of N vectors V from `x` and `y` on.  Links that count are picked without a branch, some
// at a time: zeros are scattered, and a branch would be guessed wrong.
template <typename T, typename V, int N, bool picks>
void forward_run_piece(const Link* links, const Index* starts, Index first, Index last,
                       const T* weights, const T* bias, const T* x, const std::uint8_t* live, T* y,
                       Index lanes) {
    using P = Piece<V>;
    constexpr Index kPicked = 64;
    for (Index run = first; run < last; ++run) {
        V sums[N];
        for (int v = 0; v < N; ++v) sums[v] = V{} + bias[run];  // so that -0 is 0
        const auto add = [&](const Link* link, const Link* end) RATOON_IN_PLACE {
            for (; link < end; ++link) {
                const T* from = x + Index(link->other) * lanes;
                const V weight = P::all(weights[link->slot]);
#pragma GCC unroll 8
                for (int v = 0; v < N; ++v) {
                    sums[v] = weight * P::get(from + v * P::kSize) + sums[v];
                }
            }
        };
        if constexpr (picks) {
            Link picked[kPicked];
            for (Index k = starts[run]; k < starts[run + 1]; k += kPicked) {
                const Index end = std::min(starts[run + 1], k + kPicked);
                Index n = 0;
                for (Index j = k; j < end; ++j) {
                    picked[n] = links[j];
                    n += live[links[j].other];
                }
                add(picked, picked + n);
            }
        } else {
            add(links + starts[run], links + starts[run + 1]);
        }
        for (int v = 0; v < N; ++v) P::put(y + run * lanes + v * P::kSize, sums[v]);
    }
}

// Gradients of the connections `links`, from eight sums over lanes of each.
template <bool add, typename T>
void store_gradients(const Link* links, Index n, const T* eights, T* gradients) {
    const auto put = [&](Index k, T sum) RATOON_IN_PLACE {
        T* at = gradients + links[k].slot;
        *at = add ? *at + sum : sum;
    };
    const auto fold = [&](Index k, Index size) RATOON_IN_PLACE {
        Vec<T> products[8];
        for (Index q = 0; q < 8; ++q) {
            products[q] = q < size ? load(eights + 8 * (k + q)) : Vec<T>{};
        }
        const Vec<T> sums = Folded<Vec<T>>(products).sums();
        for (Index q = 0; q < size; ++q) put(k + q, sums[q]);
    };
    for (Index k = 0; k < n; k += 8) n - k >= 8 ? fold(k, 8) : fold(k, n - k);
}

template <typename T, typename V, int N, bool with_dx, bool add>
void backward_run_piece(const Link* links, const Index* starts, Index first, Index last,
                        const T* weights, T* gradients, const T* x, const T* dy, T* dx,
                        Index lanes) {
    using P = Piece<V>;
    constexpr Index kWaiting = 64;  // connections whose products are added up together
    alignas(64) T eights[8 * kWaiting];
    Index done = starts[first], k = done;
    for (Index run = first; run < last; ++run) {
        V own[N], sums[N];
        for (int v = 0; v < N; ++v) {
            own[v] = P::get(x + run * lanes + v * P::kSize);
            sums[v] = V{};
        }
        if constexpr (!with_dx) {
            // Features that are constant, as at the border of images, are zero in every sample.
            bool is_zero = true;
            for (int v = 0; v < N && is_zero; ++v) {
                for (Index lane = 0; lane < P::kSize; ++lane) is_zero &= own[v][lane] == T(0);
            }
            if (is_zero) {
                store_gradients<add>(links + done, k - done, eights, gradients);
                for (; k < starts[run + 1]; ++k) {
                    if (!add) gradients[links[k].slot] = T(0);
                }
                done = k;
                continue;
            }
        }
        while (k < starts[run + 1]) {
            const Index end = std::min(starts[run + 1], done + kWaiting);
            for (; k < end; ++k) {
                const T* from = dy + Index(links[k].other) * lanes;
                const V weight = with_dx ? P::all(weights[links[k].slot]) : V{};
                V product{};
#pragma GCC unroll 8
                for (int v = 0; v < N; ++v) {
                    const V error = P::get(from + v * P::kSize);
                    product = v == 0 ? error * own[v] : error * own[v] + product;
                    if (with_dx) sums[v] = weight * error + sums[v];
                }
                store(eights + 8 * (k - done), P::eight(product));
            }
            if (k == done + kWaiting) {
                store_gradients<add>(links + done, kWaiting, eights, gradients);
                done = k;
            }
        }
        if (with_dx) {
            for (int v = 0; v < N; ++v) P::put(dx + run * lanes + v * P::kSize, sums[v]);
        }
    }
    store_gradients<add>(links + done, k - done, eights, gradients);
}

// Calls f<V, N>(column) for pieces that make up all lanes.
template <typename T, typename F, int... N>
RATOON_INLINE void in_pieces(Index lanes, F f, std::integer_sequence<int, N...>) {
    constexpr Index wide = Piece<Wide<T>>::kSize;
    Index column = 0;
    for (; column + wide * kMostTogether <= lanes; column += wide * kMostTogether) {
        f.template operator()<Wide<T>, kMostTogether>(column);
    }
    const Index left = (lanes - column) / wide;
    ((left == N + 1 ? f.template operator()<Wide<T>, N + 1>(column) : void()), ...);
    column += left * wide;
    if constexpr (wide > 8) {
        if (column < lanes) f.template operator()<Vec<T>, 1>(column);
    }
}

template <typename T>
void forward_runs(const Link* links, const Index* starts, Index first, Index last, const T* weights,
                  const T* bias, const T* x, const std::uint8_t* live, T* y, Index lanes) {
    const auto piece = [&]<typename V, int N>(Index column) {
        const auto run =
            live == nullptr ? forward_run_piece<T, V, N, false> : forward_run_piece<T, V, N, true>;
        run(links, starts, first, last, weights, bias, x + column, live, y + column, lanes);
    };
    in_pieces<T>(lanes, piece, std::make_integer_sequence<int, kMostTogether - 1>{});
}

template <typename T>
void backward_runs(const Link* links, const Index* starts, Index first, Index last,
                   const T* weights, T* gradients, bool add, const T* x, const T* dy, T* dx,
                   Index lanes) {
    const auto piece = [&]<typename V, int N>(Index column) {
        const auto run = [&]<bool adds>() {
            if (dx != nullptr) {
                backward_run_piece<T, V, N, true, adds>(links, starts, first, last, weights,
                                                        gradients, x + column, dy + column,
                                                        dx + column, lanes);
            } else {
                backward_run_piece<T, V, N, false, adds>(links, starts, first, last, weights,
                                                         gradients, x + column, dy + column,
                                                         nullptr, lanes);
            }
        };
        add || column > 0 ? run.template operator()<true>() : run.template operator()<false>();
    };
    in_pieces<T>(lanes, piece, std::make_integer_sequence<int, kMostTogether - 1>{});
}
