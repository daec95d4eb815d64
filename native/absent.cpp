// The search for the largest absent gradients.
//
// The gradient of a layer is the product of two thin matrices and far too large to be stored.  It
// is computed block by block, and of every block only candidates for the result are kept.
//
// By Cauchy and Schwarz a product is at most the product of the two norms.  Inputs and outputs are
// sorted by norm, and blocks are visited in the order of their upper bounds; so the candidates soon
// give a good lower bound, and everything below it is skipped: whole blocks, then the tails of
// rows.  Nothing that belongs to the result is skipped, so the result does not depend on the order
// of the work or on the number of threads.
#include "absent.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "candidates.hpp"
#include "kernels.hpp"
#include "linear.hpp"

namespace ratoon {

namespace {

// Where a connection is, if it exists.
class Finder {
  public:
    explicit Finder(const Topology& topology)
        : grid_(topology.grid()), starts_(topology.starts()), packed_(topology.packed().data()) {}
    Index operator()(Index input, Index output) const {
        const Index in_tile = input / grid_.tile_in, out_tile = output / grid_.tile_out;
        const Index t = out_tile * grid_.tiles_in() + in_tile;
        const Tile tile = grid_.tile(in_tile, out_tile);
        const auto wanted = Packed((input - grid_.first_input(in_tile)) << 16 |
                                   (output - grid_.first_output(out_tile)));
        const std::uint64_t key = tile.key(wanted);
        const Packed* first = packed_ + starts_[t];
        const Packed* last = packed_ + starts_[t + 1];
        const Packed* found = std::lower_bound(
            first, last, key, [&](Packed p, std::uint64_t k) { return tile.key(p) < k; });
        return found != last && *found == wanted ? found - packed_ : -1;
    }

  private:
    const Grid& grid_;
    std::span<const Index> starts_;
    const Packed* packed_;
};

// Whether a position is occupied by a kept connection.
class Occupied {
  public:
    Occupied(const Topology& topology, std::span<const Index> kept)
        : find_(topology), stays_(std::size_t(topology.n_connections()), false) {
        for (Index slot : kept) stays_[std::size_t(slot)] = true;
    }
    bool operator()(Index input, Index output) const {
        const Index slot = find_(input, output);
        return slot >= 0 && stays_[std::size_t(slot)];
    }

  private:
    Finder find_;
    std::vector<bool> stays_;
};

// The neurons of one side that have any signal, strongest first.
struct ByNorm {
    std::vector<std::uint32_t> neurons;
    std::vector<double> norms;
    Index size() const { return Index(neurons.size()); }
};

template <typename T>
ByNorm sorted_by_norm(const T* rows, Index n, Index depth) {
    std::vector<double> norms(static_cast<std::size_t>(n));
    ByNorm sorted;
    for (Index i = 0; i < n; ++i) {
        double sum = 0;
        for (Index c = 0; c < depth; ++c) sum += double(rows[i * depth + c]) * rows[i * depth + c];
        norms[i] = std::sqrt(sum);
        if (norms[i] > 0) sorted.neurons.push_back(std::uint32_t(i));
    }
    std::stable_sort(sorted.neurons.begin(), sorted.neurons.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return norms[a] > norms[b]; });
    for (std::uint32_t i : sorted.neurons) sorted.norms.push_back(norms[i]);
    return sorted;
}

// A block of the plane: ranks among the sorted inputs and outputs, and the upper bound of its
// products.
struct Block {
    Index first_in, last_in, first_out, last_out;
    double at_most;
};

std::vector<Block> blocks_strongest_first(const ByNorm& inputs, const ByNorm& outputs,
                                          Index depth) {
    constexpr Index kInputs = 4096, kNumbers = 1 << 15;  // 128 KB of outputs stay in the cache
    const Index n_outputs = std::clamp(kNumbers / depth / kPanel * kPanel, kPanel, Index(4096));
    std::vector<Block> blocks;
    for (Index i = 0; i < inputs.size(); i += kInputs) {
        for (Index j = 0; j < outputs.size(); j += n_outputs) {
            blocks.push_back({i, std::min(i + kInputs, inputs.size()), j,
                              std::min(j + n_outputs, outputs.size()),
                              inputs.norms[i] * outputs.norms[j]});
        }
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const Block& a, const Block& b) { return a.at_most > b.at_most; });
    return blocks;
}

