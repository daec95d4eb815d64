// Forward: y[output, :] += w * x[input, :] for every connection of a tile, in slot order.
//
//     for (Index k = 0; k < n; ++k) {
//         const Index input = packed[k] >> 16, output = packed[k] & 0xffff;
//         for (Index lane = 0; lane < lanes; ++lane) {
//             y[output * lanes + lane] += weights[k] * x[input * lanes + lane];
//         }
//     }
//
// The rest of this file computes just that, with vectors of lanes, several connections at a time
// and memory fetched ahead.
//
// Each lane adds the same products in the same order whatever the number of lanes, so that a
// prediction does not depend on what else is in its batch.
#pragma once

constexpr Index kAhead = 32;  // connections between a prefetch and its use

// Indices, weights and state are read sequentially.  The processor prefetches them, but for data
// beyond the second-level cache explicit prefetching was faster still; perhaps the processor stops
// at the end of a page.  Of 64 to 2,048 ahead, 256 was as good as any.  The address may lie behind
// the array's end, which is why it is a number here; a prefetch never faults.
constexpr Index kStreamAhead = 256;

template <typename T>
RATOON_INLINE void fetch_stream(const T* stream, Index k) {
    const auto at =
        reinterpret_cast<std::uintptr_t>(stream) + std::uintptr_t(k + kStreamAhead) * sizeof(T);
    __builtin_prefetch(reinterpret_cast<const void*>(at));
}

// V vectors of 8 lanes of every row; `whole` if they are all of the row, so that the compiler knows
// how far apart rows are.
template <typename T, int V, bool whole, bool far, bool small>
RATOON_INLINE void forward_one(Packed p, Packed ahead, Vec<T> weight, const T* x, T* y,
                               Index given_lanes) {
    const Index lanes = whole ? 8 * V : given_lanes;
    const T* from = input_row<small>(x, p, lanes);
    T* to = output_row<small>(y, p, lanes);
    if (far) __builtin_prefetch(output_row<false>(y, ahead, lanes), 1);
    for (int v = 0; v < V; ++v) store(to + 8 * v, weight * load(from + 8 * v) + load(to + 8 * v));
}

template <typename T, int V, bool whole, bool far, bool small>
RATOON_INLINE void forward_four(const Packed* p, const Packed* ahead, const T* weights, const T* x,
                                T* y, Index lanes) {
    const Four<T> w{weights};
    const TwoIndices<small> a(p), b(p + 2);
    const auto one = forward_one<T, V, whole, far, small>;
    one(a.first, ahead[0], w.template broadcast_of<0>(), x, y, lanes);
    one(a.second, ahead[1], w.template broadcast_of<1>(), x, y, lanes);
    one(b.first, ahead[2], w.template broadcast_of<2>(), x, y, lanes);
    one(b.second, ahead[3], w.template broadcast_of<3>(), x, y, lanes);
}

// Eight at a time: a loop of four took 5 % longer.  Sixteen to a line of the streams.
template <typename T, int V, bool whole, bool far, bool small = false>
void forward_columns(const Packed* packed, const T* weights, Index n, const T* x, T* y,
                     Index lanes) {
    Index k = 0;
    const Index reach = far ? kAhead : 0;
    const auto four = forward_four<T, V, whole, far, small>;
    for (; k + 16 + reach <= n; k += 16) {
        fetch_stream(packed, k);
        fetch_stream(weights, k);
#pragma GCC unroll 1
        for (Index j = k; j < k + 16; j += 8) {
            four(packed + j, packed + j + reach, weights + j, x, y, lanes);
            four(packed + j + 4, packed + j + 4 + reach, weights + j + 4, x, y, lanes);
        }
    }
    for (; k + 4 + reach <= n; k += 4) {
        four(packed + k, packed + k + reach, weights + k, x, y, lanes);
    }
    for (; k < n; ++k) {
        forward_one<T, V, whole, false, false>(packed[k], 0, broadcast(weights[k]), x, y, lanes);
    }
}

