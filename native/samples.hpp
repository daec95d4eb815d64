// Samples in the caller's arrays, and a minibatch: which samples, how they are read, and their
// targets.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <variant>

#include "augment.hpp"
#include "kernels.hpp"

namespace ratoon {

// Rows of features, each contiguous.
template <typename X>
struct DenseRows {
    const X* data = nullptr;
    Index stride = 0;  // numbers from the beginning of one row to that of the next
};

// Rows of a CSR matrix.
template <typename T>
struct CsrRows {
    const Index* starts = nullptr;
    const std::int32_t* columns = nullptr;
    const T* values = nullptr;
};

// Dense samples may have any of these number types, sparse samples have that of the network.
struct Samples {
    Index n_rows = 0, n_features = 0;
    std::variant<DenseRows<float>, DenseRows<double>, DenseRows<std::uint8_t>,
                 DenseRows<std::int8_t>, DenseRows<std::uint16_t>, DenseRows<std::int16_t>,
                 CsrRows<float>, CsrRows<double>>
        rows;
    Augment augment;  // of dense samples

    bool is_sparse() const {
        return std::holds_alternative<CsrRows<float>>(rows) ||
               std::holds_alternative<CsrRows<double>>(rows);
    }
    // Rows first .. first + n of dense samples.
    Samples part(Index first, Index n) const {
        Samples some = *this;
        some.n_rows = n;
        std::visit(
            [&](auto& dense) {
                if constexpr (requires { dense.stride; }) dense.data += first * dense.stride;
            },
            some.rows);
        return some;
    }
    template <typename T>
    bool suit() const {
        return !is_sparse() || std::holds_alternative<CsrRows<T>>(rows);
    }
};

template <typename T>
struct Targets {
    const T* values = nullptr;   // (n_rows, n_out)
    const T* weights = nullptr;  // (n_rows,) or null: every sample counts 1
    const T* offset = nullptr;   // (n_rows, n_out) or null: added to the network's output
};

// The rows of `samples` named by `order`.  Indices in `order` have been checked.
template <typename T>
struct Minibatch {
    const Samples* samples = nullptr;
    Standardize<T> how;
    Targets<T> targets;
    std::span<const Index> order;
    // The random numbers of dropout.
    std::uint64_t dropout_seed = 0;
    Index step = 0;

    Index size() const { return Index(order.size()); }
    // At most n samples, from number `first` on.
    Minibatch part(Index first, Index n) const {
        Minibatch some = *this;
        const auto begin = std::size_t(std::min(first, size()));
        some.order = order.subspan(begin, std::min(std::size_t(n), order.size() - begin));
        return some;
    }
    // The weights of the samples, added up.
    double weight() const {
        if (targets.weights == nullptr) return double(size());
        double sum = 0;
        for (const Index row : order) sum += double(targets.weights[row]);
        return sum;
    }
    // Calls f(feature, value) for every stored entry of a sparse row, scaled and clipped.
    template <typename F>
    void each_non_zero(Index row, F f) const {
        const auto& csr = std::get<CsrRows<T>>(samples->rows);
        for (Index k = csr.starts[row]; k < csr.starts[row + 1]; ++k) {
            // Checked again: the caller may have changed the array in the meantime.
            const Index feature = csr.columns[k];
            if (feature < 0 || feature >= samples->n_features) {
                throw std::invalid_argument("the sparse samples were changed while in use");
            }
            T z = csr.values[k];
            if (how.scale != nullptr) z *= how.scale[feature];
            if (how.clip > 0) z = std::min(std::max(z, -how.clip), how.clip);
            f(feature, z);
        }
    }
};

}  // namespace ratoon