template <typename T>
class Search {
  public:
    Search(const Topology& topology, std::span<const Index> kept, const Factors<T>& factors,
           Index count)
        : factors_(factors),
          occupied_(topology, kept),
          inputs_(sorted_by_norm(factors.x, topology.grid().n_in, factors.depth)),
          outputs_(sorted_by_norm(factors.d, topology.grid().n_out, factors.depth)),
          // Rounding may bring a computed product above the product of the norms, by this much.
          slack_(1 + 4 * double(factors.depth + 16) * std::numeric_limits<T>::epsilon()),
          pool_(count) {}

    void run(int n_threads) {
        const auto blocks = blocks_strongest_first(inputs_, outputs_, factors_.depth);
        const Index work = inputs_.size() * outputs_.size();
        run_tasks(Index(blocks.size()), work, n_threads,
                  [&](Index b) { look_at(blocks[std::size_t(b)]); });
    }
    std::vector<Candidate<T>>& best() { return pool_.best(); }

  private:
    bool may_hold(double at_most) const { return at_most * slack_ >= double(pool_.least()); }

    Buffer<T> packed(const Block& block) const {
        const Index n = block.last_out - block.first_out, depth = factors_.depth;
        Buffer<T> numbers(divided_up(n, kPanel) * kPanel * depth);
        numbers.fill_zero();
        for (Index k = 0; k < n; ++k) {
            const T* from = factors_.d + Index(outputs_.neurons[block.first_out + k]) * depth;
            T* to = numbers.data() + k / kPanel * depth * kPanel + k % kPanel;
            for (Index c = 0; c < depth; ++c) to[c * kPanel] = from[c];
        }
        return numbers;
    }

    void look_at(const Block& block) {
        if (!may_hold(block.at_most)) return;
        const Buffer<T> numbers = packed(block);
        const Panels<T> panels{numbers.data(), factors_.depth};
        const std::vector<T> nothing(std::size_t(factors_.depth), T(0));
        std::vector<Hit<T>> places(1024);
        std::vector<Candidate<T>> candidates;
        Candidate<T> worst{pool_.least(), ~0u, ~0u};
        Index n_panels = divided_up(block.last_out - block.first_out, kPanel);
        for (Index i = block.first_in; i < block.last_in; i += kScanRows) {
            // Norms decrease along inputs and panels, and the bound only increases.
            const auto first_of = [&](Index p) {
                return inputs_.norms[i] * outputs_.norms[block.first_out + p * kPanel];
            };
            while (n_panels > 0 && !may_hold(first_of(n_panels - 1))) --n_panels;
            if (n_panels == 0) break;
            const T* rows[kScanRows];
            for (Index r = 0; r < kScanRows; ++r) {
                rows[r] = i + r < block.last_in
                              ? factors_.x + Index(inputs_.neurons[i + r]) * factors_.depth
                              : nothing.data();
            }
            Index next = 0;
            while (next < n_panels) {
                Hits<T> hits{places.data(), Index(places.size()), 0};
                next = kernels<T>().scan(rows, panels, next, n_panels, pool_.least(), hits);
                for (Index h = 0; h < hits.size; ++h) {
                    const Hit<T>& hit = places[std::size_t(h)];
                    consider({hit.magnitude, inputs_.neurons[i + hit.row],
                              outputs_.neurons[block.first_out + hit.column]},
                             worst, candidates);
                }
                if (candidates.size() >= 1024) pool_.add(candidates, worst);
            }
        }
        pool_.add(candidates, worst);
    }

    void consider(const Candidate<T>& candidate, const Candidate<T>& worst,
                  std::vector<Candidate<T>>& candidates) const {
        if (better(candidate, worst) && !occupied_(candidate.input, candidate.output)) {
            candidates.push_back(candidate);
        }
    }

    const Factors<T>& factors_;
    Occupied occupied_;
    ByNorm inputs_, outputs_;
    double slack_;
    Pool<T> pool_;
};

// The best candidates of one output; one thread works on it.
template <typename T>
class OutputPool {
  public:
    explicit OutputPool(Index count = 0) : count_(std::size_t(count)) {}
    T least() const { return worst_.magnitude; }
    bool may_hold(const Candidate<T>& candidate) const { return better(candidate, worst_); }
    void add(const Candidate<T>& candidate) {
        kept_.push_back(candidate);
        if (kept_.size() >= 2 * count_ + 16) shrink();
    }
    std::vector<Candidate<T>>& best() {
        shrink();
        return kept_;
    }

  private:
    void shrink() {
        if (kept_.size() < count_) return;
        std::nth_element(kept_.begin(), kept_.begin() + Index(count_) - 1, kept_.end(), better<T>);
        kept_.resize(count_);
        worst_ = kept_.back();
    }

