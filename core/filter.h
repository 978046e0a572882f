// The lower bounds of a block that are within a limit, found 32 at a time.
//
// A row of a block has the bounds between one query and many base rows. Each is compared with the
// limit of the query and, if the block is also used for its columns, with that of its column. Few
// are within a limit, so the speed depends on how fast the others are skipped. A bound that is NaN
// is within no limit. Limits are never NaN.
#pragma once

#include "cpu.h"

#include <algorithm>
#include <cstdint>

namespace nearlabel {

constexpr std::int64_t GROUP = 32;  // bounds compared at once

// The start of the next group with a bound within a limit; `end` if there is none.
template <bool both>
NL_INLINE std::int64_t next_near(const float* bounds, const float* column_limits, std::int64_t from,
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

// Calls near_query(i, j) for each block[i, j] within limit(i) and, with `both`, near_row(i, j) for
// each within column_limits[j]. The calls may lower the limits: they are read again for each group.
template <bool both, class Limit, class NearQuery, class NearRow>
NL_INLINE void filter_groups(const float* block, std::int64_t height, std::int64_t width,
                             const float* column_limits, Limit limit, NearQuery near_query,
                             NearRow near_row) {
    const std::int64_t whole = width - width % GROUP;
    for (std::int64_t i = 0; i < height; ++i) {
        const float* const bounds = block + i * width;
        const float& mine = limit(i);
        for (std::int64_t first = 0; first < width; first += GROUP) {
            first = next_near<both>(bounds, column_limits, first, whole, mine);
            const std::int64_t size = std::min(GROUP, width - first);
            std::uint32_t row = 0, columns = 0;  // one bit for each bound
            for (std::int64_t j = 0; j < size; ++j) {
                const float bound = bounds[first + j];
                row |= std::uint32_t{bound <= mine} << j;
                if constexpr (both)
                    columns |= std::uint32_t{bound <= column_limits[first + j]} << j;
            }
            for (; row; row &= row - 1) near_query(i, first + lowest_bit(row));
            for (; columns; columns &= columns - 1) near_row(i, first + lowest_bit(columns));
        }
    }
}

#ifdef NL_X86
template <bool both, class Limit, class NearQuery, class NearRow>
NL_TARGET_AVX2 void filter_avx2(const float* block, std::int64_t height, std::int64_t width,
                                const float* column_limits, Limit limit, NearQuery near_query,
                                NearRow near_row) {
    filter_groups<both>(block, height, width, column_limits, limit, near_query, near_row);
}
#endif

// The same with the instructions of this machine.
template <bool both, class Limit, class NearQuery, class NearRow>
void filter(const float* block, std::int64_t height, std::int64_t width, const float* column_limits,
            Limit limit, NearQuery near_query, NearRow near_row) {
#ifdef NL_X86
    if (has_avx2())
        return filter_avx2<both>(block, height, width, column_limits, limit, near_query, near_row);
#endif
    filter_groups<both>(block, height, width, column_limits, limit, near_query, near_row);
}

}  // namespace nearlabel
