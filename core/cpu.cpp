// Properties of this build and of the machine.
#include "cpu.h"

#include <cstdlib>
#include <cstring>

namespace nearlabel {

namespace {

// For the tests, which run every variant of the kernels on one machine.
bool baseline_is_forced() {
    const char* setting = std::getenv("NEARLABEL_BASELINE");
    return setting && *setting && std::strcmp(setting, "0") != 0;
}

}  // namespace

bool detect_avx2() {
    if (baseline_is_forced()) return false;
#if !defined(NL_X86)
    return false;
#elif defined(__GNUC__) || defined(__clang__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    int found[4];
    __cpuid(found, 0);
    if (found[0] < 7) return false;
    __cpuidex(found, 1, 0);
    const int fma = 1 << 12, saves_registers = 1 << 27, avx = 1 << 28;
    const int needed = fma | saves_registers | avx;
    if ((found[2] & needed) != needed) return false;
    if ((_xgetbv(0) & 6) != 6) return false;  // the system saves the AVX registers
    __cpuidex(found, 7, 0);
    const int avx2 = 1 << 5;
    return (found[1] & avx2) != 0;
#endif
}

bool detect_vnni() {
#ifdef NL_VNNI
    if (!detect_avx2()) return false;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

const char* instruction_set() {
#ifdef __aarch64__
    return "neon";
#endif
    if (has_vnni()) return "avx2 and avx512-vnni";
    if (!has_avx2()) return "baseline";
#if defined(__GNUC__) || defined(__clang__) || defined(__AVX2__)
    return "avx2";
#else
    return "avx2 intrinsics";  // MSVC compiles loops for the baseline: see NL_TARGET_AVX2
#endif
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

}  // namespace nearlabel
