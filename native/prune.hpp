// Which connections a rewiring prunes: of each sign an exact number of those nearest zero.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "common.hpp"
#include "threads.hpp"

namespace ratoon {

// The bits of a weight: one for the sign, and those of |w|, which order as the magnitudes do.  Only
// signed integers are compared, which even the oldest vector instructions can do, and bfloat16
// needs no separate code.
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 2, std::int16_t,
                                std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>>;

template <typename T>
struct Weight {
    Bits<T> bits;
    explicit Weight(T w) : bits(std::bit_cast<Bits<T>>(w)) {}
    Bits<T> magnitude() const { return Bits<T>(bits & std::numeric_limits<Bits<T>>::max()); }
    bool is_negative() const { return bits < 0; }
    // One of two, without a branch.
    Bits<T> by_sign(Bits<T> of_positive, Bits<T> of_negative) const {
        return Bits<T>(of_positive ^ ((of_positive ^ of_negative) & (bits >> (8 * sizeof(T) - 1))));
    }
};

// Magnitudes in bins that order as they do: 128 for every power of two from 2^-31 on; more would
// not fit the first cache.  Smaller magnitudes share the first bin, and those from 2 on the
// last.
template <typename T>
struct Bins {
    static constexpr int kFraction = sizeof(T) == 2 ? 7 : sizeof(T) == 4 ? 23 : 52;
    static constexpr int kFine = std::min(kFraction, 7), kShift = kFraction - kFine;
    static constexpr Bits<T> kExponentOfOne = sizeof(T) == 8 ? 1023 : 127;
    static constexpr Bits<T> kFirst = Bits<T>((kExponentOfOne - 31) << kFine);
    static constexpr Bits<T> kCount = Bits<T>(32 << kFine);

    static Bits<T> of(Bits<T> magnitude) {
        const Bits<T> bin = Bits<T>((magnitude >> kShift) - kFirst);
        return std::min(std::max(bin, Bits<T>(0)), Bits<T>(kCount - 1));
    }
    static Bits<T> least(Bits<T> bin) {
        return bin == 0 ? Bits<T>(0) : Bits<T>(Bits<T>(bin + kFirst) << kShift);
    }
    static Bits<T> greatest(Bits<T> bin) {
        return bin + 1 < kCount ? Bits<T>(least(Bits<T>(bin + 1)) - 1)
                                : std::numeric_limits<Bits<T>>::max();
    }
};

// How many weights of each sign are in each bin.
template <typename T>
struct Histogram {
    static constexpr int kBins = Bins<T>::kCount;
    std::vector<std::atomic<Index>> bins = std::vector<std::atomic<Index>>(2 * kBins);

    Histogram(const T* weights, Index n, int n_threads) {
        const Index chunk = 1 << 18;
        parallel_for(divided_up(n, chunk), n_threads, [&](Index c) {
            std::vector<std::uint32_t> mine(2 * kBins, 0);
            for (Index k = c * chunk; k < std::min(n, (c + 1) * chunk); ++k) {
                const Weight<T> w(weights[k]);
                ++mine[std::size_t(w.is_negative()) * kBins +
                       std::size_t(Bins<T>::of(w.magnitude()))];
            }
            for (int b = 0; b < 2 * kBins; ++b) {
                if (mine[b] > 0) bins[b].fetch_add(mine[b], std::memory_order_relaxed);
            }
        });
    }
    Index in_bin(int sign, Index bin) const { return bins[std::size_t(sign * kBins + bin)]; }
    Index count(int sign) const {
        Index sum = 0;
        for (int b = 0; b < kBins; ++b) sum += in_bin(sign, b);
        return sum;
    }
};

// The weakest fraction `zeta` of each sign, rounded to whole connections, halves to even.
//
// Weights of one sign with a magnitude below `least` are pruned, and of those equal to it the first
// ones; the remaining number of these ties is counted while the weights are visited in order.
template <typename T>
class Weakest {
  public:
    struct Ties {
        Index left[2];
    };

