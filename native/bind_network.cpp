// Whole networks: training over minibatches and prediction, with the GIL released.
#include <atomic>

#include "bindings.hpp"
#include "claim.hpp"
#include "network.hpp"

namespace ratoon {
namespace {

// Samples with the arrays that hold them, so that Python does not free these in the meantime.
struct HeldSamples {
    Samples view;
    std::vector<nb::object> kept;
};

template <typename T>
using Strided = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <typename T>
HeldSamples dense_samples(const Strided<T>& x) {
    require(x.shape(0) == 0 || x.shape(1) <= 1 || x.stride(1) == 1,
            "the features of a sample must be contiguous");
    require(x.stride(0) >= 0, "rows must follow each other in memory");
    const DenseRows<T> rows{.data = x.data(), .stride = Index(x.stride(0))};
    return {{Index(x.shape(0)), Index(x.shape(1)), rows, {}}, {nb::cast(x)}};
}

// The same samples as images that training changes at random.
HeldSamples augmented(const HeldSamples& samples, Index planes, Index height, Index width,
                      Index inner, Index shift, bool flip, std::uint64_t seed,
                      const OptionalVector<const Index>& numbers) {
    require(!samples.view.is_sparse(), "sparse samples cannot be augmented");
    Index rest = samples.view.n_features;
    for (const Index side : {planes, height, width, inner}) {
        require(side >= 1 && rest % side == 0, "the shape of the images is not that of a sample");
        rest /= side;
    }
    require(rest == 1, "the shape of the images is not that of a sample");
    require(shift >= 0 && shift < std::min(height, width),
            "the shift must be smaller than the images");
    if (numbers) require_size(*numbers, samples.view.n_rows, "numbers");
    HeldSamples changed = samples;
    changed.view.augment = {.planes = planes,
                            .height = height,
                            .width = width,
                            .inner = inner,
                            .shift = shift,
                            .flip = flip,
                            .seed = seed,
                            .numbers = data_or_null(numbers)};
    if (numbers) changed.kept.push_back(nb::cast(*numbers));
    return changed;
}

// Every index is checked before any kernel uses it.
template <typename T>
HeldSamples csr_samples(const Vector<const Index>& row_starts,
                        const Vector<const std::int32_t>& columns, const Vector<const T>& values,
                        Index n_features) {
    const Index n_rows = Index(row_starts.size()) - 1, n = Index(columns.size());
    require(n_rows >= 0 && n_features >= 1, "a CSR matrix needs row starts and a feature");
    require_size(values, n, "values");
    require(row_starts.data()[0] == 0 && row_starts.data()[n_rows] == n,
            "row starts must begin at 0 and end at the number of entries");
    for (Index i = 0; i < n_rows; ++i) {
        require(row_starts.data()[i] <= row_starts.data()[i + 1], "row starts must not decrease");
    }
    for (Index k = 0; k < n; ++k) {
        const std::int32_t j = columns.data()[k];
        require(j >= 0 && j < n_features, "a column index is out of range");
    }
    const CsrRows<T> rows{
        .starts = row_starts.data(), .columns = columns.data(), .values = values.data()};
    return {{n_rows, n_features, rows, {}},
            {nb::cast(row_starts), nb::cast(columns), nb::cast(values)}};
}

template <typename T>
Standardize<T> checked_scaling(const OptionalVector<const T>& shift,
                               const OptionalVector<const T>& scale, T clip,
                               const Samples& samples) {
    if (shift) require_size(*shift, samples.n_features, "shift");
    if (scale) require_size(*scale, samples.n_features, "scale");
    require(!shift || !samples.is_sparse(), "sparse samples cannot be shifted");
    return {data_or_null(shift), data_or_null(scale), clip};
}

// A minibatch with everything it refers to.  The order is a copy, so it stays as it was checked.
template <typename T>
class HeldMinibatch {
  public:
    HeldMinibatch(HeldSamples samples, const Rows<const T>& targets,
                  const OptionalVector<const T>& sample_weights,
                  const std::optional<Rows<const T>>& offset, const OptionalVector<const T>& shift,
                  const OptionalVector<const T>& scale, T clip, const Vector<const Index>& order,
                  std::uint64_t dropout_seed, Index step)
        : samples_(std::move(samples)),
          order_(order.data(), order.data() + order.size()),
          n_out_(Index(targets.shape(1))) {
        const Index n_rows = samples_.view.n_rows;
        require(Index(targets.shape(0)) == n_rows, "targets must be (samples, outputs)");
        if (sample_weights) require_size(*sample_weights, n_rows, "sample weights");
        if (offset) require_size(*offset, n_rows * n_out_, "offset");
        for (const Index row : order_) {
            require(row >= 0 && row < n_rows, "order names an unknown sample");
        }
        view_ = {.samples = &samples_.view,
                 .how = checked_scaling<T>(shift, scale, clip, samples_.view),
                 .targets = {targets.data(), data_or_null(sample_weights),
                             offset ? offset->data() : nullptr},
                 .order = order_,
                 .dropout_seed = dropout_seed,
                 .step = step};
        kept_.push_back(nb::cast(targets));
        for (const auto& array : {sample_weights, shift, scale}) {
            if (array) kept_.push_back(nb::cast(*array));
        }
        if (offset) kept_.push_back(nb::cast(*offset));
    }
    HeldMinibatch(const HeldMinibatch&) = delete;

