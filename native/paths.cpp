// The search for absent connections with the best path scores.
//
// One input at a time: the scores of its positions are added up in an array of outputs, and of them
// only candidates for the result are kept.  Each input is one thread's work and sums are made in
// the order of neurons, so results do not depend on tiling or on the number of threads.
#include "paths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "absent.hpp"
#include "candidates.hpp"
#include "linear.hpp"
#include "random.hpp"
#include "stop_watch.hpp"

namespace ratoon {
namespace {

using Neuron = std::uint32_t;

// The neighbours of every neuron of one side, ascending.
class Neighbours {
  public:
    // From pairs sorted by (to, from), or by (from, to).
    Neighbours(Index n, std::span<const Neuron> from, std::span<const Neuron> to)
        : starts_(std::size_t(n) + 1, 0), neurons_(Index(to.size())) {
        for (Neuron neuron : from) ++starts_[std::size_t(neuron) + 1];
        for (std::size_t k = 1; k < starts_.size(); ++k) starts_[k] += starts_[k - 1];
        std::vector<Index> next(starts_.begin(), starts_.end() - 1);
        for (std::size_t k = 0; k < to.size(); ++k) neurons_[next[from[k]]++] = to[k];
    }
    std::span<const Neuron> operator[](Index neuron) const {
        const Index first = starts_[std::size_t(neuron)];
        return {neurons_.data() + first, std::size_t(starts_[std::size_t(neuron) + 1] - first)};
    }
    Index degree(Index neuron) const {
        return starts_[std::size_t(neuron) + 1] - starts_[std::size_t(neuron)];
    }
    Index size() const { return Index(starts_.size()) - 1; }
    Index largest_degree() const {
        Index largest = 0;
        for (Index neuron = 0; neuron < size(); ++neuron) {
            largest = std::max(largest, degree(neuron));
        }
        return largest;
    }
    // The pairs (neuron, neighbour), sorted.
    std::vector<Neuron> owners() const {
        std::vector<Neuron> owners;
        owners.reserve(std::size_t(neurons_.size()));
        for (Index neuron = 0; neuron < size(); ++neuron) {
            owners.insert(owners.end(), std::size_t(degree(neuron)), Neuron(neuron));
        }
        return owners;
    }
    std::span<const Neuron> neurons() const {
        return {neurons_.data(), std::size_t(neurons_.size())};
    }

  private:
    std::vector<Index> starts_;
    Buffer<Neuron> neurons_;
};

// Both sides of a layer.
struct Sides {
    Neighbours of_inputs, of_outputs;
};

// The neighbours of inputs, from the given slots, or from all.
Neighbours of_inputs(const Topology& topology, const std::span<const Index>* slots) {
    const Grid& grid = topology.grid();
    const auto starts = topology.starts();
    const std::size_t n = slots ? slots->size() : std::size_t(topology.n_connections());
    std::vector<Neuron> inputs(n), outputs(n);
    Index t = 0;
    for (std::size_t k = 0; k < n; ++k) {
        const Index slot = slots ? (*slots)[k] : Index(k);
        while (starts[t + 1] <= slot) ++t;
        const Packed packed = topology.packed()[std::size_t(slot)];
        inputs[k] = Neuron(grid.first_input(t % grid.tiles_in()) + (packed >> 16));
        outputs[k] = Neuron(grid.first_output(t / grid.tiles_in()) + (packed & 0xffffu));
    }
    const Neighbours unsorted(grid.n_out, outputs, inputs);
    const std::vector<Neuron> owners = unsorted.owners();
    return {grid.n_in, unsorted.neurons(), owners};
}

Sides sides_of(const Topology& topology, std::span<const Index> kept) {
    Neighbours inputs = of_inputs(topology, &kept);
    const std::vector<Neuron> owners = inputs.owners();
    Neighbours outputs(topology.grid().n_out, inputs.neurons(), owners);
    return {std::move(inputs), std::move(outputs)};
}

// The arrays one thread works in; zero between inputs.
struct Workspace {
    // The paths that reach a neuron from one other: their number and summed weight.
    struct Reached {
        double weight;
        std::int64_t n_paths;
    };
    explicit Workspace(const Grid& grid)
        : common(std::size_t(grid.n_in)),
          weights(std::size_t(grid.n_in)),
          reached(std::size_t(grid.n_out)),
          scores(std::size_t(grid.n_out)),
          inputs(std::size_t(grid.n_in) + 1),
          outputs(std::size_t(grid.n_out) + 1),
          scored(std::size_t(grid.n_out) + 1) {}

