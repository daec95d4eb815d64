// Which connections a rewiring lets go: of each sign those nearest zero, exactly so many.
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

// The bits of a weight: one for the sign, and those of |w|, which order as the magnitudes do.
// Whole numbers only, and signed ones, so that even the oldest vector instructions can do it; and
// bfloat16 needs nothing of its own.
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

// A histogram of magnitudes for each sign, over their upper bits.
template <typename T>
struct Histogram {
    static constexpr int kBins = 1 << 13, kShift = int(sizeof(T)) * 8 - 1 - 13;
    std::vector<std::atomic<Index>> bins = std::vector<std::atomic<Index>>(2 * kBins);

    Histogram(const T* weights, Index n, int n_threads) {
        const Index chunk = 1 << 18;
        parallel_for(divided_up(n, chunk), n_threads, [&](Index c) {
            std::vector<std::uint32_t> mine(2 * kBins, 0);
            for (Index k = c * chunk; k < std::min(n, (c + 1) * chunk); ++k) {
                const Weight<T> w(weights[k]);
                ++mine[std::size_t(w.is_negative()) * kBins + std::size_t(w.magnitude() >> kShift)];
            }
            for (int b = 0; b < 2 * kBins; ++b) {
                if (mine[b] > 0) bins[b].fetch_add(mine[b], std::memory_order_relaxed);
            }
        });
    }
    Index count(int sign) const {
        Index sum = 0;
        for (int b = 0; b < kBins; ++b) sum += bins[sign * kBins + b];
        return sum;
    }
};

// The weakest fraction `zeta` of each sign, rounded to whole connections, halves to even.
//
// Weights of one sign with a magnitude below `least` go, and of those equal to it the first ones;
// how many of these ties are still to go is counted by whoever visits the weights in order.
template <typename T>
class Weakest {
  public:
    struct Ties {
        Index left[2];
    };

    // The histogram tells the bin where the last to go lies; only that bin is looked at value by
    // value.
    Weakest(const T* weights, Index n, double zeta, int n_threads) {
        const Histogram<T> histogram(weights, n, n_threads);
        Bits<T> bin_of[2];
        Index rest_of[2];
        for (int sign = 0; sign < 2; ++sign) {
            Index rest = Index(std::nearbyint(zeta * double(histogram.count(sign)))), bin = 0;
            n_pruned_ += rest;
            while (bin < kBins && histogram.bins[sign * kBins + bin] <= rest) {
                rest -= histogram.bins[sign * kBins + bin++];
            }
            bin_of[sign] = Bits<T>(bin);
            rest_of[sign] = rest;
        }
        std::vector<Bits<T>> inside[2];
        for (int sign = 0; sign < 2; ++sign) {
            if (rest_of[sign] > 0) {
                inside[sign].reserve(std::size_t(histogram.bins[sign * kBins + bin_of[sign]]));
            }
        }
        collect(weights, n, bin_of, inside);
        for (int sign = 0; sign < 2; ++sign) {
            auto& values = inside[sign];
            const Index rest = rest_of[sign];
            if (bin_of[sign] == kBins) {  // all go, and the largest number counts as a tie
                least_[sign] = std::numeric_limits<Bits<T>>::max();
                ties_.left[sign] = n;
                continue;
            }
            if (rest == 0) {  // nothing of this bin goes, everything below it does
                least_[sign] = Bits<T>(bin_of[sign] << kShift);
                continue;
            }
            std::nth_element(values.begin(), values.begin() + rest, values.end());
            const Bits<T> least = values[std::size_t(rest)];
            const Index lower = std::count_if(values.begin(), values.begin() + rest,
                                              [&](Bits<T> b) { return b < least; });
            least_[sign] = least;
            ties_.left[sign] = rest - lower;
        }
    }

    Index n_pruned() const { return n_pruned_; }
    Ties ties() const { return ties_; }

    // Whether the next weight stays.
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

    // How many of the next n weights stay.
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
    static constexpr int kBins = Histogram<T>::kBins, kShift = Histogram<T>::kShift;
    static constexpr Index kBlock = 1024;

    // The magnitudes in the bins where the thresholds lie.  Few are, so a group is first asked
    // whether it holds any at all.
    static void collect(const T* weights, Index n, const Bits<T> bin_of[2],
                        std::vector<Bits<T>> inside[2]) {
        constexpr Index kGroupSize = 16;
        const Bits<T> of_positive = bin_of[0], of_negative = bin_of[1];
        for (Index begin = 0; begin < n; begin += kGroupSize) {
            const Index end = std::min(n, begin + kGroupSize);
            if (end - begin == kGroupSize) {
                Bits<T> found = 0;
                for (Index k = 0; k < kGroupSize; ++k) {
                    const Weight<T> w(weights[begin + k]);
                    found += (w.magnitude() >> kShift) == w.by_sign(of_positive, of_negative);
                }
                if (found == 0) continue;
            }
            for (Index k = begin; k < end; ++k) {
                const Weight<T> w(weights[k]);
                if ((w.magnitude() >> kShift) == bin_of[w.is_negative()]) {
                    inside[w.is_negative()].push_back(w.magnitude());
                }
            }
        }
    }

    // Of the positive ones, of the negative ones.
    Bits<T> least_[2] = {0, 0};
    Ties ties_{{0, 0}};
    Index n_pruned_ = 0;
};

}  // namespace ratoon
