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
constexpr int kMostShares = 64;                 // with more threads, some begin with the same
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

// A share of a job's tasks: those next .. end.  The thread that moves the ticket forward owns a
// task.  The ticket carries the job's generation, so a worker that comes late cannot take a task of
// the next job for one of the last.  Each on cache lines of its own.
struct alignas(128) Share {
    std::atomic<std::uint64_t> ticket{kClosed};  // generation << 32 | next task
    std::atomic<Index> end{0};
};

class Pool {
  public:
    // Runs the job unless the pool is busy; false means nothing was done.
    bool try_run(Index n_tasks, int n_threads, const Task& task) {
        std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
        if (!busy.owns_lock()) return false;
        grow(n_threads - 1);
        if (workers_.empty()) return false;

        // Tickets are closed while the job changes, so no thread can take a task of half a job.
        const int n_shares = std::min(n_threads, kMostShares);
        task_.store(&task, std::memory_order_relaxed);
        n_tasks_.store(n_tasks, std::memory_order_relaxed);
        n_shares_.store(n_shares, std::memory_order_relaxed);
        n_helpers_.store(n_threads - 1, std::memory_order_relaxed);
        done_.store(0, std::memory_order_relaxed);
        failure_ = nullptr;
        const std::uint64_t generation = generation_.load() + 1;
        for (int s = 0; s < n_shares; ++s) {
            shares_[s].end.store(n_tasks * (s + 1) / n_shares, std::memory_order_relaxed);
            shares_[s].ticket.store(generation << 32 | std::uint64_t(n_tasks * s / n_shares));
        }
        generation_.store(generation);  // sequentially consistent: publishes all of the above
        if (sleepers_.load() > 0) {
            std::lock_guard<std::mutex> lock(mutex_);
            wake_.notify_all();
        }
        work(0);
        wait_for_tasks(n_tasks);
        for (int s = 0; s < n_shares; ++s) shares_[s].ticket.store(generation << 32 | kClosed);
        if (failure_) std::rethrow_exception(failure_);
        return true;
    }

    int size() const { return n_workers_.load(std::memory_order_relaxed); }

  private:
    // Starts threads until there are n; stops if the system refuses.
    void grow(int n) {
        while (int(workers_.size()) < n) {
            try {
                const int rank = int(workers_.size());
                workers_.emplace_back([this, rank] { live(rank); });
                workers_.back().detach();  // they end with the process; nothing to join after fork
                n_workers_.store(rank + 1, std::memory_order_relaxed);
            } catch (const std::system_error&) {
                return;
            } catch (const std::bad_alloc&) {
                return;
            }
        }
    }

    // A thread begins with the share of its rank, and helps with the others after that.  So in one
    // pass after another the same thread meets the same rows and weights, which are in its cache.
    void work(int rank) {
        const int n_shares = n_shares_.load(std::memory_order_relaxed);
        for (int s = 0; s < n_shares; ++s) work_on(shares_[(rank + s) % n_shares]);
    }

    void work_on(Share& share) {
        for (;;) {
            std::uint64_t ticket = share.ticket.load(std::memory_order_acquire);
            const Index index = Index(ticket & 0xffffffffu);
            if (index >= share.end.load(std::memory_order_relaxed)) return;
            const Task* task = task_.load(std::memory_order_relaxed);
            if (!share.ticket.compare_exchange_weak(ticket, ticket + 1,
                                                    std::memory_order_acq_rel)) {
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
            auto fresh = [&] { return generation_.load() != seen; };
            if (!spin_until(fresh)) {
                std::unique_lock<std::mutex> lock(mutex_);
                sleepers_.fetch_add(1);
                wake_.wait(lock, fresh);
                sleepers_.fetch_sub(1);
            }
            seen = generation_.load();
            if (rank < n_helpers_.load(std::memory_order_relaxed)) work(rank + 1);
        }
    }

    std::mutex busy_;  // held by the caller whose job is running
    std::vector<std::thread> workers_;
    std::atomic<int> n_workers_{0};
    std::atomic<const Task*> task_{nullptr};
    std::atomic<Index> n_tasks_{0};
    std::atomic<int> n_helpers_{0};
    std::atomic<int> n_shares_{1};
    std::atomic<std::uint64_t> generation_{0};  // of the job; 32 bits of it are in the tickets
    Share shares_[kMostShares];
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
    // A child has none of its parent's threads: it abandons the pool and creates another when
    // needed.
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
    // The ticket has 32 bits for the task number; a billion tasks never occur.
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
