// Floating-point arithmetic exactly as written: every operation is rounded.
//
// Results must be the same to the last bit on every machine, with every compiler and in NumPy, so
// no multiplication may be fused with an addition. bindings.h includes this file, and through it
// every file of the core. GCC has no pragma for it: setup.py passes -ffp-contract=off.
#pragma once

#include <cfloat>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(_MSC_VER)
#pragma fp_contract(off)  // before Visual Studio 2022, /fp:precise fuses where the processor can
#endif

// A build that cannot guarantee this must fail: the installation then continues without it, and
// NumPy is used.
static_assert(FLT_EVAL_METHOD == 0, "intermediate results must not be wider than their type");
#if defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "-ffast-math and /fp:fast change results"
#endif
