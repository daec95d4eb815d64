// A sparse linear layer on the threads of the pool: forward, and backward with update.
#pragma once

#include <functional>

#include "kernels.hpp"
#include "topology.hpp"

namespace ratoon {

// Called with the finished rows [first, last), by the thread that computed them.
using Finish = std::function<void(Index first, Index last)>;

// Other work that threads may do in the same pass, instead of waiting for each other: task(0) to
// task(n - 1), in any order.
struct SideTasks {
    Index n = 0;
    std::function<void(Index)> task;
};

// y = W x + b; x is (n_in, lanes), y is (n_out, lanes).  Of the values only the weights are used.
// `scratch` is kept by the caller between calls; narrow layers need it.
template <typename T>
void linear_forward(const Topology& topology, const Values<T>& values, const T* bias, const T* x,
                    T* y, Index lanes, Buffer<T>& scratch, int n_threads, const Finish& finish);

// The rule for every connection, and dx = W^T dy where dx is given (with the weights before).
// `side` is for layers without dx.
template <typename T>
void linear_backward(const Topology& topology, Rule rule, Values<T> values, const Step<T>& step,
                     const T* x, const T* dy, T* dx, Index lanes, int n_threads,
                     const Finish& finish, const SideTasks& side = {});

// y = bias + the sums of all strips of inputs of a narrow layer, in their order; each strip has
// `copies` rows of sums per output.
template <typename T>
void add_strips(const Grid& grid, const T* bias, const T* sums, Index copies, Index lanes, T* y);

// Tasks with denormals flushed; on one thread if there is too little work to share.
void run_tasks(Index n_tasks, Index work, int n_threads, const std::function<void(Index)>& task);

}  // namespace ratoon
