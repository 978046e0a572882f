// Kernels over labels: counting and ranking.
#include "bindings.h"

#include <cstdint>

void bind_labels(nb::module_&) {}
