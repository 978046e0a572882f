// Which instructions the kernels may use here, asked of the machine at run time.
//
// A kernel with a faster form writes it under `#ifdef NL_X86` as a function marked NL_TARGET_AVX2,
// and calls it where has_avx2() says so. The rest of the program stays at the baseline of the
// architecture, so that one build runs everywhere.
#pragma once

#include <cstdint>
#ifdef _MSC_VER
#include <intrin.h>
#endif

// ARM64EC says that it is x64, too, but has no AVX2.
#if defined(__x86_64__) || defined(__i386__) || \
    ((defined(_M_X64) || defined(_M_IX86)) && !defined(_M_ARM64EC))
#define NL_X86 1
#include <immintrin.h>
#endif

// MSVC takes intrinsics everywhere; the others only where a function asks for the instructions.
#if defined(NL_X86) && (defined(__GNUC__) || defined(__clang__))
#define NL_TARGET_AVX2 __attribute__((target("avx2,fma")))
#else
#define NL_TARGET_AVX2
#endif

// A body that is compiled anew, for the instructions of each function that calls it.
#if defined(__GNUC__) || defined(__clang__)
#define NL_INLINE inline __attribute__((always_inline))
#else
#define NL_INLINE __forceinline
#endif

// The place of the lowest bit that is set; there is one.
inline int lowest_bit(std::uint64_t bits) {
#ifdef _MSC_VER
    unsigned long place;
    _BitScanForward64(&place, bits);
    return static_cast<int>(place);
#else
    return __builtin_ctzll(bits);
#endif
}

// AVX2 with FMA, on the processor and in the system; false if NEARLABEL_BASELINE is set. Uncached.
bool detect_avx2();

inline bool has_avx2() {
    static const bool found = detect_avx2();
    return found;
}