    // The histogram gives the bin of the last one to prune; only that bin is examined value by
    // value.
    Weakest(const T* weights, Index n, double zeta, int n_threads) {
        const Histogram<T> histogram(weights, n, n_threads);
        Bits<T> from[2], to[2];  // magnitudes of the bin, both included
        Index rest_of[2], n_inside = 0;
        for (int sign = 0; sign < 2; ++sign) {
            Index rest = Index(std::nearbyint(zeta * double(histogram.count(sign)))), bin = 0;
            n_pruned_ += rest;
            while (bin + 1 < kBins && histogram.in_bin(sign, bin) <= rest) {
                rest -= histogram.in_bin(sign, bin++);
            }
            from[sign] = Bins<T>::least(Bits<T>(bin));
            to[sign] = Bins<T>::greatest(Bits<T>(bin));
            rest_of[sign] = rest;
            n_inside += histogram.in_bin(sign, bin);
        }
        Buffer<Bits<T>> inside(n_inside + 1);
        Bits<T>* const first = inside.data();
        Bits<T>* const last = first + collect(weights, n, from, to, first);
        Bits<T>* const negative = std::partition(first, last, [](Bits<T> b) { return b >= 0; });
        for (Bits<T>* one = negative; one != last; ++one) {
            *one &= std::numeric_limits<Bits<T>>::max();
        }
        for (int sign = 0; sign < 2; ++sign) {
            Bits<T>* const begin = sign == 0 ? first : negative;
            Bits<T>* const end = sign == 0 ? negative : last;
            const Index rest = rest_of[sign];
            if (rest == 0) {  // nothing of this bin is pruned, everything below it is
                least_[sign] = from[sign];
            } else if (rest ==
                       end - begin) {  // all are pruned, and the largest number counts as a tie
                least_[sign] = std::numeric_limits<Bits<T>>::max();
                ties_.left[sign] = n;
            } else {
                std::nth_element(begin, begin + rest, end);
                least_[sign] = begin[rest];
                ties_.left[sign] = std::count(begin, begin + rest, begin[rest]);
            }
        }
    }

    Index n_pruned() const { return n_pruned_; }
    Ties ties() const { return ties_; }

    // Whether the next weight is kept.
    bool survives(T weight, Ties& ties) const {
        const Weight<T> w(weight);
        const Bits<T> least = w.by_sign(least_[0], least_[1]);
        bool stays = w.magnitude() >= least;
        if (w.magnitude() == least && ties.left[w.is_negative()] > 0) [[unlikely]] {
            --ties.left[w.is_negative()];
            stays = false;
        }
        return stays;
    }

    // How many of the next n weights are kept.
    Index survivors(const T* weights, Index n, Ties& ties) const {
        Index stay = 0, equal[2] = {0, 0};
        const Bits<T> least_positive = least_[0], least_negative = least_[1];
        for (Index begin = 0; begin < n; begin += kBlock) {
            const T* block = weights + begin;
            const Index size = std::min(n - begin, kBlock);
            // Sums as narrow as the values, so that the loop becomes vector code.
            Bits<T> below = 0, ties_of_all = 0, ties_of_negative = 0;
            for (Index k = 0; k < size; ++k) {
                const Weight<T> w(block[k]);
                const Bits<T> least = w.by_sign(least_positive, least_negative);
                const Bits<T> tie = w.magnitude() == least;
                below += w.magnitude() < least;
                ties_of_all += tie;
                ties_of_negative += w.by_sign(0, tie);
            }
            stay += size - Index(below);
            equal[0] += Index(ties_of_all - ties_of_negative);
            equal[1] += Index(ties_of_negative);
        }
        for (int sign = 0; sign < 2; ++sign) {
            const Index going = std::min(equal[sign], ties.left[sign]);
            ties.left[sign] -= going;
            stay -= going;
        }
        return stay;
    }

  private:
    static constexpr int kBins = Histogram<T>::kBins;
    static constexpr Index kBlock = 1024;

    // The weights in the bins of the thresholds; returns how many.  They are rare, so a group is
    // first tested as a whole.  Which of its members qualify is unpredictable for the processor, so
    // each is stored, and the end of the list advances only past those that qualify.
    static Index collect(const T* weights, Index n, const Bits<T> from[2], const Bits<T> to[2],
                         Bits<T>* inside) {
        constexpr Index kGroupSize = 16;
        const Bits<T> from_positive = from[0], from_negative = from[1];
        const Bits<T> to_positive = to[0], to_negative = to[1];
        const auto is_inside = [=](Weight<T> w) {
            const Bits<T> least = w.by_sign(from_positive, from_negative);
            const Bits<T> greatest = w.by_sign(to_positive, to_negative);
            return (w.magnitude() >= least) & (w.magnitude() <= greatest);
        };
        Index n_inside = 0;
        for (Index begin = 0; begin < n; begin += kGroupSize) {
            const Index end = std::min(n, begin + kGroupSize);
            if (end - begin == kGroupSize) {
                Bits<T> found = 0;
                for (Index k = begin; k < end; ++k) {
                    const Weight<T> w(weights[k]);
                    const Bits<T> one = is_inside(w);
                    found += one;
                }
                if (found == 0) continue;
            }
            for (Index k = begin; k < end; ++k) {
                const Weight<T> w(weights[k]);
                inside[n_inside] = w.bits;
                n_inside += is_inside(w);
            }
        }
        return n_inside;
    }

    // Of the positive ones, of the negative ones.
    Bits<T> least_[2] = {0, 0};
    Ties ties_{{0, 0}};
    Index n_pruned_ = 0;
};

}  // namespace ratoon