    std::vector<std::int32_t> common;  // neighbours in common with the input
    std::vector<double> weights;       // of inputs inside of paths
    std::vector<Reached> reached;
    std::vector<double> scores;
    std::vector<Neuron> inputs, outputs, scored;  // where the arrays are not zero
    std::vector<Candidate<double>> candidates;
    Index work = 0;
};

class PathScores {
  public:
    PathScores(const Topology& topology, std::span<const Index> kept, const PathSearch& search,
               StopWatch& watch)
        : grid_(topology.grid()),
          sides_(sides_of(topology, kept)),
          search_(search),
          watch_(watch),
          pool_(std::min(search.count, n_empty(topology, kept))) {
        if (search.allowed != nullptr) allowed_.emplace(of_inputs(*search.allowed, nullptr));
        const Index most =
            std::max(sides_.of_inputs.largest_degree(), sides_.of_outputs.largest_degree());
        for (Index k = 0; k <= most; ++k) {
            roots_.push_back(k == 0 ? 0.0 : 1.0 / std::sqrt(double(k)));
        }
    }

    void run(int n_threads) {
        const Index n_tasks = std::min<Index>(grid_.n_in, 256);
        run_tasks(n_tasks, n_paths(), n_threads, [&](Index task) {
            std::unique_ptr<Workspace> workspace = take_workspace();
            const Index last = grid_.n_in * (task + 1) / n_tasks;
            for (Index i = grid_.n_in * task / n_tasks; i < last; ++i) {
                if (watch_.has_stopped()) return;
                add_input(i, *workspace);
            }
            Candidate<double> worst;
            pool_.add(workspace->candidates, worst);
            const std::lock_guard<std::mutex> lock(mutex_);
            workspaces_.push_back(std::move(workspace));
        });
    }
    std::vector<Candidate<double>>& best() { return pool_.best(); }

  private:
    static constexpr Index kBetweenChecks = 1 << 16;

    static Index n_empty(const Topology& topology, std::span<const Index> kept) {
        return topology.grid().n_in * topology.grid().n_out - Index(kept.size());
    }

    // Saturates: it only decides whether threads are worth it.
    Index n_paths() const {
        double n = 0;
        for (Index b = 0; b < grid_.n_out; ++b) {
            double ends = 0;
            for (Neuron a : sides_.of_outputs[b]) ends += double(sides_.of_inputs.degree(a));
            n += ends * double(sides_.of_outputs.degree(b));
        }
        return n < 1e15 ? Index(n) : Index(1e15);
    }