    const Minibatch<T>& view() const { return view_; }
    Index n_out() const { return n_out_; }

  private:
    HeldSamples samples_;
    std::vector<Index> order_;
    Index n_out_;
    Minibatch<T> view_;
    std::vector<nb::object> kept_;
};

// Marks a network as in use.  Its working memory serves one call at a time: another thread or a
// progress function must not start a second one.
class AtWork {
  public:
    explicit AtWork(std::atomic<bool>& flag) : flag_(flag) {
        if (flag_.exchange(true)) {
            throw std::runtime_error("this network is at work already; use one for each thread");
        }
    }
    ~AtWork() { flag_.store(false); }
    AtWork(const AtWork&) = delete;

  private:
    std::atomic<bool>& flag_;
};

template <typename T>
struct HeldNetwork {
    std::vector<Layer<T>> layers;
    std::vector<nb::object> kept;
    const Loss<T>& loss;
    int n_threads;
    std::shared_ptr<Pace> pace;
    std::optional<Network<T>> network;  // made at first use, when all layers have been added
    std::atomic<bool> at_work = false;

    Network<T>& ready() {
        require(!layers.empty(), "the network has no layers");
        if (!network) network.emplace(layers, loss, n_threads, pace);
        return *network;
    }
};

// W is T, or Half for weights in bfloat16.
template <typename T, typename W>
void add_layer(HeldNetwork<T>& self, const TopologyPtr& topology, Vector<W> weights, Vector<T> bias,
               OptionalVector<T> first, OptionalVector<T> second, OptionalVector<T> bias_first,
               OptionalVector<T> bias_second, int activation, T slope, T dropout) {
    const AtWork at_work(self.at_work);
    const Grid& grid = topology->grid();
    require(self.layers.empty() || self.layers.back().topology->grid().n_out == grid.n_in,
            "a layer must have as many inputs as the one before has outputs");
    checked_activation<T>(activation);
    require(dropout >= 0 && dropout < 1, "the dropout rate must be in [0, 1)");
    const Index n = topology->n_connections();
    require_size(weights, n, "weights");
    require_size(bias, grid.n_out, "bias");
    if (first) require_size(*first, n, "first");
    if (second) require_size(*second, n, "second");
    if (bias_first) require_size(*bias_first, grid.n_out, "bias_first");
    if (bias_second) require_size(*bias_second, grid.n_out, "bias_second");
    Layer<T> layer;
    layer.topology = topology;
    layer.values = {nullptr, data_or_null(first), data_or_null(second), nullptr};
    if constexpr (std::is_same_v<W, Half>) {
        layer.values.halves = weights.data();
    } else {
        layer.values.weights = weights.data();
    }
    layer.bias = {bias.data(), data_or_null(bias_first), data_or_null(bias_second), nullptr};
    layer.activation = activation;
    layer.slope = slope;
    layer.dropout = dropout;
    self.layers.push_back(layer);
    self.kept.push_back(nb::cast(weights));
    self.kept.push_back(nb::cast(bias));
    for (const auto& array : {first, second, bias_first, bias_second}) {
        if (array) self.kept.push_back(nb::cast(*array));
    }
    self.network.reset();
}

template <typename T>
void check_samples(const Network<T>& network, const Samples& samples) {
    require(samples.n_features == network.n_in(),
            "samples have " + std::to_string(samples.n_features) + " features, the network takes " +
                std::to_string(network.n_in()));
    require(samples.suit<T>(), "sparse samples must have the number type of the network");
}

// The loss reads the output of the last layer, and its gradient starts there.
template <typename T>
const Minibatch<T>& checked_minibatch(const Network<T>& network, const HeldMinibatch<T>& batch) {
    check_samples(network, *batch.view().samples);
    const Layer<T>& last = network.layers().back();
    require(last.activation == kIdentity && last.dropout == 0,
            "the last layer must be linear and without dropout to be trained");
    require(batch.n_out() == network.n_out(), "targets must be (samples, outputs)");
    return batch.view();
}

// One array per layer, of the size that size_of(layer) demands.
template <typename T, typename Array, typename SizeOf>
std::vector<T*> checked_arrays(const Network<T>& network, const std::vector<Array>& arrays,
                               const char* name, SizeOf size_of) {
    require(arrays.size() == network.layers().size(), "one array per layer is needed");
    std::vector<T*> pointers;
    for (std::size_t l = 0; l < arrays.size(); ++l) {
        require_size(arrays[l], size_of(network.layers()[l]), name);
        pointers.push_back(arrays[l].data());
    }
    return pointers;
}

// Runs pending signal handlers and the caller's progress function; keeps what they raised.
class PythonWatch {
  public:
    explicit PythonWatch(nb::object progress) : progress_(std::move(progress)) {}
    bool operator()(Index done) {
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) raised_ = true;
        if (!raised_ && !progress_.is_none()) {
            try {
                progress_(done);
            } catch (nb::python_error& error) {
                error.restore();
                raised_ = true;
            }
        }
        return raised_;
    }
    void rethrow() const {
        if (raised_) throw nb::python_error();
    }

