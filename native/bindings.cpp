#include "bindings.hpp"

#include "claim.hpp"
#include "kernels.hpp"
#include "threads.hpp"

namespace {

void translate(const std::exception_ptr& error, void*) {
    try {
        std::rethrow_exception(error);
    } catch (const ratoon::ArraysInUse& in_use) {
        const auto errors = nanobind::module_::import_("ratoon.errors");
        PyErr_SetString(errors.attr("AlreadyTrainingError").ptr(), in_use.what());
    }
}

}  // namespace

NB_MODULE(_native, m) {
    nanobind::register_exception_translator(&translate);
    // What modules still hold when the interpreter ends is freed by the system, not a leak.
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