template <typename T>
void forward_single(const Packed* packed, const T* weights, Index n, const T* x, T* y) {
    Index k = 0;
    for (; k + 4 <= n; k += 4) {
        for (int q = 0; q < 4; ++q) {
            const Packed p = packed[k + q];
            y[p & 0xffffu] += weights[k + q] * x[p >> 16];
        }
    }
    for (; k < n; ++k) y[packed[k] & 0xffffu] += weights[k] * x[packed[k] >> 16];
}

template <typename T>
void forward(const Packed* packed, const T* weights, Index n, const T* x, T* y, Index lanes,
             TileKind kind) {
    const bool far = kind.far;
    if (lanes == 1) return forward_single(packed, weights, n, x, y);
    if (lanes == 8) {
        if constexpr (kSmallRows<T>) {
            if (kind.small) {
                return forward_columns<T, 1, true, false, true>(packed, weights, n, x, y, 8);
            }
        }
        if (far) return forward_columns<T, 1, true, true>(packed, weights, n, x, y, 8);
        return forward_columns<T, 1, true, false>(packed, weights, n, x, y, 8);
    }
    if (lanes == 16) {
        return forward_columns<T, 2, true, false>(packed, weights, n, x, y, 16);
    }
    if (lanes == 32 && !far) {
        return forward_columns<T, 4, true, false>(packed, weights, n, x, y, 32);
    }
    // Wide batches go through in columns of 32 lanes: the rows in use then still fit the cache.
    Index column = 0;
    for (; column + 32 <= lanes; column += 32) {
        if (far) {
            forward_columns<T, 4, false, true>(packed, weights, n, x + column, y + column, lanes);
        } else {
            forward_columns<T, 4, false, false>(packed, weights, n, x + column, y + column, lanes);
        }
    }
    for (; column + 16 <= lanes; column += 16) {
        forward_columns<T, 2, false, false>(packed, weights, n, x + column, y + column, lanes);
    }
    for (; column < lanes; column += 8) {
        forward_columns<T, 1, false, false>(packed, weights, n, x + column, y + column, lanes);
    }
}

// Which row of the copies a connection adds to: neighbours in slot order differ in their inputs and
// most often have the same output, so inputs take turns.
RATOON_INLINE Index narrow_row(Packed p) {
    return Index(p & 0xffffu) * kNarrowCopies + Index(p >> 16 & Packed(kNarrowCopies - 1));
}

// V vectors of 8 lanes of every row; `whole` if they are all of it.
template <typename T, int V, bool whole>
void narrow_columns(const Packed* packed, const T* weights, Index n, const T* x, T* y,
                    Index given_lanes) {
    const Index lanes = whole ? 8 * V : given_lanes;
    const auto one = [&](Index k) {
        const T* from = x + Index(packed[k] >> 16) * lanes;
        T* to = y + narrow_row(packed[k]) * lanes;
        const Vec<T> weight = broadcast(weights[k]);
        for (int v = 0; v < V; ++v) {
            store(to + 8 * v, weight * load(from + 8 * v) + load(to + 8 * v));
        }
    };
    Index k = 0;
    for (; k + 4 <= n; k += 4) {
        for (int q = 0; q < 4; ++q) one(k + q);
    }
    for (; k < n; ++k) one(k);
}

template <typename T>
void forward_narrow(const Packed* packed, const T* weights, Index n, const T* x, T* y,
                    Index lanes) {
    if (lanes == 1) {
        for (Index k = 0; k < n; ++k) y[narrow_row(packed[k])] += weights[k] * x[packed[k] >> 16];
        return;
    }
    if (lanes == 8) return narrow_columns<T, 1, true>(packed, weights, n, x, y, 8);
    if (lanes == 16) return narrow_columns<T, 2, true>(packed, weights, n, x, y, 16);
    if (lanes == 32) return narrow_columns<T, 4, true>(packed, weights, n, x, y, 32);
    Index column = 0;
    for (; column + 32 <= lanes; column += 32) {
        narrow_columns<T, 4, false>(packed, weights, n, x + column, y + column, lanes);
    }
    for (; column < lanes; column += 8) {
        narrow_columns<T, 1, false>(packed, weights, n, x + column, y + column, lanes);
    }
}
