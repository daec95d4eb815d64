// Predictions of many samples: each thread takes blocks of samples through all layers by itself.
//
// Threads never wait for each other, and rows of two layers are all that a thread works with, so
// they stay in its cache.  Deep networks are passed in stages.  In between, samples whose
// activations are all zero are set aside: they have the same outputs, whichever they are, so one of
// them is enough.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>

#include "network.hpp"
#include "sparse_input.hpp"

namespace ratoon {
namespace {

constexpr Index kFewestRows = 33;                // fewer are shared by layers, not by samples
constexpr Index kMostBytes = Index(256) << 20;   // of the rows of all threads
constexpr Index kStageBytes = Index(128) << 20;  // of activations between stages
// Looking for samples of zeros is cheap but not free, so shallow networks are one stage.
constexpr std::size_t kFirstStage = 4, kFewestLayers = 8;

}  // namespace

// What a thread needs for a block.
template <typename T>
struct Network<T>::Workspace {
    Buffer<T> rows[2], scratch;
    std::vector<Index> order;
};

// Workspaces of threads: each takes one for a block and gives it back.
template <typename T>
class Network<T>::Workspaces {
  public:
    Workspaces(Index widest, Index lanes) : size_(widest * lanes) {}

    std::unique_ptr<Workspace> take() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!free_.empty()) {
                auto one = std::move(free_.back());
                free_.pop_back();
                return one;
            }
        }
        auto one = std::make_unique<Workspace>();
        for (Buffer<T>& rows : one->rows) rows = Buffer<T>(size_, Use::recurring);
        return one;
    }
    void give_back(std::unique_ptr<Workspace> one) {
        const std::lock_guard<std::mutex> lock(mutex_);
        free_.push_back(std::move(one));
    }

  private:
    Index size_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> free_;
};

template <typename T>
bool Network<T>::suits_bulk(const Samples& samples) const {
    Index widest = n_in();
    for (const Layer<T>& layer : layers_) widest = std::max(widest, layer.topology->grid().n_out);
    const Index bytes = 2 * widest * block_lanes_ * Index(sizeof(T)) * most_threads_;
    return !samples.is_sparse() && samples.n_rows >= kFewestRows && bytes <= kMostBytes;
}

template <typename T>
void Network<T>::pass_block(const Minibatch<T>& block, std::size_t from, std::size_t to,
                            Workspace& space, T* out) const {
    const Index lanes = padded_to_lanes(block.size());
    const SideTasks load = loading(block, space.rows[0].data(), lanes);
    for (Index t = 0; t < load.n; ++t) load.task(t);
    T *x = space.rows[0].data(), *y = space.rows[1].data();
    for (std::size_t l = from; l < to; ++l) {
        const Layer<T>& layer = layers_[l];
        const auto finish = [&](Index first, Index last) {
            activation_of(layer).activate(layer.slope, y + first * lanes, (last - first) * lanes);
        };
        linear_forward<T>(*layer.topology, layer.values, layer.bias.weights, x, y, lanes,
                          space.scratch, 1, finish);
        std::swap(x, y);
    }
    const Index width = layers_[to - 1].topology->grid().n_out;
    constexpr Index kTogether = 16;  // neurons, so that lines of `out` are written as a whole
    for (Index first = 0; first < width; first += kTogether) {
        const Index last = std::min(width, first + kTogether);
        for (Index b = 0; b < block.size(); ++b) {
            for (Index i = first; i < last; ++i) out[b * width + i] = x[i * lanes + b];
        }
    }
}