    std::size_t count_;
    std::vector<Candidate<T>> kept_;
    Candidate<T> worst_{std::numeric_limits<T>::min(), ~0u, ~0u};
};

// The search for every output on its own.  A panel of outputs belongs to one task, which visits
// inputs from the largest norm to the smallest and ends when no later one can be among the best of
// any of its outputs.  Outputs of one panel have similar norms, so that they end together.
template <typename T>
class SearchPerOutput {
  public:
    SearchPerOutput(const Topology& topology, std::span<const Index> kept,
                    const Factors<T>& factors, std::span<const Index> counts)
        : factors_(factors),
          counts_(counts),
          n_in_(topology.grid().n_in),
          n_out_(topology.grid().n_out),
          occupied_(topology, kept),
          inputs_(sorted_by_norm(factors.x, n_in_, factors.depth)),
          outputs_(sorted_by_norm(factors.d, n_out_, factors.depth)),
          slack_(1 + 4 * double(factors.depth + 16) * std::numeric_limits<T>::epsilon()) {
        std::erase_if(outputs_.neurons, [&](std::uint32_t j) { return counts[j] == 0; });
    }

    std::vector<Index> run(int n_threads, const ShouldStop& should_stop) {
        const Index n_panels = divided_up(outputs_.size(), kPanel);
        const Index per_panel = inputs_.size() * kPanel;
        // Some tens of milliseconds of work between two questions.
        constexpr Index kProducts = Index(1) << 27;
        const Index n_together =
            std::max<Index>(n_threads, kProducts / std::max<Index>(1, per_panel * factors_.depth));
        std::vector<std::vector<Index>> found(static_cast<std::size_t>(n_panels));
        for (Index first = 0; first < n_panels; first += n_together) {
            const Index n = std::min(n_together, n_panels - first);
            run_tasks(n, n * per_panel, n_threads,
                      [&](Index p) { found[std::size_t(first + p)] = search(first + p); });
            if (should_stop && should_stop()) throw DrawStopped{};
        }
        std::vector<Index> positions;
        for (auto& part : found) {
            positions.insert(positions.end(), part.begin(), part.end());
            part = {};
        }
        std::sort(positions.begin(), positions.end());
        return positions;
    }

  private:
    std::vector<Index> search(Index panel) const {
        const Index first = panel * kPanel, depth = factors_.depth;
        const Index n = std::min(kPanel, outputs_.size() - first);
        std::vector<T> numbers(std::size_t(kPanel * depth), T(0));
        std::vector<OutputPool<T>> pools;
        for (Index k = 0; k < n; ++k) {
            const Index output = outputs_.neurons[std::size_t(first + k)];
            for (Index c = 0; c < depth; ++c) {
                numbers[std::size_t(c * kPanel + k)] = factors_.d[output * depth + c];
            }
            pools.emplace_back(std::min(counts_[std::size_t(output)], n_in_));
        }
        const double norm = norm_of(outputs_.neurons[std::size_t(first)]);
        const Panels<T> panels{numbers.data(), depth};
        const std::vector<T> nothing(std::size_t(depth), T(0));
        std::array<Hit<T>, kScanRows * kPanel> places;
        for (Index i = 0; i < inputs_.size(); i += kScanRows) {
            T least = pools[0].least();
            for (const auto& pool : pools) least = std::min(least, pool.least());
            if (inputs_.norms[std::size_t(i)] * norm * slack_ < double(least)) break;
            const T* rows[kScanRows];
            for (Index r = 0; r < kScanRows; ++r) {
                rows[r] = i + r < inputs_.size()
                              ? factors_.x + Index(inputs_.neurons[std::size_t(i + r)]) * depth
                              : nothing.data();
            }
            Hits<T> hits{places.data(), Index(places.size()), 0};
            kernels<T>().scan(rows, panels, 0, 1, least, hits);
            for (Index h = 0; h < hits.size; ++h) {
                const Hit<T>& hit = places[std::size_t(h)];
                const std::uint32_t output = outputs_.neurons[std::size_t(first + hit.column)];
                const Candidate<T> candidate{hit.magnitude,
                                             inputs_.neurons[std::size_t(i + hit.row)], output};
                OutputPool<T>& pool = pools[hit.column];
                if (pool.may_hold(candidate) && !occupied_(candidate.input, output)) {
                    pool.add(candidate);
                }
            }
        }
        std::vector<Index> positions;
        for (auto& pool : pools) {
            for (const auto& best : pool.best()) {
                positions.push_back(Index(best.input) * n_out_ + best.output);
            }
        }
        return positions;
    }

