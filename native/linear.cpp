#include "linear.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "bfloat16.hpp"
#include "threads.hpp"

namespace ratoon {
namespace {

// Rows of a tile beyond this many bytes are fetched ahead: they leave the second-level cache.  With
// dx three rows are in use per connection, and fetching pays as soon as they leave the first.
constexpr Index kFarBytes = Index(512) << 10, kFarBytesWithDx = Index(24) << 10;
// Passing a task to a spinning thread costs one or two microseconds, so less than about six
// microseconds of work stays on one thread.  More is shared, since threads without work fall
// asleep.
constexpr Index kWorthThreads = 6000;

template <typename T>
TileKind kind_of(const Tile& tile, Index lanes, Index limit) {
    return {Index(tile.outputs) * lanes * Index(sizeof(T)) > limit,
            Index(std::max(tile.inputs, tile.outputs)) <= kSmallSide};
}

// About the number of vector operations of a pass over the layer.
Index work_of(const Topology& topology, Index lanes) {
    return topology.n_connections() * divided_up(lanes, kLanes);
}

// Few outputs: strips of inputs are summed separately and then added in the order of the strips,
// which depends on the shape alone.
template <typename T>
void narrow_forward(const Topology& topology, const Values<T>& values, const T* bias, const T* x,
                    T* y, Index lanes, Buffer<T>& scratch, int n_threads) {
    const Grid& grid = topology.grid();
    const auto starts = topology.starts();
    const Packed* packed = topology.packed().data();
    const Index copies = kNarrowCopies, size = grid.n_out * lanes;
    const Index needed = grid.tiles_in() * copies * size;
    if (scratch.size() < needed) scratch = Buffer<T>(needed);
    run_tasks(grid.tiles_in(), work_of(topology, lanes), n_threads, [&](Index strip) {
        T* sums = scratch.data() + strip * copies * size;
        std::fill_n(sums, copies * size, T(0));
        in_chunks(values.at(starts[strip]), starts[strip], starts[strip + 1] - starts[strip], false,
                  0, [&](Index k, Index n, const Values<T>& chunk) {
                      kernels<T>().forward_narrow(packed + starts[strip] + k, chunk.weights, n,
                                                  x + grid.first_input(strip) * lanes, sums, lanes);
                  });
    });
    add_strips(grid, bias, scratch.data(), copies, lanes, y);
}

// Passes over the runs of a layer part by part, and does other tasks.
template <typename Work>
void in_parts(const Runs& runs, Index work, int n_threads, const SideTasks& side,
              const Work& each) {
    const Index n_parts = runs.n_parts();
    run_tasks(n_parts + side.n, work, n_threads, [&](Index part) {
        if (part >= n_parts) return side.task(part - n_parts);
        const Index first = part * Runs::kAtOnce;
        each(part, first, std::min(first + Runs::kAtOnce, runs.n_runs()));
    });
}

// Weights as the numbers that runs compute with: those in bfloat16 are widened into `wide`.
template <typename T>
const T* plain_weights(const Values<T>& values, Index n, int n_threads, Buffer<T>& wide) {
    if (values.halves == nullptr) return values.weights;
    constexpr Index kChunk = 1 << 14;
    wide = Buffer<T>(n, Use::recurring);
    run_tasks(divided_up(n, kChunk), n / kLanes, n_threads, [&](Index c) {
        const Index first = c * kChunk, size = std::min(kChunk, n - first);
        in_chunks(values.at(first), first, size, false, 0,
                  [&](Index k, Index some, const Values<T>& chunk) {
                      std::copy_n(chunk.weights, some, wide.data() + first + k);
                  });
    });
    return wide.data();
}

// live[i] is 0 if all of row i is zero, else 1; returns the number of zeros.  NaN is not zero.
template <typename T>
Index find_zero_rows(const T* rows, Index n_rows, Index lanes, std::uint8_t* live) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits kAllButSign = ~Bits(0) >> 1;
    Index n_zero = 0;
    for (Index i = 0; i < n_rows; ++i) {
        // Most rows differ from zeros in their first lanes.
        Bits found = 0;
        for (Index first = 0; first < lanes && found == 0; first += kLanes) {
            for (Index k = 0; k < kLanes; ++k) {
                found |= std::bit_cast<Bits>(rows[i * lanes + first + k]) & kAllButSign;
            }
        }
        live[i] = found != 0;
        n_zero += found == 0;
    }
    return n_zero;
}

template <typename T>
void forward_by_runs(const Topology& topology, const Runs& runs, const Values<T>& values,
                     const T* bias, const T* x, T* y, Index lanes, int n_threads,
                     const Finish& finish) {
    // Rows of zeros add nothing, so leaving them out changes no bit.  Picking the others takes as
    // long as 24 lanes of every connection.
    constexpr Index kPicking = 24;
    const Index n_in = topology.grid().n_in;
    std::vector<std::uint8_t> live(static_cast<std::size_t>(n_in));
    const Index n_zero = find_zero_rows(x, n_in, lanes, live.data());
    const std::uint8_t* given = n_zero * lanes >= n_in * kPicking ? live.data() : nullptr;
    Buffer<T> wide;
    const T* weights = plain_weights(values, topology.n_connections(), n_threads, wide);
    const auto part = [&](Index, Index first, Index last) {
        kernels<T>().forward_runs(runs.links(), runs.starts(), first, last, weights, bias, x, given,
                                  y, lanes);
        if (finish) finish(first, last);
    };
    in_parts(runs, work_of(topology, lanes), n_threads, {}, part);
}

// The gradients of a run are spread over the slots, those of a part of the inputs are not: the rule
// follows when these are there, while they are in the cache.  Parts do not depend on threads.
template <typename T>
void backward_by_runs(const Topology& topology, Rule rule, Values<T> values, const Step<T>& step,
                      const T* x, const T* dy, T* dx, Index lanes, int n_threads,
                      const Finish& finish, const SideTasks& side) {
    const Runs& runs = topology.runs(Runs::Of::inputs);
    const Index n = topology.n_connections();
    Buffer<T> own, wide;
    if (changes_weights(rule)) own = Buffer<T>(n, Use::recurring);
    T* gradients = changes_weights(rule) ? own.data() : values.first;
    const T* weights = dx == nullptr ? nullptr : plain_weights(values, n, n_threads, wide);
    const auto update = [&](const Runs::Slots& slots) {
        const T* of_slots = gradients + slots.begin;
        in_chunks(values.at(slots.begin), slots.begin, slots.end - slots.begin, true,
                  step.rounding_seed, [&](Index k, Index size, const Values<T>& chunk) {
                      kernels<T>().update(rule, chunk, of_slots + k, size, step);
                  });
    };
    const auto part = [&](Index number, Index first, Index last) {
        kernels<T>().backward_runs(runs.links(), runs.starts(), first, last, weights, gradients,
                                   rule == Rule::add, x, dy, dx, lanes);
        if (dx != nullptr && finish) finish(first, last);
        if (!changes_weights(rule)) return;
        for (const Runs::Slots& slots : runs.slots_of(number)) update(slots);
    };
    in_parts(runs, work_of(topology, lanes), n_threads, side, part);
}

// Some lanes of all rows, side by side: where rows are a large power of two apart, their lanes
// share few places of the cache.
template <typename T>
void copy_lanes(const T* from, Index from_lanes, Index n_rows, Index n, T* to, Index to_lanes) {
    for (Index i = 0; i < n_rows; ++i) std::copy_n(from + i * from_lanes, n, to + i * to_lanes);
}

// Blocks of lanes do not depend on each other, so each is a task.
template <typename T>
void forward_in_blocks(const Topology& topology, const Runs& runs, const Values<T>& values,
                       const T* bias, const T* x, T* y, Index lanes, int n_threads) {
    const Grid& grid = topology.grid();
    run_tasks(divided_up(lanes, kMostLanes), work_of(topology, lanes), n_threads, [&](Index b) {
        const Index first = b * kMostLanes, n = std::min(kMostLanes, lanes - first);
        Buffer<T> from(grid.n_in * n, Use::recurring), to(grid.n_out * n, Use::recurring);
        copy_lanes(x + first, lanes, grid.n_in, n, from.data(), n);
        forward_by_runs<T>(topology, runs, values, bias, from.data(), to.data(), n, 1, {});
        copy_lanes(to.data(), n, grid.n_out, n, y + first, lanes);
    });
}

// Gradients are added up block by block, so that their order does not depend on threads.
template <typename T>
void backward_in_blocks(const Topology& topology, Rule rule, Values<T> values, const T* x,
                        const T* dy, T* dx, Index lanes, int n_threads) {
    const Grid& grid = topology.grid();
    Buffer<T> from(grid.n_in * kMostLanes, Use::recurring), back;
    Buffer<T> error(grid.n_out * kMostLanes, Use::recurring);
    if (dx != nullptr) back = Buffer<T>(grid.n_in * kMostLanes, Use::recurring);
    for (Index first = 0; first < lanes; first += kMostLanes) {
        const Index n = std::min(kMostLanes, lanes - first);
        copy_lanes(x + first, lanes, grid.n_in, n, from.data(), n);
        copy_lanes(dy + first, lanes, grid.n_out, n, error.data(), n);
        backward_by_runs<T>(topology, first == 0 ? rule : Rule::add, values, {}, from.data(),
                            error.data(), back.data(), n, n_threads, {}, {});
        if (dx != nullptr) copy_lanes(back.data(), n, grid.n_in, n, dx + first, lanes);
    }
}

template <typename T>
bool by_runs(const Topology& topology, Index lanes) {
    return Runs::pay(topology, lanes, Index(sizeof(T)));
}

}  // namespace

