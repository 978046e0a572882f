// The Python module of the compiled core. See src/nearlabel/common/engine.py.
#include "bindings.h"
#include "cpu.h"

NB_MODULE(_core, module) {
    using namespace nearlabel;
    nb::set_leak_warnings(false);  // a model alive at interpreter exit is not a leak
    module.doc() = "Compiled kernels, each with a twin in NumPy.";
    module.attr("VERSION") = NEARLABEL_CORE_VERSION;  // setup.py takes it from engine.py
    module.attr("COMPILER") = compiler().c_str();
    module.def("instruction_set", &instruction_set);
    bind_all_pairs(module);
    bind_byte_bounds(module);
    bind_count_changes(module);
    bind_counts(module);
    bind_distances(module);
    bind_living_histograms(module);
    bind_neighbor_lists(module);
    bind_packed_bounds(module);
    bind_reconstruction(module);
    bind_regressions(module);
    bind_scores(module);
    bind_shortlist(module);
    bind_similar_counts(module);
    bind_simplex(module);
    bind_stumps(module);
}
