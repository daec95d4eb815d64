// A network as the kernels see it: training over minibatches, prediction.
//
// Everything here works on arrays that belong to the caller.  Shapes are checked where a
// `Network` is built (bind_network.cpp); indices by `Topology`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels.hpp"
#include "linear.hpp"
#include "loss.hpp"
#include "pace.hpp"
#include "samples.hpp"
#include "topology.hpp"

namespace ratoon {

// One layer: a topology and arrays aligned with it.  The state arrays depend on the rule.
template <typename T>
struct Layer {
    TopologyPtr topology;
    Values<T> values;
    Values<T> bias;
    Activation activation = kIdentity;
    T slope = 0;
    T dropout = 0;
};

// The destination of the gradients of a backward pass: a rule updates each layer's own arrays, or
// they are written to given arrays (Rule::store) or added to them (Rule::add).
template <typename T>
struct GradientSink {
    Rule rule = Rule::sgd;
    Step<T> step;
    std::span<T* const> of_weights, of_biases;  // one per layer; empty for the layers' own arrays

    Values<T> connections(const std::vector<Layer<T>>& layers, std::size_t l) const {
        return directed(layers[l].values, of_weights, l);
    }
    Values<T> biases(const std::vector<Layer<T>>& layers, std::size_t l) const {
        return directed(layers[l].bias, of_biases, l);
    }
    // Weight decay applies to connections only, but for `shrink_bias`.
    Step<T> step_of_biases() const {
        Step<T> of_biases = step;
        of_biases.l2 = 0;
        of_biases.shrink = step.shrink_bias;
        return of_biases;
    }

  private:
    static Values<T> directed(Values<T> values, std::span<T* const> to, std::size_t l) {
        if (!to.empty()) values.first = to[l];
        return values;
    }
};

struct EpochResult {
    double loss = 0;        // weighted mean over the samples seen
    Index steps_done = 0;   // fewer than requested if interrupted or diverged
    bool diverged = false;  // the loss of the last step was not finite
};

// Called every few milliseconds with the number of steps (or samples) done; true ends the work.
using Interrupted = std::function<bool(Index done)>;

class Masks;
template <typename T>
class SparseInput;

template <typename T>
class Network {
  public:
    // Training takes as many threads as `pace` recommends; the next network may use the same pace.
    Network(std::vector<Layer<T>> layers, const Loss<T>& loss, int n_threads,
            std::shared_ptr<Pace> pace);
    ~Network();

    // Train on all samples of `epoch`, in minibatches of `batch`; the last may be short.  steps[s]
    // are the hyperparameters of minibatch s, and `epoch.step` is the number of the first.
    EpochResult train(const Minibatch<T>& epoch, Index batch, Rule rule,
                      std::span<const Step<T>> steps, const Interrupted& interrupted);

    // Raw outputs (before softmax or sigmoid) of every sample: out is (n_rows, n_out).  Activations
    // of hidden layer `stop_after` instead, when that is not negative.
    void predict(const Samples& samples, const Standardize<T>& how, Index stop_after, T* out,
                 const Interrupted& interrupted);

    // Activations of one minibatch and error signals at every layer, for strategies that look at
    // absent connections: rows of inputs[l] and deltas[l] are neurons, columns are samples.
    void signals(const Minibatch<T>& batch, std::span<T* const> inputs, std::span<T* const> deltas);

    // The gradient of the mean loss, for every connection and bias; returns the mean loss.  Nothing
    // is updated.
    double gradients(const Minibatch<T>& batch, std::span<T* const> of_weights,
                     std::span<T* const> of_biases);

    // Raw outputs of a minibatch as in training, with dropout: out is (samples, outputs).
    void training_outputs(const Minibatch<T>& batch, T* out);

    const std::vector<Layer<T>>& layers() const { return layers_; }
    Index n_in() const { return layers_.front().topology->grid().n_in; }
    Index n_out() const { return layers_.back().topology->grid().n_out; }
    // Bytes of working memory for minibatches of this size.
    static Index workspace_bytes(const std::vector<Index>& widths, Index batch, int n_threads);

