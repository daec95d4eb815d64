#include "network.hpp"

#include <algorithm>

#include "linear.hpp"
#include "masked.hpp"
#include "random.hpp"
#include "sparse_input.hpp"

namespace ratoon {
namespace {

template <typename X, typename T>
auto load_of(const Kernels<T>& from) {
    if constexpr (std::is_same_v<X, float>) return from.load_f32;
    if constexpr (std::is_same_v<X, double>) return from.load_f64;
    if constexpr (std::is_same_v<X, std::uint8_t>) return from.load_u8;
    if constexpr (std::is_same_v<X, std::int8_t>) return from.load_i8;
    if constexpr (std::is_same_v<X, std::uint16_t>) return from.load_u16;
    if constexpr (std::is_same_v<X, std::int16_t>) return from.load_i16;
}

}  // namespace

template <typename T>
Network<T>::Network(std::vector<Layer<T>> layers, const Loss<T>& loss, int n_threads,
                    std::shared_ptr<Pace> pace)
    : layers_(std::move(layers)),
      block_lanes_(0),
      loss_(&loss),
      pace_(std::move(pace)),
      most_threads_(std::max(1, n_threads)),
      n_threads_(most_threads_) {
    Index widest = n_in();
    for (const Layer<T>& layer : layers_) widest = std::max(widest, layer.topology->grid().n_out);
    block_lanes_ = block_for(widest);
}

template <typename T>
Network<T>::~Network() = default;

// ---------------------------------------------------------------------------------- memory

template <typename T>
Index Network<T>::block_for(Index widest) {
    constexpr Index kFewest = 32, kMost = 128, kNumbers = Index(1) << 18;
    // With registers of fewer lanes wider blocks gain nothing, or are slower by tiles.
    Index lanes = isa_in_use() == "avx512" ? kMost : kFewest;
    while (lanes > kFewest && widest * lanes > kNumbers) lanes /= 2;
    return lanes;
}

template <typename T>
void Network<T>::prepare(Index batch, bool training) {
    lanes_ = training && batch == 1 ? 1 : padded_to_lanes(batch);
    if (lanes_ <= capacity_ && (for_training_ || !training)) return;
    capacity_ = 0;  // if memory runs out, the next call starts over
    for_training_ = training;
    activations_.clear();
    derivatives_.clear();
    deltas_[0] = Buffer<T>();
    deltas_[1] = Buffer<T>();
    ahead_ = Buffer<T>();
    activations_.emplace_back(0);  // of the samples: made when they are loaded densely
    Index widest = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
        const Grid& grid = layers_[l].topology->grid();
        activations_.emplace_back(grid.n_out * lanes_, Use::recurring);
        const bool kept = training && activation_of(layers_[l]).derived_from == DerivedFrom::input;
        derivatives_.emplace_back(kept ? grid.n_out * lanes_ : 0, Use::recurring);
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
    const Index block = block_for(*std::max_element(widths.begin(), widths.end()));
    const Index lanes = batch == 1 ? 1 : padded_to_lanes(std::min(batch, block));
    // Several threads load the next minibatch while this one is trained on.
    Index rows = n_threads > 1 && batch <= block ? widths[0] : 0, widest = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        rows += widths[i];
        if (i > 0) widest = std::max(widest, widths[i]);
    }
    return (rows + 2 * widest) * lanes * Index(sizeof(T));
}

// --------------------------------------------------------------------------------- samples

template <typename T>
void Network<T>::load(const Minibatch<T>& batch) {
    if (sparse_ != nullptr) return sparse_->load(batch, lanes_);
    if (activations_[0].size() == 0) {
        activations_[0] = Buffer<T>(n_in() * capacity_, Use::recurring);
    }
    if (batch.samples->is_sparse()) return load_csr(batch);
    const SideTasks tasks = loading(batch, rows(0), lanes_);
    run_tasks(tasks.n, n_in() * batch.size() / 8, n_threads_, tasks.task);
}

// What turns dense samples into rows of neurons, in tasks that threads can share.
template <typename T>
SideTasks Network<T>::loading(const Minibatch<T>& batch, T* out, Index lanes) const {
    const Index chunk = 4096, n_features = batch.samples->n_features, n = batch.size();
    const Augment& augment = batch.samples->augment;
    const auto tasks = [&]<typename X>(const DenseRows<X>& dense) {
        const auto function = load_of<X>(kernels<T>());
        std::vector<const X*> pointers;
        pointers.reserve(std::size_t(n));
        for (const Index row : batch.order) pointers.push_back(dense.data + row * dense.stride);
        if (augment.is_used()) return augmenting(batch, std::move(pointers), function, out, lanes);
        return SideTasks{divided_up(n_features, chunk),
                         [=, how = batch.how, pointers = std::move(pointers)](Index c) {
                             function(pointers.data(), n, c * chunk,
                                      std::min(n_features, (c + 1) * chunk), how, out, lanes);
                         }};
    };
    return std::visit(
        [&](const auto& rows) -> SideTasks {
            if constexpr (requires { tasks(rows); }) {
                return tasks(rows);
            } else {
                throw std::invalid_argument("sparse samples are not loaded as rows");
            }
        },
        batch.samples->rows);
}

