// Which instruction set to use: decided once, from what the processor supports.
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ratoon {

// Defined in isa/kernels.cpp, which is compiled once for each of them.
namespace baseline {
const KernelTables& kernel_tables();
}
#if defined(__x86_64__)
namespace avx2 {
const KernelTables& kernel_tables();
}
namespace avx512 {
const KernelTables& kernel_tables();
}
#endif

namespace {

struct Isa {
    const char* name;
    bool (*available)();
    const KernelTables& (*tables)();
};

// Best first.
const Isa kIsas[] = {
#if defined(__x86_64__)
    {"avx512",
     [] {
         return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
     },
     avx512::kernel_tables},
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); },
     avx2::kernel_tables},
#endif
    {"baseline", [] { return true; }, baseline::kernel_tables},
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
        const char* named = std::getenv("RATOON_ISA");
        isa = find_isa(named == nullptr || *named == '\0' ? "auto" : named);
        in_use.store(isa, std::memory_order_release);
    }
    return *isa;
}

}  // namespace

template <>
const Kernels<float>& kernels<float>() {
    return chosen().tables().f32;
}
template <>
const Kernels<double>& kernels<double>() {
    return chosen().tables().f64;
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
