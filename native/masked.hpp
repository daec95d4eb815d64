// A narrow layer that is nearly full, as masks: the output layer of most networks.
//
// Masks are made from the topology for as long as it is trained; see isa/masked.hpp.
#pragma once

#include <vector>

#include "linear.hpp"

namespace ratoon {

class Masks {
  public:
    explicit Masks(const Topology& topology);

    // Whether there are kernels for this layer, and it is full enough for them to be faster.
    template <typename T>
    static bool suit(const Topology& topology, const Values<T>& values, Index lanes);

    // What linear_forward and linear_backward do, for the first n_samples of 8 lanes.
    template <typename T>
    void forward(const Values<T>& values, const T* bias, const T* x, T* y, Index n_samples,
                 Buffer<T>& scratch, int n_threads) const;
    template <typename T>
    void backward(Rule rule, const Values<T>& values, const Step<T>& step, const T* x, const T* dy,
                  T* dx, Index n_samples, int n_threads, const Finish& finish) const;

  private:
    Masked strip(Index in_tile) const;

    const Topology& topology_;
    std::vector<std::uint16_t> words_;
};

}  // namespace ratoon
