// The loops over minibatches: training, gradients, predictions, and signals for strategies.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "bfloat16.hpp"
#include "linear.hpp"
#include "masked.hpp"
#include "network.hpp"
#include "sparse_input.hpp"

namespace ratoon {
namespace {

// Calls the progress function at most every 20 ms.
class Watch {
  public:
    explicit Watch(const Interrupted& interrupted) : interrupted_(interrupted) {}
    bool should_stop(Index done) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(20)) return false;
        last_ = now;
        return interrupted_ && interrupted_(done);
    }

  private:
    const Interrupted& interrupted_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

// One step on a minibatch that fits one block and is loaded: gradients are used as soon as they are
// known.  `side` tasks are done while the first layer is updated.
template <typename T>
double Network<T>::fused_step(const Minibatch<T>& batch, const GradientSink<T>& sink,
                              const SideTasks& side) {
    n_samples_ = batch.size();
    for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, true);
    const double loss = output_error(batch, batch.weight());
    if (!std::isfinite(loss)) return loss;
    update_bias(layers_.size() - 1, 0, n_out(), sink);
    for (std::size_t l = layers_.size(); l-- > 1;) backward_layer(l, sink);
    backward_layer(0, sink, side);
    return loss;
}

// One step on a minibatch of several blocks: their gradients are added up first.
template <typename T>
double Network<T>::step_in_blocks(const Minibatch<T>& batch, Rule rule, const Step<T>& step) {
    if (bias_gradients_.size() < layers_.size()) {
        gradients_.clear();
        bias_gradients_.clear();
        for (const Layer<T>& layer : layers_) {
            gradients_.emplace_back(layer.topology->n_connections());
            bias_gradients_.emplace_back(layer.topology->grid().n_out);
        }
    }
    std::vector<T*> of_weights, of_biases;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        of_weights.push_back(gradients_[l].data());
        of_biases.push_back(bias_gradients_[l].data());
    }
    const double loss = add_gradients(batch, batch.weight(), of_weights, of_biases);
    if (std::isfinite(loss)) update_all(rule, step);
    return loss;
}

// Adds up the gradients of a minibatch block by block; returns the summed loss.
template <typename T>
double Network<T>::add_gradients(const Minibatch<T>& batch, double total_weight,
                                 std::span<T* const> of_weights, std::span<T* const> of_biases) {
    double total = 0;
    for (Index at = 0; at < batch.size(); at += block_lanes_) {
        const Minibatch<T> block = batch.part(at, block_lanes_);
        const GradientSink<T> sink{at == 0 ? Rule::store : Rule::add, {}, of_weights, of_biases};
        prepare(block.size(), true);
        block_ = std::uint64_t(at / block_lanes_);
        load(block);
        for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, true);
        total += output_error(block, total_weight);
        if (!std::isfinite(total)) return total;
        update_bias(layers_.size() - 1, 0, n_out(), sink);
        for (std::size_t l = layers_.size(); l-- > 0;) backward_layer(l, sink);
    }
    return total;
}

template <typename T>
void Network<T>::update_all(Rule rule, const Step<T>& step) {
    constexpr Index kChunk = 1 << 16;
    const Step<T> bias_step = GradientSink<T>{rule, step, {}, {}}.step_of_biases();
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        const Index n = layers_[l].topology->n_connections();
        run_tasks(divided_up(n, kChunk), n / kLanes, n_threads_, [&](Index c) {
            const Index first = c * kChunk;
            in_chunks(
                layers_[l].values.at(first), first, std::min(kChunk, n - first), true,
                rounded(step, l).rounding_seed, [&](Index k, Index size, const Values<T>& chunk) {
                    kernels<T>().update(rule, chunk, gradients_[l].data() + first + k, size, step);
                });
        });
        kernels<T>().update(rule, layers_[l].bias, bias_gradients_[l].data(),
                            bias_gradients_[l].size(), bias_step);
    }
}

