#include "sparse_input.hpp"

#include <algorithm>

namespace ratoon {

// ------------------------------------------------------------------------------ idle steps

template <typename T>
bool Idle::is_linear(Rule rule, const Step<T>* steps, Index n_steps) {
    if (rule == Rule::adam) return false;  // divides by a root
    return std::all_of(steps, steps + n_steps, [&](const Step<T>& step) {
        // The learning rate matters to an idle connection only through the decay.
        return step.mu == steps[0].mu && step.shrink == steps[0].shrink &&
               step.l2 * step.lr == steps[0].l2 * steps[0].lr;
    });
}

template <typename T>
Idle::Idle(Rule rule, const Step<T>& step) {
    const double pull = double(step.lr) * double(step.l2), mu = double(step.mu);
    const double keep = 1 - double(step.shrink);
    Map map{keep - pull, 0, 0, 1};
    if (rule == Rule::momentum) map = {keep - pull, mu, -pull, mu};
    if (rule == Rule::nesterov) map = {keep - pull - mu * pull, mu * mu, -pull, mu};
    powers_ = {{1, 0, 0, 1}, map};
}

const Idle::Map& Idle::power(Index k) {
    const Map m = powers_[1];
    while (Index(powers_.size()) <= k) {
        const Map p = powers_.back();
        powers_.push_back({m.ww * p.ww + m.wv * p.vw, m.ww * p.wv + m.wv * p.vv,
                           m.vw * p.ww + m.vv * p.vw, m.vw * p.wv + m.vv * p.vv});
    }
    return powers_[std::size_t(k)];
}

// --------------------------------------------------------------------------- the structure

template <typename T>
SparseInput<T>::SparseInput(const Topology& topology)
    : n_in_(topology.grid().n_in),
      n_out_(topology.grid().n_out),
      n_connections_(topology.n_connections()),
      starts_(std::size_t(n_in_) + 1, 0),
      slots_(n_connections_),
      outputs_(n_connections_),
      place_(std::size_t(n_in_), -1) {
    const Grid& grid = topology.grid();
    const auto starts = topology.starts();
    const Packed* packed = topology.packed().data();
    // Tiles are visited output by output, so the entries of an input come in the order of outputs.
    const auto visit = [&](auto&& see) {
        for (Index t = 0; t < grid.n_tiles(); ++t) {
            const Index first_in = grid.first_input(t % grid.tiles_in());
            const Index first_out = grid.first_output(t / grid.tiles_in());
            for (Index slot = starts[t]; slot < starts[t + 1]; ++slot) {
                see(first_in + (packed[slot] >> 16), first_out + (packed[slot] & 0xffffu), slot);
            }
        }
    };
    visit([&](Index input, Index, Index) { ++starts_[input + 1]; });
    for (Index i = 0; i < n_in_; ++i) starts_[i + 1] += starts_[i];
    std::vector<Index> next(starts_.begin(), starts_.end() - 1);
    visit([&](Index input, Index output, Index slot) {
        slots_[next[input]] = slot;
        outputs_[next[input]++] = std::int32_t(output);
    });
}

template <typename T>
bool SparseInput<T>::pays(const Samples& samples, Index batch) {
    if (samples.row_starts == nullptr || samples.n_rows == 0) return false;
    const double per_row = double(samples.row_starts[samples.n_rows]) / double(samples.n_rows);
    return per_row * double(batch) < 0.25 * double(samples.n_features);
}

// ----------------------------------------------------------------------------- a minibatch

template <typename T>
void SparseInput<T>::load(const Samples& samples, const Standardize<T>& how, const Index* order,
                          Index n, Index lanes) {
    lanes_ = lanes;
    for (Index input : active_) place_[input] = -1;
    active_.clear();
    for (Index b = 0; b < n; ++b) {
        for (Index k = samples.row_starts[order[b]]; k < samples.row_starts[order[b] + 1]; ++k) {
            const Index input = samples.column(k);
            if (place_[input] < 0) {
                place_[input] = 0;
                active_.push_back(input);
            }
        }
    }
    // Ascending, so that a sample's sums are made in the same order whatever else is in the batch.
    std::sort(active_.begin(), active_.end());
    for (std::size_t a = 0; a < active_.size(); ++a) place_[active_[a]] = Index(a);

    rows_.assign(active_.size() * std::size_t(lanes), T(0));
    const T* values = static_cast<const T*>(samples.csr_values);
    for (Index b = 0; b < n; ++b) {
        for (Index k = samples.row_starts[order[b]]; k < samples.row_starts[order[b] + 1]; ++k) {
            const Index input = samples.column(k);
            T z = values[k];
            if (how.scale != nullptr) z *= how.scale[input];
            if (how.clip > 0) z = std::min(std::max(z, -how.clip), how.clip);
            if (place_[input] < 0) Samples::refuse_changed();
            rows_[std::size_t(place_[input] * lanes + b)] = z;
        }
    }

    pieces_.clear();
    packed_.clear();
    from_.clear();
    const auto n_active = Index(active_.size());
    for (Index first = 0; first < n_active; first += kTileSide) {
        const Index last = std::min(n_active, first + kTileSide);
        for (Index first_out = 0; first_out < n_out_; first_out += kTileSide) {
            const auto begin = Index(packed_.size());
            for (Index a = first; a < last; ++a) {
                for (Index e = starts_[active_[a]]; e < starts_[active_[a] + 1]; ++e) {
                    const Index output = outputs_[e] - first_out;
                    if (output < 0 || output >= kTileSide) continue;
                    packed_.push_back(Packed((a - first) << 16 | output));
                    from_.push_back(slots_[e]);
                }
            }
            pieces_.push_back({first, first_out, begin, Index(packed_.size())});
        }
    }
}

template <typename T>
void SparseInput<T>::begin(Rule rule, const Step<T>* steps, Index n_steps,
                           const Values<T>& values) {
    idle_.clear();
    has_first_ = values.first != nullptr;
    if (Idle::is_linear(rule, steps, n_steps)) {
        idle_.emplace_back(rule, steps[0]);
        settled_.assign(std::size_t(n_in_), 0);
    } else {
        gradient_ = Buffer<T>(n_connections_);
        gradient_.fill_zero();
    }
}

template <typename T>
void SparseInput<T>::catch_up(const Values<T>& values, Index input, Index now) {
    const Index missed = now - std::exchange(settled_[input], now);
    if (missed == 0) return;
    const Idle::Map map = idle_[0].power(missed);
    for (Index e = starts_[input]; e < starts_[input + 1]; ++e) {
        T& w = values.weights[slots_[e]];
        if (!has_first_) {
            w = T(map.ww * double(w));
            continue;
        }
        T& v = values.first[slots_[e]];
        const double before = double(w), speed = double(v);
        w = T(map.ww * before + map.wv * speed);
        v = T(map.vw * before + map.vv * speed);
    }
}

template <typename T>
void SparseInput<T>::forward(const Values<T>& values, const T* bias, T* y, Index now,
                             bool training) {
    if (training && !idle_.empty()) {
        for (Index input : active_) catch_up(values, input, now);
    }
    weights_.resize(from_.size());
    for (std::size_t k = 0; k < from_.size(); ++k) weights_[k] = values.weights[from_[k]];
    for (Index i = 0; i < n_out_; ++i) std::fill_n(y + i * lanes_, lanes_, bias[i]);
    const FlushDenormals flush;
    for (const Piece& piece : pieces_) {
        kernels<T>().forward(packed_.data() + piece.first, weights_.data() + piece.first,
                             piece.last - piece.first, rows_.data() + piece.first_active * lanes_,
                             y + piece.first_output * lanes_, lanes_, {});
    }
}

template <typename T>
void SparseInput<T>::backward(Rule rule, const Values<T>& values, const Step<T>& step, const T* dy,
                              Index now) {
    const bool all = idle_.empty();
    const bool with_first = all || values.first != nullptr;
    first_.resize(with_first ? from_.size() : 0);
    for (std::size_t k = 0; !all && k < first_.size(); ++k) first_[k] = values.first[from_[k]];
    {
        const FlushDenormals flush;
        for (const Piece& piece : pieces_) {
            const Values<T> gathered{weights_.data() + piece.first,
                                     with_first ? first_.data() + piece.first : nullptr, nullptr};
            kernels<T>().backward(all ? Rule::store : rule, packed_.data() + piece.first, gathered,
                                  piece.last - piece.first,
                                  rows_.data() + piece.first_active * lanes_,
                                  dy + piece.first_output * lanes_, nullptr, lanes_, step, {});
        }
    }
    if (all) {
        for (std::size_t k = 0; k < from_.size(); ++k) gradient_[from_[k]] = first_[k];
        update_all(rule, values, step);
        for (Index slot : from_) gradient_[slot] = 0;
        return;
    }
    for (std::size_t k = 0; k < from_.size(); ++k) values.weights[from_[k]] = weights_[k];
    for (std::size_t k = 0; k < first_.size(); ++k) values.first[from_[k]] = first_[k];
    for (Index input : active_) settled_[input] = now + 1;
}

template <typename T>
void SparseInput<T>::update_all(Rule rule, const Values<T>& values, const Step<T>& step) {
    const FlushDenormals flush;
    kernels<T>().update(rule, values, gradient_.data(), n_connections_, step);
}

template <typename T>
void SparseInput<T>::settle(const Values<T>& values, Index now) {
    if (idle_.empty()) return;
    for (Index input = 0; input < n_in_; ++input) catch_up(values, input, now);
}

template class SparseInput<float>;
template class SparseInput<double>;

}  // namespace ratoon