  private:
    nb::object progress_;
    bool raised_ = false;
};

template <typename T>
std::vector<MemoryRange> arrays_to_train(const Network<T>& network) {
    std::vector<MemoryRange> ranges;
    for (const Layer<T>& layer : network.layers()) {
        const Index n = layer.topology->n_connections(), n_out = layer.topology->grid().n_out;
        ranges.push_back(range_of(layer.values.weights, n));
        ranges.push_back(range_of(layer.values.halves, n));
        for (const T* state : {layer.values.first, layer.values.second}) {
            ranges.push_back(range_of(state, n));
        }
        for (const T* array : {layer.bias.weights, layer.bias.first, layer.bias.second}) {
            ranges.push_back(range_of(array, n_out));
        }
    }
    return ranges;
}

template <typename T>
nb::tuple train(HeldNetwork<T>& self, const HeldMinibatch<T>& epoch, Index batch, int rule_number,
                const std::vector<Step<T>>& steps, nb::object progress) {
    const AtWork at_work(self.at_work);
    Network<T>& network = self.ready();
    const Minibatch<T>& samples = checked_minibatch(network, epoch);
    require(batch >= 1, "a minibatch needs at least one sample");
    require(Index(steps.size()) == divided_up(samples.size(), batch),
            "one step per minibatch is needed");
    const Rule rule = checked_rule(rule_number);
    require(changes_weights(rule), "this rule does not train");
    for (const Layer<T>& layer : network.layers()) {
        require_arrays(rule, layer.values);
        require_arrays(rule, layer.bias);
    }
    const WriteClaim claim(arrays_to_train(network));
    PythonWatch watch(std::move(progress));
    EpochResult result;
    {
        nb::gil_scoped_release release;
        result = network.train(samples, batch, rule, steps, std::ref(watch));
    }
    watch.rethrow();
    return nb::make_tuple(result.loss, result.steps_done, result.diverged);
}

template <typename T>
void predict(HeldNetwork<T>& self, const HeldSamples& samples, OptionalVector<const T> shift,
             OptionalVector<const T> scale, T clip, Index stop_after, Rows<T> out) {
    const AtWork at_work(self.at_work);
    Network<T>& network = self.ready();
    check_samples(network, samples.view);
    require(!samples.view.augment.is_used(), "predictions are of samples as they are");
    require(stop_after < Index(network.layers().size()), "there is no such layer");
    const auto& last =
        stop_after < 0 ? network.layers().back() : network.layers()[std::size_t(stop_after)];
    require(Index(out.shape(0)) == samples.view.n_rows &&
                Index(out.shape(1)) == last.topology->grid().n_out,
            "out must be (samples, outputs)");
    const Standardize<T> how = checked_scaling<T>(shift, scale, clip, samples.view);
    PythonWatch watch{nb::none()};
    {
        nb::gil_scoped_release release;
        network.predict(samples.view, how, stop_after, out.data(), std::ref(watch));
    }
    watch.rethrow();
}

template <typename T>
void signals(HeldNetwork<T>& self, const HeldMinibatch<T>& batch,
             const std::vector<Rows<T>>& inputs, const std::vector<Rows<T>>& deltas) {
    const AtWork at_work(self.at_work);
    Network<T>& network = self.ready();
    const Minibatch<T>& samples = checked_minibatch(network, batch);
    const Index n = samples.size();
    require(n >= 1, "at least one sample is needed");
    const auto to_inputs = checked_arrays(network, inputs, "inputs", [&](const Layer<T>& layer) {
        return layer.topology->grid().n_in * n;
    });
    const auto to_deltas = checked_arrays(network, deltas, "deltas", [&](const Layer<T>& layer) {
        return layer.topology->grid().n_out * n;
    });
    nb::gil_scoped_release release;
    network.signals(samples, to_inputs, to_deltas);
}

template <typename T>
double gradients(HeldNetwork<T>& self, const HeldMinibatch<T>& batch,
                 const std::vector<Vector<T>>& of_weights,
                 const std::vector<Vector<T>>& of_biases) {
    const AtWork at_work(self.at_work);
    Network<T>& network = self.ready();
    const Minibatch<T>& samples = checked_minibatch(network, batch);
    require(samples.size() >= 1, "at least one sample is needed");
    const auto to_weights =
        checked_arrays(network, of_weights, "gradients of weights",
                       [](const Layer<T>& layer) { return layer.topology->n_connections(); });
    const auto to_biases =
        checked_arrays(network, of_biases, "gradients of biases",
                       [](const Layer<T>& layer) { return layer.topology->grid().n_out; });
    nb::gil_scoped_release release;
    return network.gradients(samples, to_weights, to_biases);
}

template <typename T>
void training_outputs(HeldNetwork<T>& self, const HeldMinibatch<T>& batch, Rows<T> out) {
    const AtWork at_work(self.at_work);
    Network<T>& network = self.ready();
    const Minibatch<T>& samples = checked_minibatch(network, batch);
    require(Index(out.shape(0)) == samples.size() && Index(out.shape(1)) == network.n_out(),
            "out must be (samples, outputs)");
    nb::gil_scoped_release release;
    network.training_outputs(samples, out.data());
}

template <typename T>
void bind_for(nb::module_& m, const char* network_name, const char* minibatch_name) {
    nb::class_<HeldMinibatch<T>>(m, minibatch_name)
        .def(nb::init<HeldSamples, const Rows<const T>&, const OptionalVector<const T>&,
                      const std::optional<Rows<const T>>&, const OptionalVector<const T>&,
                      const OptionalVector<const T>&, T, const Vector<const Index>&, std::uint64_t,
                      Index>(),
             "samples"_a, "targets"_a.noconvert(), "sample_weights"_a.noconvert().none(),
             "offset"_a.noconvert().none(), "shift"_a.noconvert().none(),
             "scale"_a.noconvert().none(), "clip"_a, "order"_a.noconvert(), "dropout_seed"_a,
             "step"_a);
    nb::class_<HeldNetwork<T>> bound(m, network_name);
    const auto bind_add_layer = [&](auto function) {
        bound.def("add_layer", function, "topology"_a, "weights"_a.noconvert(),
                  "bias"_a.noconvert(), "first"_a.noconvert().none(), "second"_a.noconvert().none(),
                  "bias_first"_a.noconvert().none(), "bias_second"_a.noconvert().none(),
                  "activation"_a, "slope"_a, "dropout"_a);
    };
    bind_add_layer(&add_layer<T, T>);
    if constexpr (std::is_same_v<T, float>) bind_add_layer(&add_layer<T, Half>);
    bound
        .def(
            "__init__",
            [](HeldNetwork<T>* self, int loss, int n_threads, std::shared_ptr<Pace> pace) {
                require(loss >= 0 && loss < kNumberOfLosses<T>, "unknown loss");
                new (self) HeldNetwork<T>{
                    {}, {}, kLosses<T>[loss], n_threads, std::move(pace), std::nullopt};
            },
            "loss"_a, "n_threads"_a, "pace"_a)
        .def("train", &train<T>, "epoch"_a, "batch"_a, "rule"_a, "steps"_a, "progress"_a.none())
        .def("predict", &predict<T>, "samples"_a, "shift"_a.noconvert().none(),
             "scale"_a.noconvert().none(), "clip"_a, "stop_after"_a, "out"_a.noconvert())
        .def("signals", &signals<T>, "minibatch"_a, "inputs"_a.noconvert(), "deltas"_a.noconvert())
        .def("gradients", &gradients<T>, "minibatch"_a, "of_weights"_a.noconvert(),
             "of_biases"_a.noconvert())
        .def("training_outputs", &training_outputs<T>, "minibatch"_a, "out"_a.noconvert())
        .def_static("workspace_bytes", &Network<T>::workspace_bytes, "widths"_a, "batch"_a,
                    "n_threads"_a);
}

}  // namespace