  private:
    // Wider minibatches are split into blocks of this many samples: the rows of a layer then still
    // fit the cache, and working memory does not grow with the minibatch.
    static Index block_for(Index widest);
    // Rows that are finished together; this many stay in the first-level cache.
    static constexpr Index kRowsAtOnce = 256;

    // predict() for many dense samples: every thread takes blocks of them through all layers.
    struct Workspace;
    class Workspaces;
    bool suits_bulk(const Samples& samples) const;
    void predict_in_bulk(const Samples& samples, const Standardize<T>& how, std::size_t n_layers,
                         T* out, const Interrupted& interrupted);
    bool pass_in_blocks(const Samples& samples, const Standardize<T>& how, std::size_t from,
                        std::size_t to, T* out, const Interrupted& interrupted);
    void pass_block(const Minibatch<T>& block, std::size_t from, std::size_t to, Workspace& space,
                    T* out) const;
    void prepare(Index batch, bool training);
    // Frees the temporary state of one call.  Sparse input writes back its copies of the weights.
    void forget_call();
    // Calls it also if the call ends by an exception.
    struct Leaving {
        Network& network;
        ~Leaving() { network.forget_call(); }
    };
    void load(const Minibatch<T>& batch);
    SideTasks loading(const Minibatch<T>& batch, T* out, Index lanes) const;
    template <typename X, typename Function>
    SideTasks augmenting(const Minibatch<T>& batch, std::vector<const X*> images, Function function,
                         T* out, Index lanes) const;
    void load_csr(const Minibatch<T>& batch);
    void forward_layer(std::size_t l, bool training);
    void finish_rows(std::size_t l, Index first, Index last, bool training);
    double output_error(const Minibatch<T>& batch, double total_weight);
    double fused_step(const Minibatch<T>& batch, const GradientSink<T>& sink,
                      const SideTasks& side);
    double step_in_blocks(const Minibatch<T>& batch, Rule rule, const Step<T>& step);
    double add_gradients(const Minibatch<T>& batch, double total_weight,
                         std::span<T* const> of_weights, std::span<T* const> of_biases);
    void update_all(Rule rule, const Step<T>& step);
    void backward_layer(std::size_t l, const GradientSink<T>& sink, const SideTasks& side = {});
    void finish_delta(std::size_t l, Index first, Index last, const GradientSink<T>& sink);
    const ActivationKernel<T>& activation_of(const Layer<T>& layer) const {
        return kernels<T>().activations[std::size_t(layer.activation)];
    }
    void update_bias(std::size_t l, Index first, Index last, const GradientSink<T>& sink);
    Step<T> rounded(Step<T> step, std::size_t l) const;
    void use_random_numbers_of(const Minibatch<T>& batch) {
        dropout_seed_ = batch.dropout_seed;
        step_ = std::uint64_t(batch.step);
    }
    // The random numbers of dropout after layer l.
    std::uint64_t drop_counter(std::size_t l) const { return step_ * 1024 + l + (block_ << 40); }
    T* rows(std::size_t l) { return activations_[l].data(); }
    T* delta(std::size_t l) { return deltas_[l % 2].data(); }

    std::vector<Layer<T>> layers_;
    Index block_lanes_;  // samples per block
    const Loss<T>* loss_;
    std::shared_ptr<Pace> pace_;
    int most_threads_;
    int n_threads_;                   // of the current step
    Index lanes_ = 0, capacity_ = 0;  // lanes in use, and lanes allocated
    bool for_training_ = false;
    std::vector<Buffer<T>> activations_;  // [0] the input, [l + 1] the output of layer l
    Buffer<T> ahead_;                     // the input of the next minibatch
    std::vector<Buffer<T>> derivatives_;  // of layers whose outputs do not determine them
    Buffer<T> deltas_[2];                 // error at the output of layer l is in deltas_[l % 2]
    Buffer<T> scratch_;                   // for linear_forward
    std::vector<Buffer<T>> gradients_, bias_gradients_;  // only for minibatches of several blocks
    std::unique_ptr<SparseInput<T>> sparse_;             // while the current samples are sparse
    std::unique_ptr<Masks> masks_;  // of the output layer, while it is trained and they suit it
    Index n_samples_ = 0;           // of the current minibatch
    std::uint64_t dropout_seed_ = 0, step_ = 0, block_ = 0;
};

}  // namespace ratoon
