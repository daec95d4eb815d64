// Words every native file shares.  Views own nothing; `Buffer` is the one thing that owns memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ratoon {

using Index = std::int64_t;
// One connection inside its tile: local input in the upper 16 bits, local output in the lower.
using Packed = std::uint32_t;

// Samples that travel together through a kernel.  Activations are neuron-major, so a row holds
// one neuron for the whole batch, padded to a multiple of this.
constexpr Index kLanes = 8;

constexpr Index padded_to_lanes(Index n) { return (n + kLanes - 1) / kLanes * kLanes; }
constexpr Index divided_up(Index a, Index b) { return (a + b - 1) / b; }

// Owned, aligned, uninitialised memory.  Large buffers ask for huge pages: 3-5 % for free.
template <typename T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(Index size) : size_(size) {
        if (size <= 0) return;
        const std::size_t huge = std::size_t(2) << 20;
        std::size_t bytes = std::size_t(size) * sizeof(T);
        const std::size_t alignment = bytes >= 2 * huge ? huge : 64;
        bytes = (bytes + alignment - 1) / alignment * alignment;
        data_ = static_cast<T*>(std::aligned_alloc(alignment, bytes));
        if (data_ == nullptr) throw std::bad_alloc();
#if defined(__linux__)
        if (alignment == huge) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
    }
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    Index size() const { return size_; }
    T& operator[](Index i) { return data_[i]; }
    const T& operator[](Index i) const { return data_[i]; }
    void fill_zero() {
        if (size_ > 0) std::memset(data_, 0, std::size_t(size_) * sizeof(T));
    }

  private:
    T* data_ = nullptr;
    Index size_ = 0;
};

}  // namespace ratoon
