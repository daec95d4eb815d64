// The first layer on sparse samples: work that follows the non-zeros of a minibatch.
//
// A minibatch of sparse samples touches few features.  The connections of those features are
// gathered into one small tile (weights and optimizer state too), the ordinary kernels run on it,
// and the result is put back.  All other connections of the layer have a gradient of zero.
//
// Zero gradient is not the same as no change: momentum goes on and decay goes on.  But without a
// gradient a step is a fixed linear map of (weight, momentum), so a feature that was away for k
// steps catches up at once with the k-th power of that map.  The numbers are those of updating
// every connection at every step, up to rounding.
#pragma once

#include <vector>

#include "network.hpp"

namespace ratoon {

// Powers of the linear map that one step without gradient is: w' = ww w + wv v, v' = vw w + vv v.
class Idle {
  public:
    // Whether these steps are one and the same map, so that powers of it make sense.
    template <typename T>
    static bool is_linear(Rule rule, const Step<T>* steps, Index n_steps);

    template <typename T>
    Idle(Rule rule, const Step<T>& step);

    struct Map {
        double ww, wv, vw, vv;
    };
    const Map& power(Index k);  // kept once computed

  private:
    std::vector<Map> powers_;
};

template <typename T>
class SparseInput {
  public:
    explicit SparseInput(const Topology& topology);

    // Gather a minibatch: its features, their rows and their connections.
    void load(const Samples& samples, const Standardize<T>& how, const Index* order, Index n,
              Index lanes);
    // Begin a training whose steps are given; settle() must follow before anyone else looks at the
    // weights.
    void begin(Rule rule, const Step<T>* steps, Index n_steps, const Values<T>& values);
    // y = W x + b for the minibatch loaded; in training with the weights as of step `now`.
    void forward(const Values<T>& values, const T* bias, T* y, Index now, bool training);
    void backward(Rule rule, const Values<T>& values, const Step<T>& step, const T* dy, Index now);
    // Bring every connection to step `now`.
    void settle(const Values<T>& values, Index now);

    // Pays while a minibatch touches less than a quarter of the features.
    static bool pays(const Samples& samples, Index batch);

  private:
    void catch_up(const Values<T>& values, Index input, Index now);
    void update_all(Rule rule, const Values<T>& values, const Step<T>& step);

    Index n_in_, n_out_, n_connections_;
    // Connections by input: input i owns entries starts_[i] .. starts_[i + 1].
    std::vector<Index> starts_;
    Buffer<Index> slots_;
    Buffer<std::int32_t> outputs_;

    // The minibatch: active features, their rows, and their connections as small tiles.
    struct Piece {
        Index first_active, first_output, first, last;  // entries [first, last) of the arrays below
    };
    std::vector<Index> active_, place_;
    std::vector<T> rows_;
    std::vector<Piece> pieces_;
    std::vector<Packed> packed_;
    std::vector<Index> from_;  // slot of each gathered connection
    std::vector<T> weights_, first_;
    Index lanes_ = 0;

    std::vector<Idle> idle_;      // at most one; none when every connection is updated every step
    std::vector<Index> settled_;  // per input: steps its connections have seen
    bool has_first_ = false;
    Buffer<T> gradient_;  // of all connections, for rules that need every one at every step
};

}  // namespace ratoon
