#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define RATOON_HAS_FORK 1
#endif

namespace ratoon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(60);
constexpr Index kMostThreads = 1024;
constexpr std::uint64_t kClosed = 0xffffffffu;  // a task number that no job reaches

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Spin until ready() or the time is up; true if it became ready.
template <typename Ready>
bool spin_until(Ready ready) {
    const auto deadline = Clock::now() + kSpin;
    do {
        for (int i = 0; i < 64; ++i) {
            if (ready()) return true;
            relax();
        }
    } while (Clock::now() < deadline);
    return ready();
}

class Pool {
  public:
    // Runs the job unless the pool is busy; false means nothing was done.
    bool try_run(Index n_tasks, int n_threads, const Task& task) {
        std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
        if (!busy.owns_lock()) return false;
        grow(n_threads - 1);
        if (workers_.empty()) return false;

        // The ticket is closed while the job changes, so nobody can take a task of half a job.
        task_.store(&task, std::memory_order_relaxed);
        n_tasks_.store(n_tasks, std::memory_order_relaxed);
        n_helpers_.store(n_threads - 1, std::memory_order_relaxed);
        done_.store(0, std::memory_order_relaxed);
        failure_ = nullptr;
        const std::uint64_t generation = (ticket_.load() >> 32) + 1;
        ticket_.store(generation << 32);  // sequentially consistent: publishes all of the above
        if (sleepers_.load() > 0) {
            std::lock_guard<std::mutex> lock(mutex_);
            wake_.notify_all();
        }
        work();
        wait_for_tasks(n_tasks);
        ticket_.store(generation << 32 | kClosed);
        if (failure_) std::rethrow_exception(failure_);
        return true;
    }

    int size() const { return int(workers_.size()); }

  private:
    // Starts threads until there are n of them; stops trying when the system refuses.
    void grow(int n) {
        while (int(workers_.size()) < n) {
            try {
                const int rank = int(workers_.size());
                workers_.emplace_back([this, rank] { live(rank); });
                workers_.back().detach();  // they end with the process; nothing to join after fork
            } catch (const std::system_error&) {
                return;
            } catch (const std::bad_alloc&) {
                return;
            }
        }
    }

    // A task belongs to whoever moves the ticket forward.  The ticket carries the job's generation,
    // so a worker that comes late cannot take a task of the next job for one of the last.
    void work() {
        for (;;) {
            std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
            const Index index = Index(ticket & 0xffffffffu);
            if (index >= n_tasks_.load(std::memory_order_relaxed)) return;
            const Task* task = task_.load(std::memory_order_relaxed);
            if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) {
                continue;
            }
            try {
                (*task)(index);
            } catch (...) {
                std::lock_guard<std::mutex> lock(mutex_);
                if (!failure_) failure_ = std::current_exception();
            }
            if (done_.fetch_add(1) + 1 == n_tasks_.load(std::memory_order_relaxed) &&
                caller_sleeps_.load()) {
                std::lock_guard<std::mutex> lock(mutex_);
                finished_.notify_one();
            }
        }
    }

    void wait_for_tasks(Index n_tasks) {
        auto finished = [&] { return done_.load() == n_tasks; };
        if (spin_until(finished)) return;
        std::unique_lock<std::mutex> lock(mutex_);
        caller_sleeps_.store(true);
        finished_.wait(lock, finished);
        caller_sleeps_.store(false);
    }

    void live(int rank) {
        std::uint64_t seen = 0;
        for (;;) {
            auto fresh = [&] { return (ticket_.load() >> 32) != seen; };
            if (!spin_until(fresh)) {
                std::unique_lock<std::mutex> lock(mutex_);
                sleepers_.fetch_add(1);
                wake_.wait(lock, fresh);
                sleepers_.fetch_sub(1);
            }
            seen = ticket_.load() >> 32;
            if (rank < n_helpers_.load(std::memory_order_relaxed)) work();
        }
    }

    std::mutex busy_;  // held by the caller whose job is running
    std::vector<std::thread> workers_;
    std::atomic<const Task*> task_{nullptr};
    std::atomic<Index> n_tasks_{0};
    std::atomic<int> n_helpers_{0};
    std::atomic<std::uint64_t> ticket_{kClosed};  // generation << 32 | next task
    std::atomic<Index> done_{0};
    std::atomic<int> sleepers_{0};
    std::atomic<bool> caller_sleeps_{false};
    std::mutex mutex_;
    std::condition_variable wake_, finished_;
    std::exception_ptr failure_;
};

// Never destroyed: detached workers may outlive static destructors.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
    Pool* current = the_pool.load(std::memory_order_acquire);
    if (current != nullptr) return *current;
#if defined(RATOON_HAS_FORK)
    // A child has none of its parent's threads: it forgets the pool and makes its own when needed.
    static const int registered = pthread_atfork(
        nullptr, nullptr, [] { the_pool.store(nullptr, std::memory_order_release); });
    (void)registered;
#endif
    auto* fresh = new Pool;
    if (the_pool.compare_exchange_strong(current, fresh)) return *fresh;
    delete fresh;  // another thread was first, and no worker had been started
    return *current;
}

}  // namespace

void parallel_for(Index n_tasks, int n_threads, const Task& task) {
    // The ticket has 32 bits for the task number; nobody needs a billion tasks.
    const bool fits = n_tasks < (Index(1) << 31);
    // More threads than tasks, or than any machine has, would only be started to sleep.
    const int useful = int(std::min({n_tasks, Index(n_threads), kMostThreads}));
    if (useful > 1 && fits && pool().try_run(n_tasks, useful, task)) return;
    for (Index index = 0; index < n_tasks; ++index) task(index);
}

int pool_size() {
    const Pool* current = the_pool.load();
    return current == nullptr ? 0 : current->size();
}

}  // namespace ratoon
