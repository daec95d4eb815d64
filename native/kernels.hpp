// Every compiled kernel, with its shapes: a table of functions per number type, filled for the
// instruction set of the processor at first use.
//
// Rows.  x, y, dx, dy point to the first neuron of a tile (or layer); neuron i of the batch is the
// row of `lanes` numbers at i * lanes.  `lanes` is 1 or a multiple of 8; lanes beyond the batch
// hold anything in y, and zeros in dy.
//
// All functions are serial; linear.cpp and network.cpp distribute work over threads.
#pragma once

#include <span>
#include <string>

#include "rules.hpp"

namespace ratoon {

// What the derivative of an activation is computed from.
enum class DerivedFrom { sign_of_output, output, input };

// One activation; isa/activations.hpp has them all.
template <typename T>
struct ActivationKernel {
    const char* name;
    DerivedFrom derived_from;
    // In place: y = f(y).
    void (*activate)(T slope, T* y, Index n);
    // The same, keeping f'(z); null unless `derived_from` is the input.
    void (*activate_keeping)(T slope, T* y, T* derivative, Index n);
    // d *= f'(z), where `known` is z or f(z), whichever `derived_from` names; outputs are
    // multiplied by `unscale` first.
    void (*derive)(T slope, const T* known, T unscale, T* d, Index n);
};
// Places in the table of activations.
using Activation = int;
constexpr Activation kIdentity = 0;

// Centre, scale and clip while reading: z = min(max((x - shift) * scale, -clip), clip).  Null
// pointers and clip = 0 leave the respective step out.
template <typename T>
struct Standardize {
    const T* shift = nullptr;
    const T* scale = nullptr;
    T clip = 0;
};

// A strip of a narrow layer as masks: bit j of masks[g * n_out + i] is set if input 16 g + j is
// connected to output i.  Connections lie in that order.
struct Masked {
    const std::uint16_t* masks = nullptr;
    Index n_inputs = 0, n_out = 0, n_connections = 0;
};

// The properties of a tile that kernels use.
struct TileKind {
    bool far = false;    // its rows exceed the cache, so that fetching them ahead pays
    bool small = false;  // at most kSmallSide inputs and outputs
};
constexpr Index kSmallSide = 16384;

// A connection in a run of an output or input: what it connects it to, and its slot.
struct Link {
    std::uint32_t other, slot;
};

constexpr Index kScanRows = 4;  // inputs looked at together
constexpr Index kPanel = 16;    // outputs of a panel, looked at together

// Outputs in panels: number c of output k of panel p lies at (p * depth + c) * kPanel + k, so that
// one load brings the same number of several outputs.
template <typename T>
struct Panels {
    const T* numbers;
    Index depth;  // numbers per output, as many as per input
};

template <typename T>
struct Hit {
    T magnitude;
    std::uint32_t row;     // which of the kScanRows inputs
    std::uint32_t column;  // which output, counted from the first panel
};

// Where hits go: the caller's array, of which `size` places are taken.
template <typename T>
struct Hits {
    Hit<T>* places;
    Index capacity;
    Index size;
};

// The table of one instruction set and number type.  A set may lack the masked kernels.
template <typename T>
struct Kernels {
    // y[output] += w * x[input] for the n connections of a tile.
    void (*forward)(const Packed* packed, const T* weights, Index n, const T* x, T* y, Index lanes,
                    TileKind kind);
    // The same for a layer of few outputs: y holds kNarrowCopies copies of every output's row, side
    // by side, used in turn so that additions to one row do not wait for each other.
    void (*forward_narrow)(const Packed* packed, const T* weights, Index n, const T* x, T* y,
                           Index lanes);
    // For every connection: g = <dy[output], x[input]>, then the rule; and, where dx is given,
    // dx[input] += w * dy[output] with the weight as it was before.
    void (*backward)(Rule rule, const Packed* packed, Values<T> values, Index n, const T* x,
                     const T* dy, T* dx, Index lanes, const Step<T>& step, TileKind kind);
    // Both for wide minibatches, run by run: y is overwritten for the outputs first <= i < last,
    // with the bias added; gradients of the slots, added to what is there if `add`, and dx, where
    // it is given, for the inputs first <= i < last.  Inputs with a 0 in `live`, where it is given,
    // are left out.
    void (*forward_runs)(const Link* links, const Index* starts, Index first, Index last,
                         const T* weights, const T* bias, const T* x, const std::uint8_t* live,
                         T* y, Index lanes);
    void (*backward_runs)(const Link* links, const Index* starts, Index first, Index last,
                          const T* weights, T* gradients, bool add, const T* x, const T* dy, T* dx,
                          Index lanes);
    // Both for a strip of a narrow layer given as masks, and at most eight samples in rows of
    // eight; null where there are none.  sums[output] is overwritten, and so is dx.
    void (*masked_forward)(const Masked& strip, const T* weights, const T* x, Index n_samples,
                           T* sums) = nullptr;
    void (*masked_backward)(Rule rule, const Masked& strip, Values<T> values, const T* x,
                            const T* dy, T* dx, Index n_samples, const Step<T>& step) = nullptr;
    // For one non-zero z of a sparse sample and the n connections of its feature, y and dy pointing
    // to the sample's lane: y[outputs[k]] += w[k] * z, and gradients[k] += dy[outputs[k]] * z.
    void (*forward_non_zero)(const Packed* outputs, const T* weights, Index n, T z, T* y,
                             Index lanes);
    void (*backward_non_zero)(const Packed* outputs, Index n, T z, const T* dy, Index lanes,
                              T* gradients);
    // The rule alone, for given gradients (biases; optimizers driven from Python).
    void (*update)(Rule rule, Values<T> values, const T* gradient, Index n, const Step<T>& step);
    // Every lane of row i becomes values[i].
    void (*fill_rows)(const T* values, Index n_rows, Index lanes, T* rows);
    // sums[i] = sum of row i.
    void (*row_sums)(const T* rows, Index n_rows, Index lanes, T* sums);
    std::span<const ActivationKernel<T>> activations;
    // y[k] *= keep_k / (1 - rate), where keep_k is drawn from (seed, first + k).  What is dropped
    // becomes -0, and no other number does, so that y shows what was dropped; and the errors:
    // d[k] *= keep_k / (1 - rate).
    void (*drop)(T rate, std::uint64_t seed, std::uint64_t first, T* y, Index n);
    void (*drop_errors)(T rate, const T* y, T* d, Index n);
    // d[k] *= factors[k].
    void (*multiply)(const T* factors, T* d, Index n);
    // Weights in bfloat16 become floats, and floats are rounded to bfloat16 with random numbers
    // first .. first + n - 1 of a stream; null for double.
    void (*widen)(const Half* halves, Index n, float* weights) = nullptr;
    void (*round_at_random)(const float* weights, std::uint64_t seed, std::uint64_t first, Index n,
                            Half* halves) = nullptr;
    // Samples (rows of features) become neuron rows: out[j * lanes + b] = z(rows[b][j]) for
    // features first <= j < last; lanes beyond n_rows become 0.
    template <typename X>
    using Load = void (*)(const X* const* rows, Index n_rows, Index first, Index last,
                          const Standardize<T>& how, T* out, Index lanes);
    Load<float> load_f32;
    Load<double> load_f64;
    Load<std::uint8_t> load_u8;
    Load<std::int8_t> load_i8;
    Load<std::uint16_t> load_u16;
    Load<std::int16_t> load_i16;
    // out[k] = the normal deviate number k of the stream, times sigma.
    void (*normal)(std::uint64_t seed, T sigma, T* out, Index first, Index n);
    // Appends every product |<rows[r], output>| >= least of the panels first <= p < last.  Stops
    // before a panel whose hits might not fit; returns the panel to continue with.  A product is
    // summed in the order of its numbers whatever its place in rows and panels.
    Index (*scan)(const T* const* rows, Panels<T> panels, Index first, Index last, T least,
                  Hits<T>& hits);
};

// Both tables of one instruction set.
struct KernelTables {
    Kernels<float> f32;
    Kernels<double> f64;
};

// Copies of the output rows that forward_narrow works with: as many for any number of lanes, or
// else a prediction would depend on what else is in its batch.
constexpr Index kNarrowCopies = 8;

// The kernels in use.  The best set the processor has, or the one named by RATOON_ISA
// (baseline, avx2, avx512); throws std::runtime_error when that one is not available.
template <typename T>
const Kernels<T>& kernels();

std::string isa_in_use();
// Switch for tests; "auto" selects the best again.  Must not be called while kernels run.
void use_isa(const std::string& name);
std::string isas_available();  // names, separated by commas

// Denormal numbers cost up to a hundred times more and are negligible: while one of these exists,
// they count as zero on this thread.
class FlushDenormals {
  public:
    FlushDenormals();
    ~FlushDenormals();
    FlushDenormals(const FlushDenormals&) = delete;

  private:
    unsigned saved_;
};

}  // namespace ratoon
