// The Python module: the only file that includes nanobind.

#include <nanobind/nanobind.h>

#include "kernels.hpp"

namespace nb = nanobind;

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels of ratoon.  Use ratoon.kernels, which checks what it passes on.";
    m.def("version", &ratoon::baseline::version, "Version of the kernels.");
}