// Takes all samples through the layers from .. to - 1; false if interrupted.
template <typename T>
bool Network<T>::pass_in_blocks(const Samples& samples, const Standardize<T>& how, std::size_t from,
                                std::size_t to, T* out, const Interrupted& interrupted) {
    const Index n = samples.n_rows, width = layers_[to - 1].topology->grid().n_out;
    Index widest = samples.n_features, connections = 0;
    for (std::size_t l = from; l < to; ++l) {
        widest = std::max(widest, layers_[l].topology->grid().n_out);
        connections += layers_[l].topology->n_connections();
    }
    // Every thread gets a block, but for blocks that would be too narrow.
    const Index share = padded_to_lanes(divided_up(n, Index(most_threads_)));
    const Index lanes = std::min(block_lanes_, std::max(Index(32), share));
    const Index n_blocks = divided_up(n, lanes);
    Workspaces workspaces(widest, lanes);
    const auto one = [&](Index number) {
        auto space = workspaces.take();
        const Index at = number * lanes;
        space->order.resize(std::size_t(std::min(lanes, n - at)));
        std::iota(space->order.begin(), space->order.end(), at);
        const Minibatch<T> block{&samples, how, {}, space->order};
        pass_block(block, from, to, *space, out + at * width);
        workspaces.give_back(std::move(space));
    };
    // In waves, so that it can be interrupted; longer ones where a wave is short.
    Index wave = most_threads_;
    for (Index done = 0; done < n_blocks;) {
        const auto started = std::chrono::steady_clock::now();
        const Index size = std::min(wave, n_blocks - done);
        run_tasks(size, size * connections * lanes / kLanes, most_threads_,
                  [&](Index i) { one(done + i); });
        done += size;
        if (std::chrono::steady_clock::now() - started > std::chrono::milliseconds(20)) {
            if (interrupted && interrupted(std::min(n, done * lanes))) return false;
        } else {
            wave *= 2;
        }
    }
    return true;
}

template <typename T>
void Network<T>::predict_in_bulk(const Samples& samples, const Standardize<T>& how,
                                 std::size_t n_layers, T* out, const Interrupted& interrupted) {
    forget_call();
    const Leaving leaving{*this};
    if (n_layers < kFewestLayers) {
        pass_in_blocks(samples, how, 0, n_layers, out, interrupted);
        return;
    }
    Index widest = 1;
    for (const Layer<T>& layer : layers_) widest = std::max(widest, layer.topology->grid().n_out);
    const Index width = layers_[n_layers - 1].topology->grid().n_out;
    const Index at_once = std::max(4 * block_lanes_, kStageBytes / (widest * Index(sizeof(T))));
    for (Index at = 0; at < samples.n_rows; at += at_once) {
        const Index n = std::min(at_once, samples.n_rows - at);
        const Samples part = samples.part(at, n);
        std::vector<Index> place(static_cast<std::size_t>(n));  // of a sample among those left
        std::iota(place.begin(), place.end(), Index(0));
        Buffer<T> left;  // activations of the samples that are left
        Index n_left = n;
        for (std::size_t from = 0, to = kFirstStage; from < n_layers; from = to, to = 2 * to) {
            to = std::min(to, n_layers);
            const Index n_out = layers_[to - 1].topology->grid().n_out;
            Buffer<T> next(n_left * n_out, Use::recurring);
            const Index n_in = from == 0 ? 0 : layers_[from].topology->grid().n_in;
            const Samples between{n_left, n_in, DenseRows<T>{left.data(), n_in}, {}};
            if (!pass_in_blocks(from == 0 ? part : between, from == 0 ? how : Standardize<T>{},
                                from, to, next.data(), interrupted)) {
                return;
            }
            // Rows move up; those of zeros share the place of the first of them.
            std::vector<Index> moved(static_cast<std::size_t>(n_left));
            Index kept = 0, zeros = -1;
            for (Index i = 0; i < n_left; ++i) {
                const T* row = next.data() + i * n_out;
                const bool is_zero = std::all_of(row, row + n_out, [](T a) { return a == T(0); });
                if (is_zero && zeros >= 0) {
                    moved[std::size_t(i)] = zeros;
                    continue;
                }
                if (is_zero) zeros = kept;
                if (kept < i) std::copy_n(row, n_out, next.data() + kept * n_out);
                moved[std::size_t(i)] = kept++;
            }
            for (Index& i : place) i = moved[std::size_t(i)];
            n_left = kept;
            left = std::move(next);
        }
        for (Index i = 0; i < n; ++i) {
            std::copy_n(left.data() + place[std::size_t(i)] * width, width, out + (at + i) * width);
        }
    }
}

#define RATOON_INSTANTIATE(T)                                                                     \
    template bool Network<T>::suits_bulk(const Samples&) const;                                   \
    template void Network<T>::predict_in_bulk(const Samples&, const Standardize<T>&, std::size_t, \
                                              T*, const Interrupted&);
RATOON_INSTANTIATE(float)
RATOON_INSTANTIATE(double)

}  // namespace ratoon
