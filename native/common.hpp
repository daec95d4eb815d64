// Types and constants that every native file shares.  Views own nothing; only `Buffer` owns memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace ratoon {

using Index = std::int64_t;
// One connection inside its tile: local input in the upper 16 bits, local output in the lower.
using Packed = std::uint32_t;
// The bits of a bfloat16 number.
using Half = std::uint16_t;

// Samples that a kernel computes together.  Activations are neuron-major, so a row holds one neuron
// for the whole batch, padded to a multiple of this.
constexpr Index kLanes = 8;

// A layer of at most this many outputs is *narrow*.
constexpr Index kNarrow = 32;

#define RATOON_IN_PLACE __attribute__((always_inline))
#define RATOON_INLINE inline RATOON_IN_PLACE

constexpr Index padded_to_lanes(Index n) { return (n + kLanes - 1) / kLanes * kLanes; }
constexpr Index divided_up(Index a, Index b) { return (a + b - 1) / b; }

// Whether an array of the same size is expected soon after this one is released.
enum class Use { once, recurring };

// Aligned memory for `Buffer`; see memory.cpp.  Throws std::bad_alloc.
void* allocate_aligned(std::size_t bytes, Use use);
void release_aligned(void* block, std::size_t bytes, Use use) noexcept;

// Owned, aligned, uninitialised memory.
template <typename T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(Index size, Use use = Use::once) : size_(size), use_(use) {
        if (size > 0) data_ = static_cast<T*>(allocate_aligned(std::size_t(size) * sizeof(T), use));
    }
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          use_(other.use_) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(use_, other.use_);
        return *this;
    }
    ~Buffer() { release_aligned(data_, std::size_t(size_) * sizeof(T), use_); }

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
    Use use_ = Use::once;
};

}  // namespace ratoon
