// The best of many positions that are found one after the other, in memory for the best alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "common.hpp"

namespace ratoon {

template <typename T>
struct Candidate {
    T magnitude;
    std::uint32_t input, output;
};

// A total order: the larger first, of equal ones the lower position.
template <typename T>
bool better(const Candidate<T>& a, const Candidate<T>& b) {
    if (a.magnitude != b.magnitude) return a.magnitude > b.magnitude;
    return a.input != b.input ? a.input < b.input : a.output < b.output;
}

// The best candidates so far, shared by all threads.
template <typename T>
class Pool {
  public:
    explicit Pool(Index count) : count_(std::size_t(count)) {
        // Denormal numbers count as zero in the kernels, and positions of zero gradient do not
        // count.
        worst_ = {std::numeric_limits<T>::min(), ~0u, ~0u};
        least_.store(worst_.magnitude);
        kept_.reserve(capacity());
    }
    // Candidates below this bound cannot be among the best.
    T least() const { return least_.load(std::memory_order_relaxed); }

    // Adds candidates; `worst` becomes the worst that may still be among the best.
    void add(std::vector<Candidate<T>>& candidates, Candidate<T>& worst) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& candidate : candidates) {
            if (!better(candidate, worst_)) continue;
            kept_.push_back(candidate);
            if (kept_.size() == capacity()) shrink();
        }
        candidates.clear();
        worst = worst_;
    }
    std::vector<Candidate<T>>& best() {
        shrink();
        return kept_;
    }

  private:
    std::size_t capacity() const { return 2 * count_ + 64; }
    void shrink() {
        if (kept_.size() < count_ || count_ == 0) return;
        std::nth_element(kept_.begin(), kept_.begin() + Index(count_) - 1, kept_.end(), better<T>);
        kept_.resize(count_);
        worst_ = kept_.back();
        least_.store(worst_.magnitude, std::memory_order_relaxed);
    }

    std::size_t count_;
    std::vector<Candidate<T>> kept_;
    Candidate<T> worst_;
    std::atomic<T> least_;
    std::mutex mutex_;
};

}  // namespace ratoon
