#include "bindings.hpp"

#include "kernels.hpp"
#include "threads.hpp"

NB_MODULE(_native, m) {
    // Objects that modules still refer to when the interpreter ends are freed by the system: no
    // leak.
    nanobind::set_leak_warnings(false);
    m.doc() = "The compiled core.  Use it through ratoon.kernels and ratoon.topology.";
    m.def("isa_in_use", &ratoon::isa_in_use);
    m.def("isas_available", &ratoon::isas_available);
    m.def("use_isa", &ratoon::use_isa, nanobind::arg("name"));
    m.def("pool_size", &ratoon::pool_size);
    ratoon::bind_topology(m);
    ratoon::bind_linear(m);
    ratoon::bind_network(m);
    ratoon::bind_evolution(m);
}