    std::unique_ptr<Workspace> take_workspace() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!workspaces_.empty()) {
                auto workspace = std::move(workspaces_.back());
                workspaces_.pop_back();
                return workspace;
            }
        }
        return std::make_unique<Workspace>(grid_);
    }

    // Adds the positions of one input to the candidates.
    void add_input(Index i, Workspace& w) {
        const auto neighbours = sides_.of_inputs[i];
        if (neighbours.empty()) return;
        // A sum that starts at -infinity stays there: these are connections already.
        for (Neuron b : neighbours) w.scores[b] = -std::numeric_limits<double>::infinity();
        std::size_t n_inputs = count_common(i, w);
        std::size_t n_scored = 0;
        if (search_.score == PathScore::ch2_l3n) n_scored = score_inputs(n_inputs, w);
        bool stopped = false;
        for (Neuron b : neighbours) {
            stopped = stopped || is_stopped(w);
            if (!stopped) n_scored = score_output(i, b, n_scored, w);
        }
        if (!stopped) add_candidates(i, n_scored, w);
        for (std::size_t k = 0; k < n_scored; ++k) w.scores[w.scored[k]] = 0;
        for (Neuron b : neighbours) w.scores[b] = 0;
        while (n_inputs > 0) w.common[w.inputs[--n_inputs]] = 0;
    }

    // How many neighbours every other input has in common with input i, and what it weighs.
    std::size_t count_common(Index i, Workspace& w) const {
        std::size_t n = 0;
        for (Neuron b : sides_.of_inputs[i]) {
            for (Neuron a : sides_.of_outputs[b]) {
                if (a == Neuron(i)) continue;
                w.inputs[n] = a;
                n += w.common[a] == 0;
                ++w.common[a];
            }
        }
        for (std::size_t k = 0; k < n; ++k) {
            const Neuron a = w.inputs[k];
            w.weights[a] = roots_[std::size_t(sides_.of_inputs.degree(a) - w.common[a])];
        }
        return n;
    }

    // CH2-L3n, the intermediate inputs.
    std::size_t score_inputs(std::size_t n_inputs, Workspace& w) const {
        std::size_t n_scored = 0;
        for (std::size_t k = 0; k < n_inputs; ++k) {
            const Neuron a = w.inputs[k];
            const Index outside = sides_.of_inputs.degree(a) - w.common[a];
            if (outside == 0) continue;  // all its neighbours are neighbours of input i
            const double weight = double(w.common[a] + 1) / double(outside);
            for (Neuron j : sides_.of_inputs[a]) {
                w.scored[n_scored] = j;
                n_scored += w.scores[j] == 0;
                w.scores[j] += weight;
            }
        }
        return n_scored;
    }

    // All paths from input i through output b.  An output j at their end has as many neighbours
    // in common with b as there are paths to it; input i is none of them, as (i, j) is absent.
    std::size_t score_output(Index i, Neuron b, std::size_t n_scored, Workspace& w) const {
        std::size_t n_reached = 0;
        Index work = 0;
        for (Neuron a : sides_.of_outputs[b]) {
            if (a == Neuron(i)) continue;
            const double weight = w.weights[a];
            const auto ends = sides_.of_inputs[a];
            work += Index(ends.size());
            for (Neuron j : ends) {
                auto& reached = w.reached[j];
                w.outputs[n_reached] = j;
                n_reached += reached.n_paths == 0;
                reached.weight += weight;
                ++reached.n_paths;
            }
        }
        const Index degree = sides_.of_outputs.degree(b);
        const bool is_ch3 = search_.score == PathScore::ch3_l3p;
        for (std::size_t k = 0; k < n_reached; ++k) {
            const Neuron j = w.outputs[k];
            auto& reached = w.reached[j];
            const Index outside = degree - reached.n_paths;  // at least 1: input i
            w.scored[n_scored] = j;
            n_scored += w.scores[j] == 0;
            w.scores[j] += is_ch3 ? reached.weight * roots_[std::size_t(outside)]
                                  : double(reached.n_paths + 1) / double(outside);
            reached = {0, 0};
        }
        w.work += work;
        return n_scored;
    }

    bool is_stopped(Workspace& w) const {
        if (w.work < kBetweenChecks) return false;
        w.work = 0;
        return watch_.has_stopped();
    }

    void add_candidates(Index i, std::size_t n_scored, Workspace& w) {
        if (allowed_) {
            for (Neuron j : (*allowed_)[i]) {
                if (w.scores[j] > 0) consider(i, j, w);
            }
        } else {
            for (std::size_t k = 0; k < n_scored; ++k) consider(i, w.scored[k], w);
        }
        Candidate<double> worst;
        if (w.candidates.size() >= 1024) pool_.add(w.candidates, worst);
    }

    void consider(Index i, Neuron j, Workspace& w) const {
        double value = w.scores[j];
        if (search_.seed) {
            const std::uint64_t position = std::uint64_t(i) * std::uint64_t(grid_.n_out) + j;
            const double uniform =
                (double(random_bits(*search_.seed, position) >> 11) + 0.5) * 0x1p-53;
            // An exponential number is at least this uniform one: most need no logarithm.
            if (value < pool_.least() * uniform) return;
            value /= -std::log1p(-uniform);
        }
        if (value >= pool_.least()) w.candidates.push_back({value, Neuron(i), j});
    }

    const Grid& grid_;
    Sides sides_;
    const PathSearch& search_;
    StopWatch& watch_;
    std::optional<Neighbours> allowed_;
    std::vector<double> roots_;  // 1 / sqrt(k)
    Pool<double> pool_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> workspaces_;
};

}  // namespace

ScoredPositions best_by_paths(const Topology& topology, std::span<const Index> kept,
                              const PathSearch& search, int n_threads,
                              const ShouldStop& should_stop) {
    check_kept(topology, kept);
    const Grid& grid = topology.grid();
    if (search.count < 0) {
        throw std::invalid_argument("a negative number of connections is asked for");
    }
    if (search.allowed != nullptr &&
        (search.allowed->grid().n_in != grid.n_in || search.allowed->grid().n_out != grid.n_out)) {
        throw std::invalid_argument("the allowed positions are those of a layer of another shape");
    }
    if (search.count == 0) return {};
    StopWatch watch(should_stop);
    PathScores scores(topology, kept, search, watch);
    scores.run(n_threads);
    watch.check();
    auto& best = scores.best();
    std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) {
        return a.input != b.input ? a.input < b.input : a.output < b.output;
    });
    ScoredPositions found{Buffer<Index>(Index(best.size())), Buffer<double>(Index(best.size()))};
    for (std::size_t k = 0; k < best.size(); ++k) {
        found.positions[Index(k)] = Index(best[k].input) * grid.n_out + best[k].output;
        found.values[Index(k)] = best[k].magnitude;
    }
    return found;
}

}  // namespace ratoon