void run_tasks(Index n_tasks, Index work, int n_threads, const std::function<void(Index)>& task) {
    parallel_for(n_tasks, work < kWorthThreads ? 1 : n_threads, [&](Index i) {
        const FlushDenormals flush;
        task(i);
    });
}

template <typename T>
void add_strips(const Grid& grid, const T* bias, const T* sums, Index copies, Index lanes, T* y) {
    kernels<T>().fill_rows(bias, grid.n_out, lanes, y);
    for (Index strip = 0; strip < grid.tiles_in(); ++strip, sums += grid.n_out * copies * lanes) {
        for (Index row = 0; row < grid.n_out * copies; ++row) {
            T* to = y + row / copies * lanes;
            for (Index k = 0; k < lanes; ++k) to[k] += sums[row * lanes + k];
        }
    }
}

// A tile of outputs belongs to one task, which adds its connections in slot order.
template <typename T>
void linear_forward(const Topology& topology, const Values<T>& values, const T* bias, const T* x,
                    T* y, Index lanes, Buffer<T>& scratch, int n_threads, const Finish& finish) {
    const Grid& grid = topology.grid();
    if (grid.n_out <= kNarrow && grid.tiles_out() == 1) {
        narrow_forward(topology, values, bias, x, y, lanes, scratch, n_threads);
        if (finish) finish(0, grid.n_out);
        return;
    }
    if (by_runs<T>(topology, lanes)) {
        // The same bits either way, so it may depend on how often it was asked for.
        const Runs* runs = topology.runs_if_frequent(Runs::Of::outputs);
        if (runs != nullptr && lanes > kMostLanes && !finish) {
            return forward_in_blocks(topology, *runs, values, bias, x, y, lanes, n_threads);
        }
        if (runs != nullptr) {
            return forward_by_runs(topology, *runs, values, bias, x, y, lanes, n_threads, finish);
        }
    }
    const auto starts = topology.starts();
    const Packed* packed = topology.packed().data();
    run_tasks(grid.tiles_out(), work_of(topology, lanes), n_threads, [&](Index out_tile) {
        const Index first = grid.first_output(out_tile);
        const Index last = std::min(grid.n_out, first + grid.tile_out);
        kernels<T>().fill_rows(bias + first, last - first, lanes, y + first * lanes);
        for (Index in_tile = 0; in_tile < grid.tiles_in(); ++in_tile) {
            const Index t = out_tile * grid.tiles_in() + in_tile;
            const TileKind kind = kind_of<T>(grid.tile(in_tile, out_tile), lanes, kFarBytes);
            in_chunks(values.at(starts[t]), starts[t], starts[t + 1] - starts[t], false, 0,
                      [&](Index k, Index n, const Values<T>& chunk) {
                          kernels<T>().forward(packed + starts[t] + k, chunk.weights, n,
                                               x + grid.first_input(in_tile) * lanes,
                                               y + first * lanes, lanes, kind);
                      });
        }
        if (finish) finish(first, last);
    });
}

