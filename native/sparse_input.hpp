// The first layer on sparse samples: work in proportion to the non-zeros of a minibatch.
//
// During a call the layer's connections are stored input by input.  A feature that few samples of a
// minibatch have is processed non-zero by non-zero, one that many have as a row of the ordinary
// kernels.  All other connections have a gradient of zero.
//
// Zero gradient is not the same as no change: momentum and decay continue.  But without a gradient
// a step is a fixed linear map of (weight, momentum), so a feature that was absent for k steps
// catches up at once with the k-th power of that map.  The numbers are those of updating every
// connection at every step, up to rounding.
#pragma once

#include <vector>

#include "network.hpp"

namespace ratoon {

// Powers of the linear map that one step without gradient is: w' = ww w + wv v, v' = vw w + vv v.
class Idle {
  public:
    // Whether these steps are the same map, so that its powers can be used.
    template <typename T>
    static bool is_linear(Rule rule, std::span<const Step<T>> steps);

    template <typename T>
    Idle(Rule rule, const Step<T>& step, Index n_steps);

    struct Map {
        double ww, wv, vw, vv;
    };
    // The powers 0 to k, which is at most n_steps.
    const Map* powers(Index k) noexcept;
    // Applies the map to a weight and its momentum, which may be null.
    template <typename T>
    static void apply(const Map& map, T* weight, T* momentum) {
        const double w = double(*weight), v = momentum == nullptr ? 0.0 : double(*momentum);
        *weight = T(map.ww * w + map.wv * v);
        if (momentum != nullptr) *momentum = T(map.vw * w + map.vv * v);
    }

  private:
    std::vector<Map> powers_;
};

template <typename T>
class SparseInput {
  public:
    // Copies the weights, for predictions.
    SparseInput(const Topology& topology, const Values<T>& values);
    // Also copies the optimizer's state, for a training with these steps.  All is written back when
    // this object ends; until then the layer's values must not be read.
    void begin(Rule rule, std::span<const Step<T>> steps);
    ~SparseInput();
    SparseInput(const SparseInput&) = delete;

    // Loads the non-zeros of a minibatch, feature by feature.
    void load(const Minibatch<T>& batch, Index lanes);
    // y = W x + b for the minibatch loaded.
    void forward(const T* bias, T* y);
    void backward(Rule rule, const Step<T>& step, const T* dy);

    // Whether a minibatch has so few of the features that this class is faster.
    static bool pays(const Samples& samples, Index batch);

  private:
    // A feature of the minibatch, and where its non-zeros are.
    struct Active {
        Index input, first, last;
    };
    struct NonZero {
        Index sample;
        T value;
    };

    template <typename See>
    void visit(See see);  // every connection: see(entry, slot, input, output)
    void catch_up(Index input);
    // The samples of a feature as a row, or null where non-zeros are faster one by one.
    const T* row_of(const Active& feature);
    // Calls f(outputs, entry, n, first_output) with the connections of an input, as the connections
    // of one input of a tile that begins at first_output.
    template <typename F>
    void in_tiles(Index input, F f);

    const Topology& topology_;
    Values<T> layer_values_, values_;  // in the order of slots, and input by input
    // Input i owns entries starts_[i] .. starts_[i + 1], in the order of outputs.
    std::vector<Index> starts_, next_;
    Buffer<Packed> outputs_;
    Buffer<T> weights_, first_, second_;

    std::vector<Active> active_;
    std::vector<NonZero> drawn_, non_zeros_;     // in input order, and feature by feature
    std::vector<std::uint64_t> keys_, scratch_;  // feature and place in drawn_, to be sorted
    std::vector<T> row_, gradients_;             // of one feature
    std::vector<Packed> tile_;                   // of one feature, in layers wider than a tile
    Index lanes_ = 0;

    bool training_ = false;
    Index n_steps_ = 0;              // done so far
    std::vector<Idle> idle_;         // one, or empty when every connection is updated every step
    std::vector<Index> steps_seen_;  // per input: steps its connections have seen
    Buffer<T> gradient_;  // of all connections, for rules that need every one at every step
};

}  // namespace ratoon
