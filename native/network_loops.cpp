// The loops over minibatches: training, gradients, predictions, and what strategies look at.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "bfloat16.hpp"
#include "linear.hpp"
#include "masked.hpp"
#include "network.hpp"
#include "sparse_input.hpp"

namespace ratoon {
namespace {

// Asks at most every 20 ms, however short the steps are.
class Watch {
  public:
    explicit Watch(const Interrupted& interrupted) : interrupted_(interrupted) {}
    bool says_stop(Index done) {
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

// One step on a minibatch that fits one block and is loaded: gradients are used the moment they are
// known.  `beside` is done while the first layer is updated.
template <typename T>
double Network<T>::fused_step(const Targets<T>& targets, const Index* order, Index n, Rule rule,
                              const Step<T>& step, const Beside& beside) {
    n_samples_ = n;
    for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, true);
    const double loss = output_error(targets, order, n, weight_of(targets, order, n));
    if (!std::isfinite(loss)) return loss;
    update_bias(layers_.size() - 1, 0, n_out(), rule, step);
    for (std::size_t l = layers_.size(); l-- > 1;) backward_layer(l, rule, step);
    backward_layer(0, rule, step, beside);
    return loss;
}

namespace {

// While it lives, what would update a layer's arrays writes gradients elsewhere.
template <typename T>
class Redirected {
  public:
    Redirected(std::vector<Layer<T>>& layers, const std::vector<T*>& of_weights,
               const std::vector<T*>& of_biases)
        : layers_(layers), saved_(layers) {
        for (std::size_t l = 0; l < layers.size(); ++l) {
            layers[l].values.first = of_weights[l];
            layers[l].bias.first = of_biases[l];
        }
    }
    ~Redirected() { layers_ = std::move(saved_); }