void bind_network(nb::module_& m) {
    nb::class_<HeldSamples>(m, "Samples")
        .def_static("dense", &dense_samples<float>, "x"_a.noconvert())
        .def_static("dense", &dense_samples<double>, "x"_a.noconvert())
        .def_static("dense", &dense_samples<std::uint8_t>, "x"_a.noconvert())
        .def_static("dense", &dense_samples<std::int8_t>, "x"_a.noconvert())
        .def_static("dense", &dense_samples<std::uint16_t>, "x"_a.noconvert())
        .def_static("dense", &dense_samples<std::int16_t>, "x"_a.noconvert())
        .def_static("csr", &csr_samples<float>, "row_starts"_a.noconvert(), "columns"_a.noconvert(),
                    "values"_a.noconvert(), "n_features"_a)
        .def_static("csr", &csr_samples<double>, "row_starts"_a.noconvert(),
                    "columns"_a.noconvert(), "values"_a.noconvert(), "n_features"_a)
        .def("augmented", &augmented, "planes"_a, "height"_a, "width"_a, "inner"_a, "shift"_a,
             "flip"_a, "seed"_a, "numbers"_a.noconvert().none())
        .def_prop_ro("n_rows", [](const HeldSamples& s) { return s.view.n_rows; })
        .def_prop_ro("n_features", [](const HeldSamples& s) { return s.view.n_features; });
    nb::class_<Pace>(m, "Pace")
        .def(nb::init<>())
        .def("threads", &Pace::threads, "most"_a)
        .def("took", &Pace::took, "seconds"_a);
    m.def("losses", [] {
        std::vector<std::string> names;
        for (const auto& loss : kLosses<float>) names.emplace_back(loss.name);
        return names;
    });
    bind_for<float>(m, "NetworkF32", "MinibatchF32");
    bind_for<double>(m, "NetworkF64", "MinibatchF64");
}

}  // namespace ratoon
