// Ctrl-C during long work in several threads.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "draw.hpp"

namespace ratoon {

// Asks `should_stop` at most every 20 ms, and only on the thread that made it: signals are handled
// on that one.  Once the answer is yes, all threads see it.
class StopWatch {
  public:
    explicit StopWatch(const ShouldStop& should_stop) : should_stop_(should_stop) {}
    bool has_stopped() {
        if (!stopped_.load(std::memory_order_relaxed) && should_stop_ &&
            std::this_thread::get_id() == owner_) {
            const auto now = std::chrono::steady_clock::now();
            if (now - last_ >= std::chrono::milliseconds(20)) {
                last_ = now;
                if (should_stop_()) stopped_.store(true, std::memory_order_relaxed);
            }
        }
        return stopped_.load(std::memory_order_relaxed);
    }
    // For the owner, between tasks.
    void check() {
        if (has_stopped()) throw DrawStopped{};
    }

  private:
    const ShouldStop& should_stop_;
    const std::thread::id owner_ = std::this_thread::get_id();
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    std::atomic<bool> stopped_ = false;
};

}  // namespace ratoon
