// Losses: the value for one sample, and its derivative by the network's outputs.
//
// To add one, write a function like these and name it in `kLosses` at the end of the file.
#pragma once

#include <algorithm>
#include <cmath>

#include "common.hpp"

namespace ratoon {

template <typename T>
double softmax_cross_entropy(const T* output, const T* target, Index n, T* error) {
    const double top = double(*std::max_element(output, output + n));
    // In double precision: rounded exponentials would leave nothing of an error close to 0.
    constexpr Index kKept = 512;
    double kept[kKept];
    double total = 0, sum = 0;
    for (Index i = 0; i < n; ++i) {
        const double e = std::exp(double(output[i]) - top);
        total += e;
        if (i < kKept) kept[i] = e;
    }
    const double log_total = std::log(total);
    for (Index i = 0; i < n; ++i) {
        const double log_p = double(output[i]) - top - log_total;
        sum -= double(target[i]) * log_p;
        error[i] = T((i < kKept ? kept[i] / total : std::exp(log_p)) - double(target[i]));
    }
    return sum;
}

template <typename T>
double sigmoid_cross_entropy(const T* output, const T* target, Index n, T* error) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
        const double z = double(output[i]);
        const double e = std::exp(-std::abs(z));  // at most 1, so no overflow
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

// Half the square of an error up to 1, and linear with slope 1 beyond.
template <typename T>
double huber(const T* output, const T* target, Index n, T* error) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
        const double e = double(output[i]) - double(target[i]), size = std::abs(e);
        sum += size <= 1 ? 0.5 * e * e : size - 0.5;
        error[i] = T(size <= 1 ? e : std::copysign(1.0, e));
    }
    return sum;
}

// The targets are the derivatives themselves, of a loss that is computed elsewhere from several
// samples at once; the value is their product with the outputs.
template <typename T>
double given_gradient(const T* output, const T* target, Index n, T* error) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
        error[i] = target[i];
        sum += double(output[i]) * double(target[i]);
    }
    return sum;
}

template <typename T>
struct Loss {
    const char* name;
    // The loss of one sample; `error` becomes its derivative by the n outputs.
    double (*of_sample)(const T* output, const T* target, Index n, T* error);
};

// The place in this table is the loss's number.
template <typename T>
constexpr Loss<T> kLosses[] = {
    {.name = "softmax_cross_entropy", .of_sample = softmax_cross_entropy<T>},
    {.name = "sigmoid_cross_entropy", .of_sample = sigmoid_cross_entropy<T>},
    {.name = "squared_error", .of_sample = squared_error<T>},
    {.name = "huber", .of_sample = huber<T>},
    {.name = "given_gradient", .of_sample = given_gradient<T>},
};
template <typename T>
constexpr int kNumberOfLosses = int(sizeof(kLosses<T>) / sizeof(kLosses<T>[0]));

}  // namespace ratoon
