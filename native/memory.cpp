// Memory for buffers: huge pages where they are faster, and some blocks kept for reuse.
//
// A rewiring needs an index array for some milliseconds and releases the old one; an epoch needs
// activations.  The system clears new pages each time, which took longer than the rewiring itself
// and 4 % of a short epoch on two threads; so up to kKeptBytes of released blocks are kept here.
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
constexpr int kKeptBlocks = 32;

struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
};

// After a fork the mutex may be held by a thread that the child does not have.  So it is only
// locked by try_lock; if that fails, the system's allocator is used.
std::mutex mutex;
Block kept[kKeptBlocks];
std::size_t kept_bytes = 0;
int next_kept = 0;  // the oldest entry

bool is_large(std::size_t bytes) { return bytes >= 2 * kHugePage; }
bool is_worth_keeping(std::size_t bytes, Use use) {
    return is_large(bytes) || (use == Use::recurring && bytes >= (std::size_t(1) << 17));
}

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

// Small blocks are cut from ordinary ones, whose address is stored before them.
void free_block(void* block, std::size_t bytes) {
    std::free(is_large(bytes) ? block : static_cast<void**>(block)[-1]);
}

// Keeps the block in place of the oldest ones; returns false if it should be freed.
bool keep(void* data, std::size_t bytes) {
    const std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock() || bytes > kKeptBytes) return false;
    for (int tried = 0; tried < kKeptBlocks; ++tried) {
        Block& block = kept[next_kept];
        next_kept = (next_kept + 1) % kKeptBlocks;
        kept_bytes -= block.bytes;
        if (block.data != nullptr) free_block(block.data, block.bytes);
        block = {};
        if (kept_bytes + bytes <= kKeptBytes) {
            block = {data, bytes};
            kept_bytes += bytes;
            return true;
        }
    }
    return false;
}

// With the system's aligned blocks the peak of a fit differed between processes by up to a sixth,
// and was higher; fragmentation is the likely cause, which was not looked into.
void* allocate_small(std::size_t bytes) {
    // One more cache line: for the alignment, and for the address of the block.
    void* whole = std::malloc(bytes + kLine);
    if (whole == nullptr) throw std::bad_alloc();
    const auto address = (reinterpret_cast<std::uintptr_t>(whole) + kLine) / kLine * kLine;
    void** block = reinterpret_cast<void**>(address);
    block[-1] = whole;
    return block;
}

void* allocate_large(std::size_t bytes) {
    void* block = std::aligned_alloc(kHugePage, bytes);
    if (block == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    madvise(block, bytes, MADV_HUGEPAGE);
#endif
    return block;
}

}  // namespace

void* allocate_aligned(std::size_t bytes, Use use) {
    bytes = rounded(bytes);
    if (is_worth_keeping(bytes, use)) {
        if (void* block = take_kept(bytes)) return block;
    }
    return is_large(bytes) ? allocate_large(bytes) : allocate_small(bytes);
}

void release_aligned(void* block, std::size_t bytes, Use use) noexcept {
    if (block == nullptr) return;
    bytes = rounded(bytes);
    if (!is_worth_keeping(bytes, use) || !keep(block, bytes)) free_block(block, bytes);
}

}  // namespace ratoon