// A strip of inputs, or a part of one, belongs to one task: it adds to its own rows of dx and
// no others, output by output however strips are cut.  Without dx, as in the first layer of a
// network, all tiles are independent.
template <typename T>
void linear_backward(const Topology& topology, Rule rule, Values<T> values, const Step<T>& step,
                     const T* x, const T* dy, T* dx, Index lanes, int n_threads,
                     const Finish& finish, const SideTasks& side) {
    // Without dx runs save less than they cost at 32 lanes.
    if (by_runs<T>(topology, dx == nullptr ? lanes / 2 : lanes)) {
        if (lanes > kMostLanes && !changes_weights(rule) && !finish && side.n == 0) {
            return backward_in_blocks(topology, rule, values, x, dy, dx, lanes, n_threads);
        }
        return backward_by_runs(topology, rule, values, step, x, dy, dx, lanes, n_threads, finish,
                                side);
    }
    const Grid& grid = topology.grid();
    const auto starts = topology.starts();
    const Packed* packed = topology.packed().data();
    const Index work = work_of(topology, lanes);
    const Index limit = dx == nullptr ? kFarBytes : kFarBytesWithDx;
    const auto one_tile = [&](Index in_tile, Index out_tile, Index begin, Index end) {
        const Index first = grid.first_input(in_tile) * lanes;
        const TileKind kind = kind_of<T>(grid.tile(in_tile, out_tile), lanes, limit);
        in_chunks(values.at(begin), begin, end - begin, changes_weights(rule), step.rounding_seed,
                  [&](Index k, Index n, const Values<T>& chunk) {
                      kernels<T>().backward(rule, packed + begin + k, chunk, n, x + first,
                                            dy + grid.first_output(out_tile) * lanes,
                                            dx == nullptr ? nullptr : dx + first, lanes, step,
                                            kind);
                  });
    };
    if (dx == nullptr) {
        const Index n_tiles = grid.n_tiles();
        run_tasks(n_tiles + side.n, work, n_threads, [&](Index t) {
            if (t < n_tiles) {
                return one_tile(t % grid.tiles_in(), t / grid.tiles_in(), starts[t], starts[t + 1]);
            }
            side.task(t - n_tiles);
        });
        return;
    }
    // More threads than strips: cut strips between groups of inputs, which follow each other in a
    // tile.  Not for single samples, where the last few connections of a run are rounded otherwise.
    const Index parts = lanes == 1 ? 1 : divided_up(Index(n_threads), grid.tiles_in());
    const Index part = divided_up(divided_up(grid.tile_in, parts), kGroup) * kGroup;
    run_tasks(grid.tiles_in() * parts, work, n_threads, [&](Index task) {
        const Index strip = task / parts, of_strip = grid.first_input(strip);
        const Index inputs = std::min(grid.tile_in, grid.n_in - of_strip);
        const Index first = std::min(inputs, task % parts * part);
        const Index last = std::min(inputs, first + part);
        if (first == last) return;
        std::fill_n(dx + (of_strip + first) * lanes, (last - first) * lanes, T(0));
        for (Index out_tile = 0; out_tile < grid.tiles_out(); ++out_tile) {
            const Index t = out_tile * grid.tiles_in() + strip;
            const auto slot_of = [&](Index input) {
                return std::partition_point(packed + starts[t], packed + starts[t + 1],
                                            [&](Packed p) { return Index(p >> 16) < input; }) -
                       packed;
            };
            one_tile(strip, out_tile, first == 0 ? starts[t] : slot_of(first),
                     last == inputs ? starts[t + 1] : slot_of(last));
        }
        if (finish) finish(of_strip + first, of_strip + last);
    });
}

#define RATOON_INSTANTIATE(T)                                                                      \
    template void add_strips(const Grid&, const T*, const T*, Index, Index, T*);                   \
    template void linear_forward(const Topology&, const Values<T>&, const T*, const T*, T*, Index, \
                                 Buffer<T>&, int, const Finish&);                                  \
    template void linear_backward(const Topology&, Rule, Values<T>, const Step<T>&, const T*,      \
                                  const T*, T*, Index, int, const Finish&, const SideTasks&);
RATOON_INSTANTIATE(float)
RATOON_INSTANTIATE(double)

}  // namespace ratoon
