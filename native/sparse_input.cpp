#include "sparse_input.hpp"

#include <algorithm>
#include <bit>

#include "sort.hpp"

namespace ratoon {

// ------------------------------------------------------------------------------ idle steps

template <typename T>
bool Idle::is_linear(Rule rule, std::span<const Step<T>> steps) {
    if (!info_of(rule).is_linear) return false;
    return std::all_of(steps.begin(), steps.end(), [&](const Step<T>& step) {
        // The learning rate matters to an idle connection only through the decay.
        return step.mu == steps[0].mu && step.shrink == steps[0].shrink &&
               step.l2 * step.lr == steps[0].l2 * steps[0].lr;
    });
}

template <typename T>
Idle::Idle(Rule rule, const Step<T>& step, Index n_steps) {
    powers_.reserve(std::size_t(n_steps) + 2);
    const double pull = double(step.lr) * double(step.l2), mu = double(step.mu);
    const double keep = 1 - double(step.shrink);
    Map map{keep - pull, 0, 0, 1};
    if (rule == Rule::momentum) map = {keep - pull, mu, -pull, mu};
    if (rule == Rule::nesterov) map = {keep - pull - mu * pull, mu * mu, -pull, mu};
    powers_.push_back({1, 0, 0, 1});
    powers_.push_back(map);
}

const Idle::Map* Idle::powers(Index k) noexcept {
    const Map m = powers_[1];
    while (Index(powers_.size()) <= k) {
        const Map p = powers_.back();
        powers_.push_back({m.ww * p.ww + m.wv * p.vw, m.ww * p.wv + m.wv * p.vv,
                           m.vw * p.ww + m.vv * p.vw, m.vw * p.wv + m.vv * p.vv});
    }
    return powers_.data();
}

// --------------------------------------------------------------------------- the structure

template <typename T>
template <typename See>
void SparseInput<T>::visit(See see) {
    const Grid& grid = topology_.grid();
    const auto starts = topology_.starts();
    const Packed* packed = topology_.packed().data();
    std::copy(starts_.begin(), starts_.end(), next_.begin());
    // Tiles are visited output by output, so the entries of an input come in the order of outputs.
    for (Index t = 0; t < grid.n_tiles(); ++t) {
        const Index first_in = grid.first_input(t % grid.tiles_in());
        Index* next = next_.data() + first_in;
        const Index first_out = grid.first_output(t / grid.tiles_in());
        for (Index slot = starts[t]; slot < starts[t + 1]; ++slot) {
            const Index input = packed[slot] >> 16;
            see(next[input]++, slot, first_in + input, first_out + Index(packed[slot] & 0xffffu));
        }
    }
}

template <typename T>
SparseInput<T>::SparseInput(const Topology& topology, const Values<T>& values)
    : topology_(topology),
      layer_values_(values),
      starts_(std::size_t(topology.grid().n_in) + 1, 0),
      next_(starts_.size()),
      outputs_(topology.n_connections()),
      weights_(topology.n_connections()) {
    const Grid& grid = topology.grid();
    for (Index t = 0; t < grid.n_tiles(); ++t) {
        Index* counts = starts_.data() + grid.first_input(t % grid.tiles_in()) + 1;
        for (Index slot = topology.starts()[t]; slot < topology.starts()[t + 1]; ++slot) {
            ++counts[topology.packed()[std::size_t(slot)] >> 16];
        }
    }
    Index most = 0;
    for (Index i = 0; i < grid.n_in; ++i) {
        most = std::max(most, starts_[i + 1]);
        starts_[i + 1] += starts_[i];
    }
    gradients_.resize(std::size_t(most));
    tile_.reserve(std::size_t(most));
    visit([&](Index entry, Index slot, Index, Index output) {
        outputs_[entry] = Packed(output);
        weights_[entry] = layer_values_.weights[slot];
    });
    values_.weights = weights_.data();
}

template <typename T>
void SparseInput<T>::begin(Rule rule, std::span<const Step<T>> steps) {
    const Index n = topology_.n_connections();
    const auto taken = [&](const T* from, Buffer<T>& to) -> T* {
        if (from == nullptr) return nullptr;
        to = Buffer<T>(n);
        visit([&](Index entry, Index slot, Index, Index) { to[entry] = from[slot]; });
        return to.data();
    };
    values_.first = taken(layer_values_.first, first_);
    values_.second = taken(layer_values_.second, second_);
    if (!steps.empty() && Idle::is_linear(rule, steps)) {
        idle_.emplace_back(rule, steps[0], Index(steps.size()));
        steps_seen_.assign(starts_.size() - 1, 0);
    } else {
        gradient_ = Buffer<T>(n);
        gradient_.fill_zero();
    }
    training_ = true;
}

template <typename T>
SparseInput<T>::~SparseInput() {
    if (!training_) return;
    const bool with_first = values_.first != nullptr, with_second = values_.second != nullptr;
    const Idle::Map* powers = idle_.empty() ? nullptr : idle_[0].powers(n_steps_);
    visit([&](Index entry, Index slot, Index input, Index) {
        T w = weights_[entry], v = with_first ? first_[entry] : T(0);
        if (powers != nullptr) {
            // Ahead by one, in case a step was interrupted.
            const Index missed = std::max(Index(0), n_steps_ - steps_seen_[std::size_t(input)]);
            Idle::apply(powers[missed], &w, with_first ? &v : nullptr);
        }
        layer_values_.weights[slot] = w;
        if (with_first) layer_values_.first[slot] = v;
        if (with_second) layer_values_.second[slot] = second_[entry];
    });
}

template <typename T>
void SparseInput<T>::catch_up(Index input) {
    const Index missed = n_steps_ - std::exchange(steps_seen_[std::size_t(input)], n_steps_);
    if (missed == 0) return;
    const Idle::Map map = idle_[0].powers(missed)[missed];
    for (Index e = starts_[input]; e < starts_[input + 1]; ++e) {
        Idle::apply(map, values_.weights + e,
                    values_.first == nullptr ? nullptr : values_.first + e);
    }
}

template <typename T>
bool SparseInput<T>::pays(const Samples& samples, Index batch) {
    const auto* csr = std::get_if<CsrRows<T>>(&samples.rows);
    if (csr == nullptr || samples.n_rows == 0) return false;
    const double per_row = double(csr->starts[samples.n_rows]) / double(samples.n_rows);
    // By rows a connection costs at least as much as for eight samples, and beyond that as much for
    // every sample as a fiftieth of them does by non-zeros.
    return per_row * double(batch) <
           0.02 * double(std::max(batch, kLanes)) * double(samples.n_features);
}

// ----------------------------------------------------------------------------- a minibatch

template <typename T>
void SparseInput<T>::load(const Minibatch<T>& batch, Index lanes) {
    lanes_ = lanes;
    row_.resize(std::size_t(lanes));
    drawn_.clear();
    keys_.clear();
    for (Index b = 0; b < batch.size(); ++b) {
        batch.each_non_zero(batch.order[std::size_t(b)], [&](Index input, T z) {
            keys_.push_back(std::uint64_t(input) << 32 | drawn_.size());
            drawn_.push_back({b, z});
        });
    }
    // By feature, so that a sample's sums are made in the same order whatever else is in the batch.
    const auto size = Index(keys_.size());
    scratch_.resize(keys_.size());
    sort_upper_halves(keys_.data(), size, scratch_.data(),
                      std::uint64_t(batch.samples->n_features));
    non_zeros_.resize(drawn_.size());
    active_.clear();
    for (Index k = 0; k < size; ++k) {
        const auto input = Index(keys_[std::size_t(k)] >> 32);
        non_zeros_[std::size_t(k)] = drawn_[keys_[std::size_t(k)] & 0xffffffffu];
        if (active_.empty() || active_.back().input != input) active_.push_back({input, k, k});
        active_.back().last = k + 1;
    }
}

template <typename T>
const T* SparseInput<T>::row_of(const Active& feature) {
    // What a row costs for every sixteen lanes, a non-zero by itself costs too.
    if (feature.last - feature.first <= std::max(Index(1), lanes_ / 16)) return nullptr;
    std::fill(row_.begin(), row_.end(), T(0));
    for (Index k = feature.first; k < feature.last; ++k) {
        row_[std::size_t(non_zeros_[std::size_t(k)].sample)] = non_zeros_[std::size_t(k)].value;
    }
    return row_.data();
}

template <typename T>
template <typename F>
void SparseInput<T>::in_tiles(Index input, F f) {
    const Index last = starts_[input + 1];
    if (topology_.grid().n_out <= kTileSide) {
        return f(outputs_.data() + starts_[input], starts_[input], last - starts_[input], Index(0));
    }
    for (Index entry = starts_[input]; entry < last;) {
        const Index first_output = outputs_[entry] / kTileSide * kTileSide, begin = entry;
        tile_.clear();
        for (; entry < last && outputs_[entry] < first_output + kTileSide; ++entry) {
            tile_.push_back(Packed(outputs_[entry] - first_output));
        }
        f(tile_.data(), begin, entry - begin, first_output);
    }
}

template <typename T>
void SparseInput<T>::forward(const T* bias, T* y) {
    const FlushDenormals flush;
    kernels<T>().fill_rows(bias, topology_.grid().n_out, lanes_, y);
    for (const Active& feature : active_) {
        if (!idle_.empty()) catch_up(feature.input);
        const Index first = starts_[feature.input], n = starts_[feature.input + 1] - first;
        if (const T* row = row_of(feature)) {
            in_tiles(feature.input, [&](const Packed* outputs, Index entry, Index size, Index at) {
                kernels<T>().forward(outputs, values_.weights + entry, size, row, y + at * lanes_,
                                     lanes_, {});
            });
            continue;
        }
        for (Index k = feature.first; k < feature.last; ++k) {
            const NonZero& one = non_zeros_[std::size_t(k)];
            kernels<T>().forward_non_zero(outputs_.data() + first, values_.weights + first, n,
                                          one.value, y + one.sample, lanes_);
        }
    }
}

template <typename T>
void SparseInput<T>::backward(Rule rule, const Step<T>& step, const T* dy) {
    const bool all = idle_.empty();
    const FlushDenormals flush;
    for (const Active& feature : active_) {
        const Index first = starts_[feature.input], n = starts_[feature.input + 1] - first;
        if (const T* row = row_of(feature)) {
            in_tiles(feature.input, [&](const Packed* outputs, Index entry, Index size, Index at) {
                const Values<T> values =
                    all ? Values<T>{nullptr, gradient_.data() + entry} : values_.at(entry);
                kernels<T>().backward(all ? Rule::store : rule, outputs, values, size, row,
                                      dy + at * lanes_, nullptr, lanes_, step, {});
            });
        } else {
            T* gradients = all ? gradient_.data() + first : gradients_.data();
            std::fill_n(gradients, n, T(0));
            for (Index k = feature.first; k < feature.last; ++k) {
                const NonZero& one = non_zeros_[std::size_t(k)];
                kernels<T>().backward_non_zero(outputs_.data() + first, n, one.value,
                                               dy + one.sample, lanes_, gradients);
            }
            if (!all) kernels<T>().update(rule, values_.at(first), gradients, n, step);
        }
        if (!all) steps_seen_[std::size_t(feature.input)] = n_steps_ + 1;
    }
    ++n_steps_;
    if (!all) return;
    kernels<T>().update(rule, values_, gradient_.data(), topology_.n_connections(), step);
    for (const Active& feature : active_) {
        const Index first = starts_[feature.input], n = starts_[feature.input + 1] - first;
        std::fill_n(gradient_.data() + first, n, T(0));
    }
}

template class SparseInput<float>;
template class SparseInput<double>;

}  // namespace ratoon
