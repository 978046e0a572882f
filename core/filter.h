// The lower bounds of a block that are within a limit, found 32 at a time.
//
// A row of a block has the bounds between one query and many base rows. Each is compared with the
// limit of the query and, if the block is also used for its columns, with that of its column. Few
// are within a limit, so the speed depends on how fast the others are skipped. All variants find
// the same, also for bounds that are NaN: these are within no limit. Limits are never NaN.
#pragma once

#include "cpu.h"

#include <cstdint>

namespace nearlabel {

constexpr std::int64_t GROUP = 32;  // bounds compared at once

// Which bounds of a group are within the limit of the row and of their column: one bit each.
struct Within {
    std::uint32_t row = 0, columns = 0;
};

struct PlainFilter {
    // The start of the next group with a bound within a limit; `end` if there is none.
    template <bool both>
    static std::int64_t next(const float* bounds, const float* column_limits, std::int64_t from,
                             std::int64_t end, float limit) {
        for (; from < end; from += GROUP) {
            int any = 0;
            for (std::int64_t j = 0; j < GROUP; ++j) {
                any |= bounds[from + j] <= limit;
                if constexpr (both) any |= bounds[from + j] <= column_limits[from + j];
            }
            if (any) break;
        }
        return from;
    }

    // The bounds of a group, or of the shorter rest of a row, that are within a limit.
    template <bool both>
    static Within group(const float* bounds, const float* column_limits, std::int64_t first,
                        float limit, std::int64_t size = GROUP) {
        Within found;
        for (std::int64_t j = 0; j < size; ++j) {
            const float bound = bounds[first + j];
            found.row |= std::uint32_t{bound <= limit} << j;
            if constexpr (both)
                found.columns |= std::uint32_t{bound <= column_limits[first + j]} << j;
        }
        return found;
    }
};

#ifdef NL_X86
struct Avx2Filter {
    template <bool both>
    NL_TARGET_AVX2 static std::int64_t next(const float* bounds, const float* column_limits,
                                            std::int64_t from, std::int64_t end, float limit) {
        const __m256 limits = _mm256_set1_ps(limit);
        for (; from < end; from += GROUP) {
            __m256 any = _mm256_setzero_ps();
            for (std::int64_t j = 0; j < GROUP; j += 8) {
                __m256 reach = limits;
                if constexpr (both)
                    reach = _mm256_max_ps(limits, _mm256_loadu_ps(column_limits + from + j));
                const __m256 values = _mm256_loadu_ps(bounds + from + j);
                any = _mm256_or_ps(any, _mm256_cmp_ps(values, reach, _CMP_LE_OQ));
            }
            if (!_mm256_testz_ps(any, any)) break;
        }
        return from;
    }

    template <bool both>
    NL_TARGET_AVX2 static Within group(const float* bounds, const float* column_limits,
                                       std::int64_t first, float limit) {
        const __m256 limits = _mm256_set1_ps(limit);
        Within found;
        for (std::int64_t j = 0; j < GROUP; j += 8) {
            const __m256 values = _mm256_loadu_ps(bounds + first + j);
            found.row |= bits(_mm256_cmp_ps(values, limits, _CMP_LE_OQ)) << j;
            if constexpr (both) {
                const __m256 others = _mm256_loadu_ps(column_limits + first + j);
                found.columns |= bits(_mm256_cmp_ps(values, others, _CMP_LE_OQ)) << j;
            }
        }
        return found;
    }

private:
    NL_TARGET_AVX2 static std::uint32_t bits(__m256 compared) {
        return static_cast<std::uint32_t>(_mm256_movemask_ps(compared));
    }
};
#endif

#ifdef NL_NEON
struct NeonFilter {
    template <bool both>
    static std::int64_t next(const float* bounds, const float* column_limits, std::int64_t from,
                             std::int64_t end, float limit) {
        const float32x4_t limits = vdupq_n_f32(limit);
        for (; from < end; from += GROUP) {
            uint32x4_t any = vdupq_n_u32(0);
            for (std::int64_t j = 0; j < GROUP; j += 4) {
                float32x4_t reach = limits;
                if constexpr (both) reach = vmaxq_f32(limits, vld1q_f32(column_limits + from + j));
                any = vorrq_u32(any, vcleq_f32(vld1q_f32(bounds + from + j), reach));
            }
            if (vmaxvq_u32(any) != 0) break;
        }
        return from;
    }

    template <bool both>
    static Within group(const float* bounds, const float* column_limits, std::int64_t first,
                        float limit) {
        const float32x4_t limits = vdupq_n_f32(limit);
        Within found;
        for (std::int64_t j = 0; j < GROUP; j += 4) {
            const float32x4_t values = vld1q_f32(bounds + first + j);
            found.row |= bits(vcleq_f32(values, limits)) << j;
            if constexpr (both)
                found.columns |= bits(vcleq_f32(values, vld1q_f32(column_limits + first + j))) << j;
        }
        return found;
    }

private:
    static std::uint32_t bits(uint32x4_t compared) {
        const std::uint32_t of_lanes[4] = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(compared, vld1q_u32(of_lanes)));
    }
};
#endif

// See `filter`, which chooses the variant.
template <class Form, bool both, class Limit, class NearQuery, class NearRow>
NL_INLINE void filter_with(const float* block, std::int64_t height, std::int64_t width,
                           const float* column_limits, Limit limit, NearQuery near_query,
                           NearRow near_row) {
    const std::int64_t whole = width - width % GROUP;
    for (std::int64_t i = 0; i < height; ++i) {
        const float* const bounds = block + i * width;
        const float& mine = limit(i);
        for (std::int64_t j = 0; j < width; j += GROUP) {
            j = Form::template next<both>(bounds, column_limits, j, whole, mine);
            Within found =
                j < whole ? Form::template group<both>(bounds, column_limits, j, mine)
                          : PlainFilter::group<both>(bounds, column_limits, j, mine, width - j);
            for (; found.row; found.row &= found.row - 1) near_query(i, j + lowest_bit(found.row));
            for (; found.columns; found.columns &= found.columns - 1)
                near_row(i, j + lowest_bit(found.columns));
        }
    }
}

#ifdef NL_X86
template <bool both, class Limit, class NearQuery, class NearRow>
NL_TARGET_AVX2 void filter_avx2(const float* block, std::int64_t height, std::int64_t width,
                                const float* column_limits, Limit limit, NearQuery near_query,
                                NearRow near_row) {
    filter_with<Avx2Filter, both>(block, height, width, column_limits, limit, near_query, near_row);
}
#endif

// Calls near_query(i, j) for each block[i, j] within limit(i) and, with `both`, near_row(i, j) for
// each within column_limits[j]. The calls may lower the limits: they are read again for each group.
template <bool both, class Limit, class NearQuery, class NearRow>
void filter(const float* block, std::int64_t height, std::int64_t width, const float* column_limits,
            Limit limit, NearQuery near_query, NearRow near_row) {
#if defined(NL_X86)
    if (has_avx2())
        return filter_avx2<both>(block, height, width, column_limits, limit, near_query, near_row);
#elif defined(NL_NEON)
    if (has_neon())
        return filter_with<NeonFilter, both>(block, height, width, column_limits, limit, near_query,
                                             near_row);
#endif
    filter_with<PlainFilter, both>(block, height, width, column_limits, limit, near_query,
                                   near_row);
}

}  // namespace nearlabel