    double norm_of(Index output) const {
        double sum = 0;
        for (Index c = 0; c < factors_.depth; ++c) {
            const double number = factors_.d[output * factors_.depth + c];
            sum += number * number;
        }
        return std::sqrt(sum);
    }

    const Factors<T>& factors_;
    std::span<const Index> counts_;
    Index n_in_, n_out_;
    Occupied occupied_;
    ByNorm inputs_, outputs_;  // the norms of outputs are not used: some outputs are left out
    double slack_;
};

}  // namespace

void check_kept(const Topology& topology, std::span<const Index> kept) {
    for (std::size_t k = 0; k < kept.size(); ++k) {
        if (kept[k] < 0 || kept[k] >= topology.n_connections() ||
            (k > 0 && kept[k] <= kept[k - 1])) {
            throw std::invalid_argument("kept slots must be ascending and in range");
        }
    }
}

void check_positions(const Grid& grid, std::span<const Index> positions) {
    for (Index position : positions) {
        if (position < 0 || position / grid.n_out >= grid.n_in) {
            throw std::invalid_argument("a position lies outside the layer");
        }
    }
}

Buffer<Index> slots_of(const Topology& topology, std::span<const Index> positions) {
    check_positions(topology.grid(), positions);
    const Finder find(topology);
    const Index n_out = topology.grid().n_out;
    Buffer<Index> slots(Index(positions.size()));
    for (std::size_t k = 0; k < positions.size(); ++k) {
        slots[Index(k)] = find(positions[k] / n_out, positions[k] % n_out);
    }
    return slots;
}

Buffer<Index> empty_among(const Topology& topology, std::span<const Index> kept,
                          std::span<const Index> positions) {
    check_kept(topology, kept);
    check_positions(topology.grid(), positions);
    const Occupied occupied(topology, kept);
    const Index n_out = topology.grid().n_out;
    std::vector<bool> empty(positions.size());
    Index n_empty = 0;
    for (std::size_t k = 0; k < positions.size(); ++k) {
        empty[k] = !occupied(positions[k] / n_out, positions[k] % n_out);
        n_empty += empty[k];
    }
    Buffer<Index> found(n_empty);
    for (std::size_t k = positions.size(); k-- > 0;) {
        if (empty[k]) found[--n_empty] = positions[k];
    }
    return found;
}

template <typename T>
Buffer<Index> largest_absent(const Topology& topology, std::span<const Index> kept,
                             const Factors<T>& factors, Index count, int n_threads) {
    check_kept(topology, kept);
    if (count < 0) throw std::invalid_argument("a negative number of connections is asked for");
    if (count == 0 || factors.depth == 0) return {};
    Search<T> search(topology, kept, factors, count);
    search.run(n_threads);
    const auto& best = search.best();
    Buffer<Index> positions(Index(best.size()));
    const Index n_out = topology.grid().n_out;
    for (std::size_t k = 0; k < best.size(); ++k) {
        positions[Index(k)] = Index(best[k].input) * n_out + best[k].output;
    }
    std::sort(positions.data(), positions.data() + positions.size());
    return positions;
}

template <typename T>
Buffer<Index> largest_absent_per_output(const Topology& topology, std::span<const Index> kept,
                                        const Factors<T>& factors, std::span<const Index> counts,
                                        int n_threads, const ShouldStop& should_stop) {
    check_kept(topology, kept);
    if (Index(counts.size()) != topology.grid().n_out) {
        throw std::invalid_argument("counts needs one number per output");
    }
    for (Index count : counts) {
        if (count < 0) throw std::invalid_argument("a negative number of connections is asked for");
    }
    if (factors.depth == 0) return {};
    SearchPerOutput<T> search(topology, kept, factors, counts);
    const std::vector<Index> found = search.run(n_threads, should_stop);
    Buffer<Index> positions(Index(found.size()));
    std::copy(found.begin(), found.end(), positions.data());
    return positions;
}

template Buffer<Index> largest_absent_per_output(const Topology&, std::span<const Index>,
                                                 const Factors<float>&, std::span<const Index>, int,
                                                 const ShouldStop&);
template Buffer<Index> largest_absent_per_output(const Topology&, std::span<const Index>,
                                                 const Factors<double>&, std::span<const Index>,
                                                 int, const ShouldStop&);
template Buffer<Index> largest_absent(const Topology&, std::span<const Index>,
                                      const Factors<float>&, Index, int);
template Buffer<Index> largest_absent(const Topology&, std::span<const Index>,
                                      const Factors<double>&, Index, int);

}  // namespace ratoon
