// Memory for buffers: huge pages where that pays, and a few large blocks kept for the next use.
//
// A rewiring needs an index array for some milliseconds and gives the old one back.  Fresh pages
// must be cleared by the system each time, which took longer than the rewiring's own work; so up
// to kKeptBytes of released blocks wait here instead.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

#include "common.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ratoon {
namespace {

constexpr std::size_t kLine = 64, kHugePage = std::size_t(2) << 20;
constexpr std::size_t kKeptBytes = std::size_t(128) << 20;
constexpr int kKeptBlocks = 8;

struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
};

// After a fork the mutex may be held by a thread the child does not have.  So it is only ever
// tried, and who does not get it asks the system.
std::mutex mutex;
Block kept[kKeptBlocks];
std::size_t kept_bytes = 0;

bool is_large(std::size_t bytes) { return bytes >= 2 * kHugePage; }

std::size_t rounded(std::size_t bytes) {
    const std::size_t unit = is_large(bytes) ? kHugePage : kLine;
    return (bytes + unit - 1) / unit * unit;
}

void* take_kept(std::size_t bytes) {
    const std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return nullptr;
    for (Block& block : kept) {
        if (block.bytes == bytes) {
            kept_bytes -= bytes;
            block.bytes = 0;
            return std::exchange(block.data, nullptr);
        }
    }
    return nullptr;
}

// Keeps the block, letting older ones go to make room; false if it should be freed.
bool keep(void* data, std::size_t bytes) {
    const std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock() || bytes > kKeptBytes) return false;
    for (Block& block : kept) {
        if (block.data != nullptr && kept_bytes + bytes <= kKeptBytes) continue;
        kept_bytes -= block.bytes;
        std::free(block.data);
        block = {};
        if (kept_bytes + bytes <= kKeptBytes) {
            block = {data, bytes};
            kept_bytes += bytes;
            return true;
        }
    }
    return false;
}

// Small blocks are cut from plain ones with a line to spare, whose address stands before them. With
// aligned blocks of the system's a fit's peak differed from process to process by up to a sixth,
// and was higher; splinters left around them are the likely cause, which was not looked into.
void* allocate_small(std::size_t bytes) {
    void* whole = std::malloc(bytes + kLine);
    if (whole == nullptr) throw std::bad_alloc();
    const auto address = (reinterpret_cast<std::uintptr_t>(whole) + kLine) / kLine * kLine;
    void** block = reinterpret_cast<void**>(address);
    block[-1] = whole;
    return block;
}

void* allocate_large(std::size_t bytes) {
    if (void* block = take_kept(bytes)) return block;
    void* block = std::aligned_alloc(kHugePage, bytes);
    if (block == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    madvise(block, bytes, MADV_HUGEPAGE);
#endif
    return block;
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
    bytes = rounded(bytes);
    return is_large(bytes) ? allocate_large(bytes) : allocate_small(bytes);
}

void release_aligned(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return;
    bytes = rounded(bytes);
    if (!is_large(bytes)) {
        std::free(static_cast<void**>(block)[-1]);
    } else if (!keep(block, bytes)) {
        std::free(block);
    }
}

}  // namespace ratoon
