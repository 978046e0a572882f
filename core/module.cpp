// What Python sees of the compiled core. See src/nearlabel/common/engine.py.
#include "bindings.h"

NB_MODULE(_core, module) {
    nb::set_leak_warnings(false);  // a model that lives until the interpreter ends is no leak
    module.doc() = "Compiled kernels; each has a twin in NumPy.";
    bind_admissible(module);
    bind_cpu(module);
    bind_gram(module);
    bind_labels(module);
    bind_neighbors(module);
    bind_places(module);
    bind_ranking(module);
    bind_regressions(module);
    bind_rows(module);
    bind_products(module);
    bind_shortlist(module);
    bind_simplex(module);
    bind_sweep(module);
}
