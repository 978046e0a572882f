// What this build is and what the machine can do.
#include "cpu.h"

#include "bindings.h"

#include <cfloat>
#include <cstdlib>
#include <cstring>
#include <string>

// Distances are sums that round to float64 after each step. A build that cannot promise this must
// fail: the installation goes on without it, and NumPy computes.
static_assert(FLT_EVAL_METHOD == 0, "the canonical distances need plain float64 arithmetic");
#ifdef __FAST_MATH__
#error "-ffast-math changes results"
#endif

namespace {

// For the tests, which run the kernels in both forms on one machine.
bool baseline_is_forced() {
    const char* setting = std::getenv("NEARLABEL_BASELINE");
    return setting && *setting && std::strcmp(setting, "0") != 0;
}

std::string compiler() {
#if defined(__clang__)
    return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#elif defined(__GNUC__)
    return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#elif defined(_MSC_VER)
    return "MSVC " + std::to_string(_MSC_VER);
#else
    return "unknown compiler";
#endif
}

}  // namespace

bool detect_avx2() {
    if (baseline_is_forced()) return false;
#if !defined(NL_X86)
    return false;
#elif defined(_MSC_VER)
    int found[4];
    __cpuid(found, 0);
    if (found[0] < 7) return false;
    __cpuidex(found, 1, 0);
    const int fma = 1 << 12, saves_registers = 1 << 27, avx = 1 << 28;
    const int needed = fma | saves_registers | avx;
    if ((found[2] & needed) != needed) return false;
    if ((_xgetbv(0) & 6) != 6) return false;  // the system keeps the wide registers of a thread
    __cpuidex(found, 7, 0);
    const int avx2 = 1 << 5;
    return (found[1] & avx2) != 0;
#else
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
}

void bind_cpu(nb::module_& module) {
    module.attr("VERSION") = CORE_VERSION;
    module.attr("COMPILER") = compiler().c_str();
    module.def("instruction_set", [] { return has_avx2() ? "avx2" : "baseline"; });
}
