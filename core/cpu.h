// Which instructions the kernels may use, determined at run time.
//
// A plain loop that AVX2 makes faster is an NL_INLINE function, called by `up_to_avx2`. A function
// with intrinsics is marked NL_TARGET_AVX2, under `#ifdef NL_X86`, and called if has_avx2(). The
// rest of the program stays at the baseline of the architecture, so that one build runs everywhere.
// On ARM, NEON is part of that baseline.
#pragma once

#include <cstdint>
#include <string>
#ifdef _MSC_VER
#include <intrin.h>
#endif

// ARM64EC claims to be x64, but has no AVX2.
#if defined(__x86_64__) || defined(__i386__) || \
    ((defined(_M_X64) || defined(_M_IX86)) && !defined(_M_ARM64EC))
#define NL_X86 1
#include <immintrin.h>
#endif

// A function compiled for AVX2. MSVC has no equivalent: there intrinsics are AVX2 everywhere, and a
// plain loop in such a function stays at the baseline.
#if defined(NL_X86) && (defined(__GNUC__) || defined(__clang__))
#define NL_TARGET_AVX2 __attribute__((target("avx2,fma")))
#else
#define NL_TARGET_AVX2
#endif

// A function compiled for AVX-512 with products of bytes (VNNI). MSVC has no equivalent, and ARM's
// instructions could not be tried.
#if defined(NL_X86) && (defined(__GNUC__) || defined(__clang__))
#define NL_VNNI 1
#define NL_TARGET_VNNI __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")))
#endif

// A body that is compiled again for the instructions of each function that calls it.
#if defined(__GNUC__) || defined(__clang__)
#define NL_INLINE inline __attribute__((always_inline))
#else
#define NL_INLINE __forceinline
#endif

namespace nearlabel {

// Prefetches memory that is read soon; a hint, omitted if the compiler does not support it.
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

// The position of the lowest bit of a nonzero word.
inline int lowest_bit(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(word);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    unsigned long position;
    _BitScanForward64(&position, word);
    return static_cast<int>(position);
#else
    int position = 0;
    for (; (word & 1) == 0; word >>= 1) ++position;
    return position;
#endif
}

// What the processor and the system offer; nothing if NEARLABEL_BASELINE is set. Uncached.
bool detect_avx2();  // with FMA
bool detect_vnni();  // with AVX-512

inline bool has_avx2() {
    static const bool found = detect_avx2();
    return found;
}

inline bool has_vnni() {
    static const bool found = detect_vnni();
    return found;
}

// A function compiled again for each instruction set. It must be NL_INLINE.
template <auto function>
struct Compiled;

template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Compiled<function> {
    static Result baseline(Arguments... arguments) { return function(arguments...); }
    NL_TARGET_AVX2 static Result avx2(Arguments... arguments) { return function(arguments...); }
#ifdef NL_VNNI
    NL_TARGET_VNNI static Result avx512(Arguments... arguments) { return function(arguments...); }
#endif
};

// The variant of a function for this machine: for AVX2 or the baseline.
template <auto function>
auto up_to_avx2() {
    return has_avx2() ? Compiled<function>::avx2 : Compiled<function>::baseline;
}

// The same, or for AVX-512.
template <auto function>
auto up_to_avx512() {
#ifdef NL_VNNI
    if (has_vnni()) return &Compiled<function>::avx512;
#endif
    return up_to_avx2<function>();
}

// For reports: the instructions that the kernels use on this machine, and the compiler.
const char* instruction_set();
std::string compiler();

}  // namespace nearlabel
