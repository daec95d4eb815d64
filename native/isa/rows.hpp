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

typedef std::uint64_t U64x8 __attribute__((vector_size(64)));
typedef std::uint16_t U16x8 __attribute__((vector_size(16)));

// Numbers first .. first + 7 of `random_bits`.
RATOON_INLINE U64x8 eight_random_words(std::uint64_t seed, std::uint64_t first) {
    U64x8 z = (U64x8{1, 2, 3, 4, 5, 6, 7, 8} + first) * 0x9E3779B97F4A7C15ull + seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Four decisions from one random word, 16 bits each; 32 decisions at a time.
template <typename T>
void drop(T rate, std::uint64_t seed, std::uint64_t first, T* d, Index n) {
    using Bits = typename Exponential<Vec<T>>::Bits;
    constexpr Index kTogether = 32;
    const auto limit = std::uint64_t(double(rate) * 65536.0);
    const T scale = 1 / (1 - rate);
    const auto one_by_one = [&](Index k, Index end) {
        for (; k < end; ++k) {
            const std::uint64_t at = first + std::uint64_t(k);
            const std::uint64_t mine = random_bits(seed, at / 4) >> (16 * (at % 4)) & 0xffffu;
            d[k] = mine < limit ? T(0) : d[k] * scale;
        }
    };
    Index k = std::min(n, Index((4 - first % 4) % 4));
    one_by_one(0, k);
    for (; k + kTogether <= n; k += kTogether) {
        const U64x8 words = eight_random_words(seed, (first + std::uint64_t(k)) / 4);
        U16x8 sixteen_bits[4];
        std::memcpy(sixteen_bits, &words, sizeof(words));
        for (int q = 0; q < 4; ++q) {
            T* at = d + k + 8 * q;
            const Bits mine = __builtin_convertvector(sixteen_bits[q], Bits);
            const Bits is_dropped = mine < Bits{} + std::int32_t(limit);
            store(at, is_dropped ? Vec<T>{} : load(at) * scale);
        }
    }
    one_by_one(k, n);
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
