#include "claim.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define RATOON_HAS_FORK 1
#endif

namespace ratoon {
namespace {

struct Claims {
    std::mutex mutex;
    std::vector<const WriteClaim*> all;
};

Claims& claims() {
    static std::atomic<Claims*> current{new Claims};
#if defined(RATOON_HAS_FORK)
    // In a child no other thread writes, and one of the parent may have held the mutex.
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { current.store(new Claims); });
    (void)registered;
#endif
    return *current.load();
}

bool overlap(const MemoryRange& a, const MemoryRange& b) {
    const std::less<const std::byte*> before;
    return before(a.first, b.end) && before(b.first, a.end);
}

}  // namespace

ArraysInUse::ArraysInUse()
    : std::runtime_error("these arrays are being trained or rewired by another call") {}

WriteClaim::WriteClaim(std::vector<MemoryRange> ranges) : ranges_(std::move(ranges)) {
    Claims& registry = claims();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    for (const WriteClaim* other : registry.all) {
        for (const MemoryRange& theirs : other->ranges_) {
            for (const MemoryRange& ours : ranges_) {
                if (overlap(theirs, ours)) throw ArraysInUse();
            }
        }
    }
    registry.all.push_back(this);
}

WriteClaim::~WriteClaim() {
    Claims& registry = claims();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    std::erase(registry.all, this);
}

}  // namespace ratoon
