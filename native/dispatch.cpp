// Which instruction set to use: decided once, from what the processor says it can do.
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ratoon {

#define RATOON_DECLARE(isa)               \
    namespace isa {                       \
    const Kernels<float>& kernels_f32();  \
    const Kernels<double>& kernels_f64(); \
    }
RATOON_DECLARE(baseline)
#if defined(__x86_64__)
RATOON_DECLARE(avx2)
RATOON_DECLARE(avx512)
#endif

namespace {

struct Isa {
    const char* name;
    bool (*available)();
    const Kernels<float>& (*f32)();
    const Kernels<double>& (*f64)();
};

// Best first.
const Isa kIsas[] = {
#if defined(__x86_64__)
    {"avx512",
     [] {
         return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
     },
     avx512::kernels_f32, avx512::kernels_f64},
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); },
     avx2::kernels_f32, avx2::kernels_f64},
#endif
    {"baseline", [] { return true; }, baseline::kernels_f32, baseline::kernels_f64},
};

const Isa* find_isa(const std::string& name) {
    for (const Isa& isa : kIsas) {
        if ((name == "auto" || name == isa.name) && isa.available()) return &isa;
    }
    throw std::runtime_error("instruction set '" + name +
                             "' is not available here; available: " + isas_available());
}

std::atomic<const Isa*> in_use{nullptr};

const Isa& chosen() {
    const Isa* isa = in_use.load(std::memory_order_acquire);
    if (isa == nullptr) {
        const char* wish = std::getenv("RATOON_ISA");
        isa = find_isa(wish == nullptr || *wish == '\0' ? "auto" : wish);
        in_use.store(isa, std::memory_order_release);
    }
    return *isa;
}

}  // namespace

template <>
const Kernels<float>& kernels<float>() {
    return chosen().f32();
}
template <>
const Kernels<double>& kernels<double>() {
    return chosen().f64();
}

std::string isa_in_use() { return chosen().name; }

void use_isa(const std::string& name) { in_use.store(find_isa(name)); }

std::string isas_available() {
    std::string names;
    for (const Isa& isa : kIsas) {
        if (!isa.available()) continue;
        if (!names.empty()) names += ',';
        names += isa.name;
    }
    return names;
}

#if defined(__x86_64__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }
FlushDenormals::~FlushDenormals() { _mm_setcsr(saved_); }
#else
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() {}
#endif

}  // namespace ratoon
