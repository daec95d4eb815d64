// What one core can do: multiply-adds from registers, and from rows that lie in a cache.
//
// The loops below have no more than a sparse pass needs at the least.  Per connection and vector of
// lanes: the forward pass loads a row of x and adds to sums in registers; the input gradient loads
// a row of dy and does the same; the weight gradient multiplies a row of dy with one in registers;
// the last two together load the row once.  Rows are picked at random from `rows` rows, as a sparse
// layer picks them; indices and weights are read in sequence.
//
// Usage: roofline LANES ROWS [LANES ROWS ...]; one line of results per pair, GFlop/s:
//     lanes rows peak forward input_gradient weight_gradient both
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <vector>

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#else
constexpr int kWidth = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * kWidth), aligned(4 * kWidth), may_alias));

static Vec all(float a) { return Vec{} + a; }
static double seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}
static volatile float sink;

static double peak() {
    constexpr int kChains = 12;
    Vec sums[kChains];
    const Vec a = all(0.999f), b = all(1e-3f);
    for (int i = 0; i < kChains; ++i) sums[i] = all(float(i));
    constexpr int kRounds = 200000;
    double best = 1e9;
    for (int repeat = 0; repeat < 20; ++repeat) {
        const double start = seconds();
        for (int r = 0; r < kRounds; ++r) {
#pragma GCC unroll 12
            for (int i = 0; i < kChains; ++i) {
                sums[i] = sums[i] * a + b;
                asm("" : "+v"(sums[i]));
            }
        }
        best = std::min(best, seconds() - start);
    }
    Vec total{};
    for (const Vec& sum : sums) total += sum;
    sink = total[0];
    return 2.0 * kWidth * kChains * kRounds / best / 1e9;
}

struct Work {
    std::vector<std::uint32_t> picks;
    std::vector<float> weights, gradients;
    float *from, *to;
    int run;
};

// One pass; `sums` and `dots` choose what is computed of every connection.
template <int V, bool sums, bool dots>
static void pass(Work& work) {
    constexpr int lanes = V * kWidth;
    const std::size_t n = work.picks.size();
    for (std::size_t k = 0, row = 0; k < n; ++row) {
        Vec* own = reinterpret_cast<Vec*>(work.to + (row % 64) * lanes);
        Vec acc[V], x[V];
        for (int v = 0; v < V; ++v) acc[v] = Vec{}, x[v] = own[v];
        for (const std::size_t end = std::min(n, k + std::size_t(work.run)); k < end; ++k) {
            const Vec* from = reinterpret_cast<const Vec*>(work.from + std::size_t(work.picks[k]) * lanes);
            const Vec weight = all(work.weights[k]);
            Vec dot{};
#pragma GCC unroll 16
            for (int v = 0; v < V; ++v) {
                const Vec row = from[v];
                if (sums) acc[v] = weight * row + acc[v];
                if (dots) dot = row * x[v] + dot;
            }
            if (dots) {
                // The sum over lanes belongs to it, but eight connections can share its cost.
                std::memcpy(&work.gradients[(k % 256) * kWidth], &dot, sizeof dot);
            }
        }
        if (sums) {
            for (int v = 0; v < V; ++v) own[v] = acc[v];
        }
    }
}

template <int V, bool sums, bool dots>
static double rate(Work& work) {
    double best = 1e9, spent = 0;
    for (int repeat = 0; repeat < 400 && (spent < 0.25 || repeat < 5); ++repeat) {
        const double start = seconds();
        pass<V, sums, dots>(work);
        const double taken = seconds() - start;
        best = std::min(best, taken), spent += taken;
    }
    return 2.0 * V * kWidth * double(work.picks.size()) * (int(sums) + int(dots)) / best / 1e9;
}

template <int V>
static void measure(int rows) {
    constexpr int lanes = V * kWidth;
    std::mt19937 random(1);
    Work work;
    work.run = 32;
    work.picks.resize(std::size_t(20000));
    for (auto& pick : work.picks) pick = std::uint32_t(random() % std::uint32_t(rows));
    work.weights.assign(work.picks.size(), 1e-3f);
    work.gradients.assign(256 * kWidth, 0.0f);
    const std::size_t bytes = std::size_t(rows) * lanes * 4;
    work.from = static_cast<float*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    work.to = static_cast<float*>(std::aligned_alloc(4096, 64 * lanes * 4));
    std::fill_n(work.from, bytes / 4, 1.0f);
    std::fill_n(work.to, 64 * lanes, 1.0f);
    std::printf("%d %d %.1f %.1f %.1f %.1f\n", lanes, rows, rate<V, true, false>(work),
                rate<V, true, false>(work), rate<V, false, true>(work), rate<V, true, true>(work));
    std::fflush(stdout);
    std::free(work.from);
    std::free(work.to);
}

int main(int argc, char** argv) {
    std::printf("%.1f\n", peak());
    for (int i = 1; i + 1 < argc; i += 2) {
        const int lanes = std::atoi(argv[i]), rows = std::atoi(argv[i + 1]);
        switch (lanes / kWidth) {
            case 1: measure<1>(rows); break;
            case 2: measure<2>(rows); break;
            case 4: measure<4>(rows); break;
            case 8: measure<8>(rows); break;
#if !defined(__AVX512F__)
            case 16: measure<16>(rows); break;
#endif
            default: return 2;
        }
    }
}
