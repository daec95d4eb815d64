// Whole networks over any samples, dense and sparse: train, predict, gradients, signals.
//
// Sparse samples come with unchecked indices, as if the arrays had been changed after the check:
// they must be refused, never followed.
#include "network.hpp"

#include <stdexcept>

#include "bytes.hpp"
#include "rewire.hpp"

using namespace ratoon;
using ratoon::fuzz::Bytes;
using ratoon::fuzz::must;

namespace {

// Owns what a layer points to.
template <typename T>
struct Arrays {
    std::vector<T> weights, first, second, bias, bias_first, bias_second;
};

template <typename T>
struct Data {
    std::vector<float> f32;
    std::vector<double> f64;
    std::vector<std::uint8_t> u8;
    std::vector<Index> row_starts;
    std::vector<std::int32_t> columns;
    std::vector<T> values, targets, weights, offset, shift, scale;
    Samples samples;
};

template <typename T>
void draw_samples(Bytes& bytes, Data<T>& data, Index n_rows, Index n_in) {
    Samples& samples = data.samples;
    samples.n_rows = n_rows;
    samples.n_features = n_in;
    switch (bytes.between(0, 3)) {
        case 0:
            data.f32 = bytes.numbers<float>(n_rows * n_in);
            samples.rows = DenseRows<float>{data.f32.data(), n_in};
            break;
        case 1:
            data.f64 = bytes.numbers<double>(n_rows * n_in);
            samples.rows = DenseRows<double>{data.f64.data(), n_in};
            break;
        case 2:
            for (Index k = 0; k < n_rows * n_in; ++k) data.u8.push_back(bytes.byte());
            samples.rows = DenseRows<std::uint8_t>{data.u8.data(), n_in};
            break;
        default:
            data.row_starts.push_back(0);
            for (Index i = 0; i < n_rows; ++i) {
                for (Index k = bytes.byte() % 4; k > 0; --k) {
                    data.columns.push_back(std::int32_t(bytes.index(0, n_in - 1)));
                    data.values.push_back(bytes.number<T>());
                }
                data.row_starts.push_back(Index(data.columns.size()));
            }
            samples.rows =
                CsrRows<T>{data.row_starts.data(), data.columns.data(), data.values.data()};
    }
}

// A layout with as many values as a sample has.
Augment draw_augment(Bytes& bytes, Index n_features) {
    const auto divisor = [&](Index n) {
        Index found = bytes.between(1, n);
        while (n % found != 0) --found;
        return found;
    };
    Augment augment;
    augment.planes = divisor(n_features);
    augment.inner = divisor(n_features / augment.planes);
    augment.height = divisor(n_features / augment.planes / augment.inner);
    augment.width = n_features / augment.planes / augment.inner / augment.height;
    augment.shift = bytes.between(0, std::min(augment.height, augment.width) - 1);
    augment.flip = bytes.byte() % 2 == 1;
    augment.seed = bytes.word();
    return augment;
}

template <typename T>
void use(Bytes& bytes) {
    const Index depth = bytes.between(1, 3), n_rows = bytes.between(1, 70);
    std::vector<Layer<T>> layers;
    std::vector<Arrays<T>> arrays(static_cast<std::size_t>(depth));
    Index n_in = bytes.between(1, 60);
    const Index n_features = n_in;
    for (Arrays<T>& mine : arrays) {
        const Index n_out = bytes.between(1, 60);
        const Grid grid{n_in, n_out, bytes.between(1, 5) * kGroup, bytes.between(1, 60),
                        bytes.byte() % 2 == 1};
        grid.check();
        const Index n = bytes.between(0, std::min<Index>(n_in * n_out, 250));
        Layer<T> layer;
        layer.topology = random_topology(grid, n, bytes.word(), 1);
        for (auto* values : {&mine.weights, &mine.first, &mine.second}) {
            *values = bytes.numbers<T>(n);
        }
        for (auto* values : {&mine.bias, &mine.bias_first, &mine.bias_second}) {
            *values = bytes.numbers<T>(n_out);
        }
        layer.values = {mine.weights.data(), mine.first.data(), mine.second.data()};
        layer.bias = {mine.bias.data(), mine.bias_first.data(), mine.bias_second.data()};
        layer.activation = Activation(bytes.between(0, Index(kernels<T>().activations.size()) - 1));
        layer.slope = bytes.number<T>();
        layer.dropout = T(bytes.byte() % 4) / 4;
        layers.push_back(layer);
        n_in = n_out;
    }
    const Index n_out = n_in;
    Data<T> data;
    draw_samples(bytes, data, n_rows, n_features);
    data.targets = bytes.numbers<T>(n_rows * n_out);
    data.weights = bytes.numbers<T>(n_rows);
    data.offset = bytes.numbers<T>(n_rows * n_out);
    data.shift = bytes.numbers<T>(n_features);
    data.scale = bytes.numbers<T>(n_features);
    const std::uint8_t with = bytes.byte();
    const bool sparse = data.samples.is_sparse();
    const Targets<T> targets{data.targets.data(), with & 1 ? data.weights.data() : nullptr,
                             with & 2 ? data.offset.data() : nullptr};
    const Standardize<T> how{with & 4 && !sparse ? data.shift.data() : nullptr,
                             with & 8 ? data.scale.data() : nullptr,
                             with & 16 ? std::abs(bytes.number<T>()) : T(0)};
    std::vector<Index> order;
    for (Index k = bytes.between(1, 80); k > 0; --k) order.push_back(bytes.byte() % n_rows);
    const Index n = Index(order.size()), batch = bytes.between(1, 70);

    Samples as_they_are = data.samples;
    if (!sparse && bytes.byte() % 2 == 1) data.samples.augment = draw_augment(bytes, n_features);
    Minibatch<T> minibatch{&data.samples, how, targets, order, 0, 3};

    const Loss<T>& loss = kLosses<T>[bytes.between(0, kNumberOfLosses<T> - 1)];
    Network<T> network(layers, loss, int(bytes.between(1, 2)), std::make_shared<Pace>());
    Index calls = 0;
    const Interrupted interrupted = [&calls, limit = bytes.byte()](Index) {
        return ++calls > limit;
    };
    for (Index round = bytes.between(1, 3); round > 0; --round) {
        switch (bytes.between(0, 3)) {
            case 0: {
                std::vector<Step<T>> steps(static_cast<std::size_t>(divided_up(n, batch)));
                for (Step<T>& step : steps) {
                    step = {bytes.number<T>(), bytes.number<T>(), bytes.number<T>(),
                            bytes.number<T>(), bytes.number<T>(), bytes.number<T>()};
                }
                const Rule rule = Rule(bytes.between(int(Rule::sgd), kNumberOfRules - 1));
                minibatch.dropout_seed = bytes.word();
                minibatch.step = bytes.between(0, 1000);
                const EpochResult result =
                    network.train(minibatch, batch, rule, steps, interrupted);
                must(result.steps_done >= 0 && result.steps_done <= Index(steps.size()), "steps");
                break;
            }
            case 1: {
                const Index stop = bytes.between(-1, depth - 1);
                const Index last = stop < 0 ? depth - 1 : stop;
                const Index width = layers[std::size_t(last)].topology->grid().n_out;
                std::vector<T> out(static_cast<std::size_t>(n_rows * width));
                network.predict(as_they_are, how, stop, out.data(), interrupted);
                break;
            }
            case 2: {
                std::vector<std::vector<T>> kept;
                std::vector<T*> of_weights, of_biases;
                for (const Layer<T>& layer : layers) {
                    kept.emplace_back(std::size_t(layer.topology->n_connections()));
                    of_weights.push_back(kept.back().data());
                    kept.emplace_back(std::size_t(layer.topology->grid().n_out));
                    of_biases.push_back(kept.back().data());
                }
                minibatch.dropout_seed = bytes.word();
                network.gradients(minibatch, of_weights, of_biases);
                break;
            }
            default: {
                std::vector<std::vector<T>> kept;
                std::vector<T*> inputs, deltas;
                for (const Layer<T>& layer : layers) {
                    const Grid& grid = layer.topology->grid();
                    kept.emplace_back(std::size_t(grid.n_in * n));
                    inputs.push_back(kept.back().data());
                    kept.emplace_back(std::size_t(grid.n_out * n));
                    deltas.push_back(kept.back().data());
                }
                minibatch.dropout_seed = bytes.word();
                network.signals(minibatch, inputs, deltas);
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    try {
        bytes.byte() % 2 == 1 ? use<float>(bytes) : use<double>(bytes);
    } catch (const std::invalid_argument&) {
    }
    return 0;
}