template <typename T>
EpochResult Network<T>::train(const Minibatch<T>& epoch, Index batch, Rule rule,
                              std::span<const Step<T>> steps, const Interrupted& interrupted) {
    Watch watch(interrupted);
    EpochResult result;
    double total = 0, weight = 0;
    use_random_numbers_of(epoch);
    const Samples& samples = *epoch.samples;
    const Index n = epoch.size();
    const Values<T>& first_layer = layers_[0].values;
    forget_call();
    const Leaving leaving{*this};
    if (first_layer.halves == nullptr && SparseInput<T>::pays(samples, batch)) {
        sparse_ = std::make_unique<SparseInput<T>>(*layers_[0].topology, first_layer);
        sparse_->begin(rule, steps);
    }
    const bool in_blocks = std::min(batch, n) > block_lanes_ && sparse_ == nullptr;
    block_ = 0;
    if (!in_blocks) prepare(std::min(batch, n), true);
    // Several threads load the next minibatch when the first of them runs out of tiles to update;
    // one thread would only need the memory.
    const bool ahead = most_threads_ > 1 && !in_blocks && !samples.is_sparse();
    if (ahead && ahead_.size() == 0) ahead_ = Buffer<T>(n_in() * capacity_, Use::recurring);
    const Layer<T>& last = layers_.back();
    if (!in_blocks && layers_.size() > 1 && Masks::suit(*last.topology, last.values, lanes_)) {
        masks_ = std::make_unique<Masks>(*last.topology);
    }
    bool is_loaded = false;
    for (Index at = 0; at < n; at += batch) {
        const Minibatch<T> minibatch = epoch.part(at, batch);
        const Step<T>& step = steps[std::size_t(at / batch)];
        step_ = std::uint64_t(epoch.step + at / batch);
        const auto started = std::chrono::steady_clock::now();
        if (most_threads_ > 1) n_threads_ = pace_->threads(most_threads_);
        double loss = 0;
        if (in_blocks) {
            loss = step_in_blocks(minibatch, rule, step);
        } else {
            if (!is_loaded) load(minibatch);
            const Minibatch<T> following = epoch.part(at + batch, batch);
            const SideTasks next = ahead && following.size() > 0
                                       ? loading(following, ahead_.data(), lanes_)
                                       : SideTasks{};
            loss = fused_step(minibatch, {rule, step, {}, {}}, next);
            is_loaded = next.n > 0;
            if (is_loaded) std::swap(activations_[0], ahead_);
        }
        if (most_threads_ > 1) {
            pace_->took(
                std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
        }
        ++result.steps_done;
        total += loss;
        weight += minibatch.weight();
        if (!std::isfinite(loss)) {
            result.diverged = true;
            break;
        }
        if (watch.should_stop(result.steps_done)) break;
    }
    result.loss = weight > 0 ? total / weight : 0;
    return result;
}

template <typename T>
double Network<T>::gradients(const Minibatch<T>& batch, std::span<T* const> of_weights,
                             std::span<T* const> of_biases) {
    forget_call();
    use_random_numbers_of(batch);
    const double weight = batch.weight();
    const double total = add_gradients(batch, weight, of_weights, of_biases);
    return weight > 0 ? total / weight : 0;
}

template <typename T>
void Network<T>::predict(const Samples& samples, const Standardize<T>& how, Index stop_after,
                         T* out, const Interrupted& interrupted) {
    const std::size_t n_layers = stop_after < 0 ? layers_.size() : std::size_t(stop_after) + 1;
    if (suits_bulk(samples)) return predict_in_bulk(samples, how, n_layers, out, interrupted);
    Watch watch(interrupted);
    // Wide enough to reuse every index, narrow enough that huge layers keep their rows in memory.
    Index widest = n_in();
    for (const auto& layer : layers_) widest = std::max(widest, layer.topology->grid().n_out);
    const Index batch = std::min(samples.n_rows, widest > 2000000 ? Index(8) : Index(32));
    const Index width = layers_[n_layers - 1].topology->grid().n_out;
    if (samples.n_rows == 0) return;
    prepare(batch, false);
    // Sparse samples are always predicted this way: a prediction must not depend on the rest of its
    // batch.
    forget_call();
    const Leaving leaving{*this};
    if (samples.is_sparse() && layers_[0].values.halves == nullptr) {
        sparse_ = std::make_unique<SparseInput<T>>(*layers_[0].topology, layers_[0].values);
    }
    std::vector<Index> order(static_cast<std::size_t>(batch));
    for (Index at = 0; at < samples.n_rows; at += batch) {
        const Index size = std::min(batch, samples.n_rows - at);
        std::iota(order.begin(), order.end(), at);
        Minibatch<T> minibatch{&samples, how, {}, {order.data(), std::size_t(size)}};
        load(minibatch);
        for (std::size_t l = 0; l < n_layers; ++l) forward_layer(l, false);
        const T* y = rows(n_layers);
        for (Index i = 0; i < width; ++i) {
            for (Index b = 0; b < size; ++b) out[(at + b) * width + i] = y[i * lanes_ + b];
        }
        if (watch.should_stop(at + size)) break;
    }
}

template <typename T>
void Network<T>::signals(const Minibatch<T>& batch, std::span<T* const> inputs,
                         std::span<T* const> deltas) {
    const Index n = batch.size();
    prepare(n, true);
    forget_call();
    use_random_numbers_of(batch);
    block_ = 0;
    load(batch);
    for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, true);
    output_error(batch, batch.weight());
    const auto copy_rows = [&](const T* from, Index n_rows, T* to) {
        for (Index i = 0; i < n_rows; ++i) std::copy_n(from + i * lanes_, n, to + i * n);
    };
    Index most = 0;
    for (const auto& layer : layers_) {
        most = std::max({most, layer.topology->n_connections(), layer.topology->grid().n_out});
    }
    // The gradients themselves are not wanted: all layers write to the same scratch memory.
    Buffer<T> scratch(most), bias_scratch(most);
    const std::vector<T*> of_weights(layers_.size(), scratch.data());
    const std::vector<T*> of_biases(layers_.size(), bias_scratch.data());
    const GradientSink<T> sink{Rule::store, {}, of_weights, of_biases};
    for (std::size_t l = layers_.size(); l-- > 0;) {
        copy_rows(rows(l), layers_[l].topology->grid().n_in, inputs[l]);
        copy_rows(delta(l), layers_[l].topology->grid().n_out, deltas[l]);
        if (l > 0) backward_layer(l, sink);
    }
}

