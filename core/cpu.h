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

// Asks for memory that is read soon; a hint, so a compiler that has no word for it may ignore it.
inline void prefetch(const void* place) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(place);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
    _mm_prefetch(static_cast<const char*>(place), _MM_HINT_T0);
#elif defined(_MSC_VER) && defined(_M_ARM64)
    __prefetch(place);
#else
    (void)place;
#endif
}

// The place of the lowest bit of a word that is not zero.
inline int lowest_bit(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(word);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    unsigned long place;
    _BitScanForward64(&place, word);
    return static_cast<int>(place);
#else
    int place = 0;
    for (; (word & 1) == 0; word >>= 1) ++place;
    return place;
#endif
}

// AVX2 with FMA, on the processor and in the system; false if NEARLABEL_BASELINE is set. Uncached.
bool detect_avx2();

inline bool has_avx2() {
    static const bool found = detect_avx2();
    return found;
}
