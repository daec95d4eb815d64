// Losses: the value for one sample, and the error at the network's output.
#pragma once

#include <algorithm>
#include <cmath>

#include "common.hpp"

namespace ratoon {

enum class Loss : int { softmax_cross_entropy = 0, sigmoid_cross_entropy = 1, squared_error = 2 };

namespace loss_detail {

template <typename T>
double softmax_cross_entropy(const T* output, const T* target, Index n, T* error) {
    const double top = double(*std::max_element(output, output + n));
    double total = 0, sum = 0;
    for (Index i = 0; i < n; ++i) total += std::exp(double(output[i]) - top);
    for (Index i = 0; i < n; ++i) {
        const double log_p = double(output[i]) - top - std::log(total);
        sum -= double(target[i]) * log_p;
        error[i] = T(std::exp(log_p) - double(target[i]));
    }
    return sum;
}

template <typename T>
double sigmoid_cross_entropy(const T* output, const T* target, Index n, T* error) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
        const double z = double(output[i]);
        const double e = std::exp(-std::abs(z));  // at most 1: nothing here overflows
        sum += std::max(z, 0.0) - z * double(target[i]) + std::log1p(e);
        error[i] = T((z >= 0 ? 1 / (1 + e) : e / (1 + e)) - double(target[i]));
    }
    return sum;
}

template <typename T>
double squared_error(const T* output, const T* target, Index n, T* error) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
        error[i] = output[i] - target[i];
        sum += 0.5 * double(error[i]) * double(error[i]);
    }
    return sum;
}

}  // namespace loss_detail

// The loss of one sample; `error` becomes its derivative by the n outputs.
template <typename T>
double sample_loss(Loss loss, const T* output, const T* target, Index n, T* error) {
    switch (loss) {
        case Loss::softmax_cross_entropy:
            return loss_detail::softmax_cross_entropy(output, target, n, error);
        case Loss::sigmoid_cross_entropy:
            return loss_detail::sigmoid_cross_entropy(output, target, n, error);
        case Loss::squared_error:
            return loss_detail::squared_error(output, target, n, error);
    }
    return 0;
}

}  // namespace ratoon