template <typename T>
void Network<T>::training_outputs(const Minibatch<T>& batch, T* out) {
    forget_call();
    use_random_numbers_of(batch);
    for (Index at = 0; at < batch.size(); at += block_lanes_) {
        const Minibatch<T> block = batch.part(at, block_lanes_);
        prepare(block.size(), true);
        block_ = std::uint64_t(at / block_lanes_);
        load(block);
        for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, true);
        const T* y = rows(layers_.size());
        for (Index b = 0; b < block.size(); ++b) {
            for (Index i = 0; i < n_out(); ++i) out[(at + b) * n_out() + i] = y[i * lanes_ + b];
        }
    }
}

#define RATOON_INSTANTIATE(T)                                                             \
    template EpochResult Network<T>::train(const Minibatch<T>&, Index, Rule,              \
                                           std::span<const Step<T>>, const Interrupted&); \
    template double Network<T>::gradients(const Minibatch<T>&, std::span<T* const>,       \
                                          std::span<T* const>);                           \
    template void Network<T>::training_outputs(const Minibatch<T>&, T*);                  \
    template void Network<T>::predict(const Samples&, const Standardize<T>&, Index, T*,   \
                                      const Interrupted&);                                \
    template void Network<T>::signals(const Minibatch<T>&, std::span<T* const>,           \
                                      std::span<T* const>);
RATOON_INSTANTIATE(float)
RATOON_INSTANTIATE(double)

}  // namespace ratoon
