// The kernels; compiled once per instruction set into the namespace of that name.

#include "kernels.hpp"

namespace ratoon::RATOON_ISA {

const char* version() { return "0.1.0"; }

}  // namespace ratoon::RATOON_ISA
