#include "network.hpp"

#include <algorithm>

#include "linear.hpp"
#include "masked.hpp"
#include "random.hpp"
#include "sparse_input.hpp"

namespace ratoon {

template <typename T>
Network<T>::Network(std::vector<Layer<T>> layers, Loss loss, int n_threads,
                    std::shared_ptr<Pace> pace)
    : layers_(std::move(layers)),
      loss_(loss),
      pace_(std::move(pace)),
      most_threads_(std::max(1, n_threads)),
      n_threads_(most_threads_) {}

template <typename T>
Network<T>::~Network() = default;

// ---------------------------------------------------------------------------------- memory

template <typename T>
void Network<T>::prepare(Index batch, bool training) {
    lanes_ = training && batch == 1 ? 1 : padded_to_lanes(batch);
    if (lanes_ <= capacity_ && (for_training_ || !training)) return;
    capacity_ = 0;  // should memory run out half-way, the next call starts over
    for_training_ = training;
    activations_.clear();
    before_.clear();
    deltas_[0] = Buffer<T>();
    deltas_[1] = Buffer<T>();
    ahead_ = Buffer<T>();
    activations_.emplace_back(0);  // of the samples: made when they are loaded densely
    Index widest = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        const Grid& grid = layers_[l].topology->grid();
        activations_.emplace_back(grid.n_out * lanes_, Use::recurring);
        const bool kept = training && layers_[l].activation == Activation::all_relu;
        before_.emplace_back(kept ? grid.n_out * lanes_ : 0, Use::recurring);
        widest = std::max(widest, grid.n_out);
    }
    if (training) {
        deltas_[0] = Buffer<T>(widest * lanes_, Use::recurring);
        deltas_[1] = Buffer<T>(widest * lanes_, Use::recurring);
    }
    capacity_ = lanes_;
}

template <typename T>
void Network<T>::forget_call() {
    sparse_.reset();
    masks_.reset();
    n_threads_ = most_threads_;
}

template <typename T>
Index Network<T>::workspace_bytes(const std::vector<Index>& widths, Index batch, int n_threads) {
    const Index lanes = batch == 1 ? 1 : padded_to_lanes(std::min(batch, kBlock));
    // Several threads load the next minibatch while this one is trained on.
    Index rows = n_threads > 1 && batch <= kBlock ? widths[0] : 0, widest = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        rows += widths[i];
        if (i > 0) widest = std::max(widest, widths[i]);
    }
    return (rows + 2 * widest) * lanes * Index(sizeof(T));
}

// --------------------------------------------------------------------------------- samples

template <typename T>
void Network<T>::load(const Samples& samples, const Standardize<T>& how, const Index* order,
                      Index n) {
    if (sparse_ != nullptr) return sparse_->load(samples, how, order, n, lanes_);
    if (activations_[0].size() == 0) {
        activations_[0] = Buffer<T>(n_in() * capacity_, Use::recurring);
    }
    if (samples.row_starts != nullptr) return load_csr(samples, how, order, n);
    const Beside tasks = loading(samples, how, order, n, rows(0));
    run_tasks(tasks.n, samples.n_features * n / 8, n_threads_, tasks.task);
}

// What turns dense samples into rows of neurons, in tasks that threads can share.
template <typename T>
Beside Network<T>::loading(const Samples& samples, const Standardize<T>& how, const Index* order,
                           Index n, T* out) const {
    const Index chunk = 4096, n_features = samples.n_features, lanes = lanes_;
    const auto tasks = [&](const auto* data, auto function) {
        std::vector<decltype(data)> pointers;
        pointers.reserve(std::size_t(n));
        for (Index b = 0; b < n; ++b) pointers.push_back(data + order[b] * samples.row_stride);
        return Beside{divided_up(n_features, chunk), [=, pointers = std::move(pointers)](Index c) {
                          function(pointers.data(), n, c * chunk,
                                   std::min(n_features, (c + 1) * chunk), how, out, lanes);
                      }};
    };
    return samples.dense_f32 != nullptr ? tasks(samples.dense_f32, kernels<T>().load_f32)
                                        : tasks(samples.dense_f64, kernels<T>().load_f64);
}

template <typename T>
void Network<T>::load_csr(const Samples& samples, const Standardize<T>& how, const Index* order,
                          Index n) {
    T* x = rows(0);
    const T* values = static_cast<const T*>(samples.csr_values);
    std::fill_n(x, samples.n_features * lanes_, T(0));
    for (Index b = 0; b < n; ++b) {
        for (Index k = samples.row_starts[order[b]]; k < samples.row_starts[order[b] + 1]; ++k) {
            const Index j = samples.column(k);
            T z = values[k];
            if (how.scale != nullptr) z *= how.scale[j];
            if (how.clip > 0) z = std::min(std::max(z, -how.clip), how.clip);
            x[j * lanes_ + b] = z;
        }
    }
}

// --------------------------------------------------------------------------------- forward

template <typename T>
void Network<T>::forward_layer(std::size_t l, bool training) {
    const Layer<T>& layer = layers_[l];
    if (l == 0 && sparse_ != nullptr) {
        sparse_->forward(layer.bias.weights, rows(1));
        return finish_rows(0, 0, layer.topology->grid().n_out, training);
    }
    if (masks_ != nullptr && l + 1 == layers_.size()) {
        masks_->forward(layer.values, layer.bias.weights, rows(l), rows(l + 1), n_samples_,
                        scratch_, n_threads_);
        return finish_rows(l, 0, n_out(), training);
    }
    linear_forward<T>(*layer.topology, layer.values, layer.bias.weights, rows(l), rows(l + 1),
                      lanes_, scratch_, n_threads_,
                      [&](Index first, Index last) { finish_rows(l, first, last, training); });
}