  private:
    std::vector<Layer<T>>& layers_;
    std::vector<Layer<T>> saved_;
};

}  // namespace

// Adds up gradients block by block into `first` of every layer; returns the summed loss.
template <typename T>
double Network<T>::add_gradients(const Samples& samples, const Targets<T>& targets,
                                 const Standardize<T>& how, const Index* order, Index n,
                                 double weight) {
    double total = 0;
    for (Index at = 0; at < n; at += kBlock) {
        const Index size = std::min(kBlock, n - at);
        const Rule rule = at == 0 ? Rule::store : Rule::add;
        prepare(size, true);
        block_ = std::uint64_t(at / kBlock);
        load(samples, how, order + at, size);
        for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, true);
        total += output_error(targets, order + at, size, weight);
        if (!std::isfinite(total)) return total;
        update_bias(layers_.size() - 1, 0, n_out(), rule, Step<T>{});
        for (std::size_t l = layers_.size(); l-- > 0;) backward_layer(l, rule, Step<T>{});
    }
    return total;
}

template <typename T>
void Network<T>::update_all(Rule rule, const Step<T>& step) {
    constexpr Index kChunk = 1 << 16;
    Step<T> bias_step = step;
    bias_step.l2 = bias_step.shrink = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        const Index n = layers_[l].topology->n_connections();
        run_tasks(divided_up(n, kChunk), n / kLanes, n_threads_, [&](Index c) {
            const Index first = c * kChunk;
            in_pieces(
                layers_[l].values.at(first), first, std::min(kChunk, n - first), true,
                rounded(step, l).rounding_seed, [&](Index k, Index size, const Values<T>& piece) {
                    kernels<T>().update(rule, piece, gradients_[l].data() + first + k, size, step);
                });
        });
        kernels<T>().update(rule, layers_[l].bias, bias_gradients_[l].data(),
                            bias_gradients_[l].size(), bias_step);
    }
}

template <typename T>
EpochResult Network<T>::train(const Samples& samples, const Targets<T>& targets,
                              const Standardize<T>& how, const Index* order, Index n, Index batch,
                              Rule rule, const Step<T>* steps, std::uint64_t dropout_seed,
                              Index first_step, const Interrupted& interrupted) {
    Watch watch(interrupted);
    EpochResult result;
    double total = 0, weight = 0;
    dropout_seed_ = dropout_seed;
    const Values<T>& first_layer = layers_[0].values;
    forget_call();
    const Leaving leaving{*this};
    if (first_layer.halves == nullptr && SparseInput<T>::pays(samples, batch)) {
        sparse_ = std::make_unique<SparseInput<T>>(*layers_[0].topology, first_layer);
        sparse_->begin(rule, steps, divided_up(n, batch));
    }
    const bool in_blocks = std::min(batch, n) > kBlock && sparse_ == nullptr;
    block_ = 0;
    if (in_blocks && bias_gradients_.size() < layers_.size()) {
        gradients_.clear();
        bias_gradients_.clear();
        for (const Layer<T>& layer : layers_) {
            gradients_.emplace_back(layer.topology->n_connections());
            bias_gradients_.emplace_back(layer.topology->grid().n_out);
        }
    }
    std::vector<T*> of_weights, of_biases;
    for (std::size_t l = 0; in_blocks && l < layers_.size(); ++l) {
        of_weights.push_back(gradients_[l].data());
        of_biases.push_back(bias_gradients_[l].data());
    }
    if (!in_blocks) prepare(std::min(batch, n), true);
    // Several threads load the next minibatch when the first of them runs out of tiles to update;
    // one thread would only need the memory.
    const bool ahead = most_threads_ > 1 && !in_blocks && samples.row_starts == nullptr;
    if (ahead && ahead_.size() == 0) ahead_ = Buffer<T>(n_in() * capacity_, Use::recurring);
    const Layer<T>& last = layers_.back();
    if (!in_blocks && layers_.size() > 1 && Masks::suit(*last.topology, last.values, lanes_)) {
        masks_ = std::make_unique<Masks>(*last.topology);
    }
    bool is_loaded = false;
    for (Index at = 0; at < n; at += batch) {
        const Index size = std::min(batch, n - at);
        const Step<T>& step = steps[at / batch];
        step_ = std::uint64_t(first_step + at / batch);
        const double step_weight = weight_of(targets, order + at, size);
        const auto started = std::chrono::steady_clock::now();
        if (most_threads_ > 1) n_threads_ = pace_->threads(most_threads_);
        double loss = 0;
        if (in_blocks) {
            {
                const Redirected<T> redirected(layers_, of_weights, of_biases);
                loss = add_gradients(samples, targets, how, order + at, size, step_weight);
            }
            if (std::isfinite(loss)) update_all(rule, step);
        } else {
            if (!is_loaded) load(samples, how, order + at, size);
            const Index left = std::min(batch, n - at - size);
            const Beside next = ahead && left > 0
                                    ? loading(samples, how, order + at + size, left, ahead_.data())
                                    : Beside{};
            loss = fused_step(targets, order + at, size, rule, step, next);
            is_loaded = next.n > 0;
            if (is_loaded) std::swap(activations_[0], ahead_);
        }
        if (most_threads_ > 1) {
            pace_->took(
                std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
        }
        ++result.steps_done;
        total += loss;
        weight += step_weight;
        if (!std::isfinite(loss)) {
            result.diverged = true;
            break;
        }
        if (watch.says_stop(result.steps_done)) break;
    }
    result.loss = weight > 0 ? total / weight : 0;
    return result;
}

template <typename T>
double Network<T>::gradients(const Samples& samples, const Targets<T>& targets,
                             const Standardize<T>& how, const Index* order, Index n,
                             std::uint64_t dropout_seed, Index step,
                             const std::vector<T*>& of_weights, const std::vector<T*>& of_biases) {
    forget_call();
    dropout_seed_ = dropout_seed;
    step_ = std::uint64_t(step);
    const double weight = weight_of(targets, order, n);
    const Redirected<T> redirected(layers_, of_weights, of_biases);
    const double total = add_gradients(samples, targets, how, order, n, weight);
    return weight > 0 ? total / weight : 0;
}

template <typename T>
void Network<T>::predict(const Samples& samples, const Standardize<T>& how, Index stop_after,
                         T* out, const Interrupted& interrupted) {
    Watch watch(interrupted);
    // Wide enough to reuse every index, narrow enough that huge layers keep their rows in memory.
    Index widest = n_in();
    for (const auto& layer : layers_) widest = std::max(widest, layer.topology->grid().n_out);
    const Index batch = std::min(samples.n_rows, widest > 2000000 ? Index(8) : Index(32));
    const std::size_t n_layers = stop_after < 0 ? layers_.size() : std::size_t(stop_after) + 1;
    const Index width = layers_[n_layers - 1].topology->grid().n_out;
    if (samples.n_rows == 0) return;
    prepare(batch, false);
    // Sparse samples always take this way: a prediction must not depend on what stands beside it.
    forget_call();
    const Leaving leaving{*this};
    if (samples.row_starts != nullptr && layers_[0].values.halves == nullptr) {
        sparse_ = std::make_unique<SparseInput<T>>(*layers_[0].topology, layers_[0].values);
    }
    std::vector<Index> order(static_cast<std::size_t>(batch));
    for (Index at = 0; at < samples.n_rows; at += batch) {
        const Index size = std::min(batch, samples.n_rows - at);
        for (Index b = 0; b < size; ++b) order[b] = at + b;
        load(samples, how, order.data(), size);
        for (std::size_t l = 0; l < n_layers; ++l) forward_layer(l, false);
        const T* y = rows(n_layers);
        for (Index i = 0; i < width; ++i) {
            for (Index b = 0; b < size; ++b) out[(at + b) * width + i] = y[i * lanes_ + b];
        }
        if (watch.says_stop(at + size)) break;
    }
}

template <typename T>
void Network<T>::signals(const Samples& samples, const Targets<T>& targets,
                         const Standardize<T>& how, const Index* order, Index n,
                         std::uint64_t dropout_seed, Index step, std::vector<T*> inputs,
                         std::vector<T*> deltas) {
    prepare(n, true);
    forget_call();
    dropout_seed_ = dropout_seed;
    step_ = std::uint64_t(step);
    block_ = 0;
    load(samples, how, order, n);
    for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, true);
    output_error(targets, order, n, weight_of(targets, order, n));
    const auto copy_rows = [&](const T* from, Index n_rows, T* to) {
        for (Index i = 0; i < n_rows; ++i) std::copy_n(from + i * lanes_, n, to + i * n);
    };
    Index most = 0;
    for (const auto& layer : layers_) {
        most = std::max({most, layer.topology->n_connections(), layer.topology->grid().n_out});
    }
    Buffer<T> scratch(most), bias_scratch(most);
    const std::vector<T*> nowhere(layers_.size(), scratch.data());
    const Redirected<T> redirected(layers_, nowhere,
                                   std::vector<T*>(layers_.size(), bias_scratch.data()));
    for (std::size_t l = layers_.size(); l-- > 0;) {
        copy_rows(rows(l), layers_[l].topology->grid().n_in, inputs[l]);
        copy_rows(delta(l), layers_[l].topology->grid().n_out, deltas[l]);
        if (l > 0) backward_layer(l, Rule::store, Step<T>{});
    }
}

#define RATOON_INSTANTIATE(T)                                                                     \
    template EpochResult Network<T>::train(                                                       \
        const Samples&, const Targets<T>&, const Standardize<T>&, const Index*, Index, Index,     \
        Rule, const Step<T>*, std::uint64_t, Index, const Interrupted&);                          \
    template double Network<T>::gradients(                                                        \
        const Samples&, const Targets<T>&, const Standardize<T>&, const Index*, Index,            \
        std::uint64_t, Index, const std::vector<T*>&, const std::vector<T*>&);                    \
    template void Network<T>::predict(const Samples&, const Standardize<T>&, Index, T*,           \
                                      const Interrupted&);                                        \
    template void Network<T>::signals(const Samples&, const Targets<T>&, const Standardize<T>&,   \
                                      const Index*, Index, std::uint64_t, Index, std::vector<T*>, \
                                      std::vector<T*>);
RATOON_INSTANTIATE(float)
RATOON_INSTANTIATE(double)

}  // namespace ratoon
