#include "masked.hpp"

#include <algorithm>

namespace ratoon {
namespace {

constexpr double kFullEnough = 0.4;  // positions cost as much as connections do

}  // namespace

Masks::Masks(const Topology& topology) : topology_(topology) {
    const Grid& grid = topology.grid();
    words_.resize(std::size_t(divided_up(grid.n_in, kGroup) * grid.n_out));
    for (Index strip = 0; strip < grid.tiles_in(); ++strip) {
        for (Index k = topology.starts()[strip]; k < topology.starts()[strip + 1]; ++k) {
            const Packed p = topology.packed()[k];
            const Index input = grid.first_input(strip) + Index(p >> 16);
            words_[std::size_t(input / kGroup * grid.n_out + Index(p & 0xffffu))] |=
                std::uint16_t(1u << input % kGroup);
        }
    }
}

template <typename T>
bool Masks::suit(const Topology& topology, const Values<T>& values, Index lanes) {
    const Grid& grid = topology.grid();
    return kernels<T>().masked_forward != nullptr && values.halves == nullptr && lanes == kLanes &&
           grid.n_out <= kNarrow && grid.tiles_out() == 1 && grid.grouped &&
           double(topology.n_connections()) >= kFullEnough * double(grid.n_in) * double(grid.n_out);
}

Masked Masks::strip(Index in_tile) const {
    const Grid& grid = topology_.grid();
    const Index first = grid.first_input(in_tile);
    return {words_.data() + first / kGroup * grid.n_out, std::min(grid.tile_in, grid.n_in - first),
            grid.n_out, topology_.starts()[in_tile + 1] - topology_.starts()[in_tile]};
}

template <typename T>
void Masks::forward(const Values<T>& values, const T* bias, const T* x, T* y, Index n_samples,
                    Buffer<T>& scratch, int n_threads) const {
    const Grid& grid = topology_.grid();
    const Index size = grid.n_out * kLanes;
    if (scratch.size() < grid.tiles_in() * size) scratch = Buffer<T>(grid.tiles_in() * size);
    run_tasks(grid.tiles_in(), topology_.n_connections(), n_threads, [&](Index t) {
        kernels<T>().masked_forward(strip(t), values.at(topology_.starts()[t]).weights,
                                    x + grid.first_input(t) * kLanes, n_samples,
                                    scratch.data() + t * size);
    });
    add_strips(grid, bias, scratch.data(), 1, kLanes, y);
}

template <typename T>
void Masks::backward(Rule rule, const Values<T>& values, const Step<T>& step, const T* x,
                     const T* dy, T* dx, Index n_samples, int n_threads,
                     const Finish& finish) const {
    const Grid& grid = topology_.grid();
    run_tasks(grid.tiles_in(), topology_.n_connections(), n_threads, [&](Index t) {
        const Index first = grid.first_input(t);
        const Index last = std::min(grid.n_in, first + grid.tile_in);
        kernels<T>().masked_backward(rule, strip(t), values.at(topology_.starts()[t]),
                                     x + first * kLanes, dy, dx + first * kLanes, n_samples, step);
        finish(first, last);
    });
}

#define RATOON_INSTANTIATE(T)                                                                      \
    template bool Masks::suit(const Topology&, const Values<T>&, Index);                           \
    template void Masks::forward(const Values<T>&, const T*, const T*, T*, Index, Buffer<T>&, int) \
        const;                                                                                     \
    template void Masks::backward(Rule, const Values<T>&, const Step<T>&, const T*, const T*, T*,  \
                                  Index, int, const Finish&) const;
RATOON_INSTANTIATE(float)
RATOON_INSTANTIATE(double)

}  // namespace ratoon
