// Arrays that a running call writes to: a second call that would write to them is refused.
//
// Two calls that train or rewire the same weights at once would not only give wrong numbers: a
// rewiring counts the survivors first and moves them afterwards, so weights that change in between
// would be moved beyond the end of an array.
#pragma once

#include <stdexcept>
#include <vector>

#include "common.hpp"

namespace ratoon {

struct MemoryRange {
    const std::byte* first;
    const std::byte* end;
};

template <typename T>
MemoryRange range_of(const T* values, Index n) {
    const auto* first = reinterpret_cast<const std::byte*>(values);
    return {first, values == nullptr ? first : first + std::size_t(n) * sizeof(T)};
}

struct ArraysInUse : std::runtime_error {
    ArraysInUse();
};

// Holds ranges of memory for writing, until it is destroyed.  Throws ArraysInUse if one of them
// overlaps a range that another claim holds; then it holds nothing.
class WriteClaim {
  public:
    explicit WriteClaim(std::vector<MemoryRange> ranges);
    ~WriteClaim();
    WriteClaim(const WriteClaim&) = delete;
    WriteClaim& operator=(const WriteClaim&) = delete;

  private:
    std::vector<MemoryRange> ranges_;
};

}  // namespace ratoon