// The same for images: every task changes its part of them in memory of its own.
template <typename T>
template <typename X, typename Function>
SideTasks Network<T>::augmenting(const Minibatch<T>& batch, std::vector<const X*> images,
                                 Function function, T* out, Index lanes) const {
    const Index chunk = 1024, n_features = n_in(), n = batch.size();
    std::vector<Augment::Change> changes;
    changes.reserve(std::size_t(n));
    for (const Index row : batch.order) changes.push_back(batch.samples->augment.change_of(row));
    return {divided_up(n_features, chunk),
            [=, how = batch.how, augment = batch.samples->augment, images = std::move(images),
             changes = std::move(changes)](Index c) {
                const Index first = c * chunk, size = std::min(n_features - first, chunk);
                std::vector<X> changed(std::size_t(n * size));
                std::vector<const X*> rows;
                rows.reserve(std::size_t(n));
                for (Index b = 0; b < n; ++b) {
                    X* row = changed.data() + b * size;
                    augment.read(images[std::size_t(b)], changes[std::size_t(b)], first,
                                 first + size, row);
                    rows.push_back(row);
                }
                const Standardize<T> of_part{how.shift != nullptr ? how.shift + first : nullptr,
                                             how.scale != nullptr ? how.scale + first : nullptr,
                                             how.clip};
                function(rows.data(), n, 0, size, of_part, out + first * lanes, lanes);
            }};
}

template <typename T>
void Network<T>::load_csr(const Minibatch<T>& batch) {
    T* x = rows(0);
    std::fill_n(x, n_in() * lanes_, T(0));
    for (Index b = 0; b < batch.size(); ++b) {
        batch.each_non_zero(batch.order[std::size_t(b)],
                            [&](Index feature, T z) { x[feature * lanes_ + b] = z; });
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
    if (training && derivatives_[l].size() > 0) {
        T* derivatives = derivatives_[l].data() + first * lanes_;
        activation_of(layer).activate_keeping(layer.slope, y, derivatives, n);
    } else {
        activation_of(layer).activate(layer.slope, y, n);
    }
    if (training && layer.dropout > 0) {
        kernels<T>().drop(layer.dropout, random_bits(dropout_seed_, drop_counter(l)),
                          std::uint64_t(first * lanes_), y, n);
    }
}

// ------------------------------------------------------------------------------------ loss

// The error at the output, divided by the weight of the minibatch; returns the summed loss.
template <typename T>
double Network<T>::output_error(const Minibatch<T>& batch, double total_weight) {
    const Targets<T>& targets = batch.targets;
    const std::size_t last = layers_.size() - 1;
    const Index k = n_out();
    T* d = delta(last);
    std::fill_n(d, k * lanes_, T(0));
    double total = 0;
    std::vector<T> output(static_cast<std::size_t>(k)), error(static_cast<std::size_t>(k));
    for (Index b = 0; b < batch.size(); ++b) {
        const Index row = batch.order[std::size_t(b)];
        for (Index i = 0; i < k; ++i) {
            output[i] = rows(last + 1)[i * lanes_ + b];
            if (targets.offset) output[i] += targets.offset[row * k + i];
        }
        const double weight = targets.weights ? double(targets.weights[row]) : 1.0;
        const double loss =
            loss_->of_sample(output.data(), targets.values + row * k, k, error.data());
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
void Network<T>::update_bias(std::size_t l, Index first, Index last, const GradientSink<T>& sink) {
    T sums[kRowsAtOnce];
    const Step<T> step = sink.step_of_biases();
    for (Index i = first; i < last; i += kRowsAtOnce) {
        const Index n = std::min(kRowsAtOnce, last - i);
        kernels<T>().row_sums(delta(l) + i * lanes_, n, lanes_, sums);
        kernels<T>().update(sink.rule, sink.biases(layers_, l).at(i), sums, n, step);
    }
}

// Converts the error after the activation of layer l into the error before it; updates the biases
// with its sums over the minibatch, while it is in the cache.
template <typename T>
void Network<T>::finish_delta(std::size_t l, Index first, Index last, const GradientSink<T>& sink) {
    const Layer<T>& layer = layers_[l];
    const T unscale = layer.dropout > 0 ? 1 - layer.dropout : T(1);
    for (Index i = first; i < last; i += kRowsAtOnce) {
        const Index end = std::min(i + kRowsAtOnce, last), n = (end - i) * lanes_;
        const T* y = rows(l + 1) + i * lanes_;
        T* d = delta(l) + i * lanes_;
        if (layer.dropout > 0) kernels<T>().drop_errors(layer.dropout, y, d, n);
        if (derivatives_[l].size() > 0) {
            kernels<T>().multiply(derivatives_[l].data() + i * lanes_, d, n);
        } else {
            activation_of(layer).derive(layer.slope, y, unscale, d, n);
        }
        update_bias(l, i, end, sink);
    }
}

template <typename T>
void Network<T>::backward_layer(std::size_t l, const GradientSink<T>& sink, const SideTasks& side) {
    if (l == 0 && sparse_ != nullptr) return sparse_->backward(sink.rule, sink.step, delta(0));
    const Values<T> values = sink.connections(layers_, l);
    // The gradient of the samples themselves is not needed.
    T* dx = l == 0 ? nullptr : delta(l - 1);
    const auto finish = [&](Index first, Index last) { finish_delta(l - 1, first, last, sink); };
    if (masks_ != nullptr && l + 1 == layers_.size()) {
        return masks_->backward(sink.rule, values, sink.step, rows(l), delta(l), dx, n_samples_,
                                n_threads_, finish);
    }
    linear_backward<T>(*layers_[l].topology, sink.rule, values, rounded(sink.step, l), rows(l),
                       delta(l), dx, lanes_, n_threads_, finish, side);
}

// The step with the random numbers that round the weights of layer l.
template <typename T>
Step<T> Network<T>::rounded(Step<T> step, std::size_t l) const {
    constexpr std::uint64_t kRounding = 0x726f756e64696e67;  // separate from those of dropout
    step.rounding_seed = random_bits(dropout_seed_ ^ kRounding, step_ * 1024 + l);
    return step;
}

template class Network<float>;
template class Network<double>;

}  // namespace ratoon