// Activation and dropout of finished rows.
template <typename T>
void Network<T>::finish_rows(std::size_t l, Index first, Index last, bool training) {
    const Layer<T>& layer = layers_[l];
    T* y = rows(l + 1) + first * lanes_;
    const Index n = (last - first) * lanes_;
    if (training && before_[l].size() > 0) {
        std::copy_n(y, n, before_[l].data() + first * lanes_);
    }
    kernels<T>().activate(layer.activation, layer.slope, y, n);
    if (training && layer.dropout > 0) {
        kernels<T>().drop(layer.dropout, random_bits(dropout_seed_, drop_counter(l)),
                          std::uint64_t(first * lanes_), y, n);
    }
}

// ------------------------------------------------------------------------------------ loss

template <typename T>
double Network<T>::weight_of(const Targets<T>& targets, const Index* order, Index n) const {
    if (targets.weights == nullptr) return double(n);
    double sum = 0;
    for (Index b = 0; b < n; ++b) sum += double(targets.weights[order[b]]);
    return sum;
}

// The error at the output, divided by the weight of the minibatch; returns the summed loss.
template <typename T>
double Network<T>::output_error(const Targets<T>& targets, const Index* order, Index n,
                                double total_weight) {
    const std::size_t last = layers_.size() - 1;
    const Index k = n_out();
    T* d = delta(last);
    std::fill_n(d, k * lanes_, T(0));
    double total = 0;
    std::vector<T> output(static_cast<std::size_t>(k)), error(static_cast<std::size_t>(k));
    for (Index b = 0; b < n; ++b) {
        for (Index i = 0; i < k; ++i) {
            output[i] = rows(last + 1)[i * lanes_ + b];
            if (targets.offset) output[i] += targets.offset[order[b] * k + i];
        }
        const double weight = targets.weights ? double(targets.weights[order[b]]) : 1.0;
        const double loss =
            sample_loss(loss_, output.data(), targets.values + order[b] * k, k, error.data());
        if (weight > 0) {
            total += weight * loss;
            for (Index i = 0; i < k; ++i) {
                d[i * lanes_ + b] = T(double(error[i]) * (weight / total_weight));
            }
        }
    }
    return total;
}

// -------------------------------------------------------------------------------- backward

template <typename T>
void Network<T>::update_bias(std::size_t l, Index first, Index last, Rule rule,
                             const Step<T>& step) {
    T sums[kRowsAtOnce];
    Step<T> bias_step = step;
    bias_step.l2 = bias_step.shrink = 0;  // decay is for connections
    for (Index i = first; i < last; i += kRowsAtOnce) {
        const Index n = std::min(kRowsAtOnce, last - i);
        kernels<T>().row_sums(delta(l) + i * lanes_, n, lanes_, sums);
        kernels<T>().update(rule, layers_[l].bias.at(i), sums, n, bias_step);
    }
}

// The error that arrived at the outputs of layer l becomes that before its activation; and its sums
// over the minibatch, while it is in the cache, go to the biases.
template <typename T>
void Network<T>::finish_delta(std::size_t l, Index first, Index last, Rule rule,
                              const Step<T>& step) {
    const Layer<T>& layer = layers_[l];
    const T* y = before_[l].size() > 0 ? before_[l].data() : rows(l + 1);
    const T unscale = layer.dropout > 0 ? 1 - layer.dropout : T(1);
    for (Index i = first; i < last; i += kRowsAtOnce) {
        const Index end = std::min(i + kRowsAtOnce, last), n = (end - i) * lanes_;
        T* d = delta(l) + i * lanes_;
        if (layer.dropout > 0) {
            kernels<T>().drop(layer.dropout, random_bits(dropout_seed_, drop_counter(l)),
                              std::uint64_t(i * lanes_), d, n);
        }
        kernels<T>().derive(layer.activation, layer.slope, y + i * lanes_, unscale, d, n);
        update_bias(l, i, end, rule, step);
    }
}

template <typename T>
void Network<T>::backward_layer(std::size_t l, Rule rule, const Step<T>& step,
                                const Beside& beside) {
    const Layer<T>& layer = layers_[l];
    if (l == 0 && sparse_ != nullptr) {
        return sparse_->backward(rule, step, delta(0));
    }
    // Nobody needs the gradient of the samples themselves.
    T* dx = l == 0 ? nullptr : delta(l - 1);
    const auto finish = [&](Index first, Index last) {
        finish_delta(l - 1, first, last, rule, step);
    };
    if (masks_ != nullptr && l + 1 == layers_.size()) {
        return masks_->backward(rule, layer.values, step, rows(l), delta(l), dx, n_samples_,
                                n_threads_, finish);
    }
    linear_backward<T>(*layer.topology, rule, layer.values, rounded(step, l), rows(l), delta(l), dx,
                       lanes_, n_threads_, finish, beside);
}

// The step with chances of its own for rounding the weights of layer l.
template <typename T>
Step<T> Network<T>::rounded(Step<T> step, std::size_t l) const {
    constexpr std::uint64_t kRounding = 0x726f756e64696e67;  // apart from those of dropout
    step.rounding_seed = random_bits(dropout_seed_ ^ kRounding, step_ * 1024 + l);
    return step;
}

template class Network<float>;
template class Network<double>;

}  // namespace ratoon
