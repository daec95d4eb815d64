// Work on whole rows: dropout, sums, reading samples.
#pragma once

template <typename T>
void fill_rows(const T* values, Index n_rows, Index lanes, T* rows) {
    if (lanes == 1) {
        std::copy_n(values, n_rows, rows);
    } else if (lanes == 8) {
        for (Index i = 0; i < n_rows; ++i) store(rows + 8 * i, broadcast(values[i]));
    } else {
        for (Index i = 0; i < n_rows; ++i) {
            const Vec<T> value = broadcast(values[i]);
            for (Index v = 0; v < lanes; v += 8) store(rows + i * lanes + v, value);
        }
    }
}

// The eight sums over lane 0, 8, 16 ... to over lane 7, 15, 23 ... of one row.
template <typename T>
RATOON_INLINE Vec<T> folded(const T* row, Index lanes) {
    Vec<T> sum = load(row);
    for (Index v = 8; v < lanes; v += 8) sum += load(row + v);
    return sum;
}

template <typename T>
void row_sums(const T* rows, Index n_rows, Index lanes, T* sums) {
    if (lanes == 1) {
        std::copy_n(rows, n_rows, sums);
        return;
    }
    Index i = 0;
    for (; i + 8 <= n_rows; i += 8) {
        Vec<T> eight[8];
        for (int q = 0; q < 8; ++q) eight[q] = folded(rows + (i + q) * lanes, lanes);
        store(sums + i, Folded<Vec<T>>(eight).sums());
    }
    for (; i < n_rows; ++i) sums[i] = sum_of(folded(rows + i * lanes, lanes));
}

// The states of numbers first, first + 1, ... of a stream, for `mixed`.
template <typename Words>
RATOON_INLINE Words random_states(std::uint64_t seed, std::uint64_t first) {
    Words states{};
    for (Index i = 0; i < kInRegister<std::uint64_t>; ++i) {
        states[i] = random_state(seed, first + std::uint64_t(i));
    }
    return states;
}

// Four decisions from one random word, 16 bits each; as many words at a time as a register holds.
template <typename T>
void drop(T rate, std::uint64_t seed, std::uint64_t first, T* y, Index n) {
    using V = Register<T>;
    using Words = Register<std::uint64_t>;
    constexpr Index kWords = kInRegister<std::uint64_t>, kTogether = 4 * kWords;
    constexpr Index kPieces = kTogether / kInRegister<T>;
    typedef std::uint16_t Piece16 __attribute__((vector_size(2 * kInRegister<T>)));
    const auto limit = std::uint64_t(double(rate) * 65536.0);
    const T scale = 1 / (1 - rate);
    // The sum turns a kept -0 into 0.
    const auto one_by_one = [&](Index k, Index end) {
        for (; k < end; ++k) {
            const std::uint64_t at = first + std::uint64_t(k);
            const std::uint64_t mine = random_bits(seed, at / 4) >> (16 * (at % 4)) & 0xffffu;
            y[k] = mine < limit ? -T(0) : y[k] * scale + T(0);
        }
    };
    Index k = std::min(n, Index((4 - first % 4) % 4));
    one_by_one(0, k);
    Words states = random_states<Words>(seed, (first + std::uint64_t(k)) / 4);
    for (; k + kTogether <= n; k += kTogether) {
        const Words words = mixed(states);
        states += std::uint64_t(kWords) * kRandomStep;
        Piece16 sixteen_bits[kPieces];
        std::memcpy(sixteen_bits, &words, sizeof(words));
        for (Index q = 0; q < kPieces; ++q) {
            T* at = y + k + kInRegister<T> * q;
            const BitsOf<V> mine = __builtin_convertvector(sixteen_bits[q], BitsOf<V>);
            const V kept = load_register(at) * scale + T(0);
            const auto bound = typename BitsOfVector<V>::Number(limit);
            store_register(at, mine < bound ? -V{} : kept);
        }
    }
    one_by_one(k, n);
}

template <typename T>
void drop_errors(T rate, const T* y, T* d, Index n) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const T scale = 1 / (1 - rate);
    for (Index k = 0; k < n; ++k) {
        const bool is_dropped = std::bit_cast<Bits>(y[k]) == std::bit_cast<Bits>(-T(0));
        d[k] = is_dropped ? T(0) : d[k] * scale;
    }
}

template <typename T>
void multiply(const T* factors, T* d, Index n) {
    for (Index k = 0; k < n; ++k) d[k] *= factors[k];
}

template <typename T>
RATOON_INLINE T standardized(T z, Index j, const Standardize<T>& how) {
    if (how.shift != nullptr) z -= how.shift[j];
    if (how.scale != nullptr) z *= how.scale[j];
    if (how.clip > 0) z = z > how.clip ? how.clip : z < -how.clip ? -how.clip : z;
    return z;
}

// Eight samples by eight features at a time, turned in registers.
template <typename T, typename X>
void load_samples(const X* const* rows, Index n_rows, Index first, Index last,
                  const Standardize<T>& how, T* out, Index lanes) {
    for (Index j = first; lanes == 1 && j < last; ++j) {
        out[j] = standardized(T(rows[0][j]), j, how);
    }
    for (Index lane = 0; lanes > 1 && lane < lanes; lane += 8) {
        Index j = first;
        for (; j + 8 <= last; j += 8) {
            Vec<T> block[8];
            for (Index b = 0; b < 8; ++b) {
                block[b] = Vec<T>{};
                if (lane + b < n_rows) {
                    const X* row = rows[lane + b] + j;
                    for (int i = 0; i < 8; ++i) block[b][i] = T(row[i]);
                    if (how.shift != nullptr) block[b] -= load(how.shift + j);
                    if (how.scale != nullptr) block[b] *= load(how.scale + j);
                    if (how.clip > 0) {
                        const Vec<T> top = broadcast(how.clip);
                        block[b] = block[b] > top ? top : block[b];
                        block[b] = block[b] < -top ? -top : block[b];
                    }
                }
            }
            transpose8(block);
            for (int i = 0; i < 8; ++i) store(out + (j + i) * lanes + lane, block[i]);
        }
        for (; j < last; ++j) {
            for (Index b = 0; b < 8; ++b) {
                out[j * lanes + lane + b] =
                    lane + b < n_rows ? standardized(T(rows[lane + b][j]), j, how) : T(0);
            }
        }
    }
}
