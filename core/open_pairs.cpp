#include "open_pairs.h"

#include "cpu.h"

#include <algorithm>
#include <cstddef>

namespace nearlabel {

namespace {

// Writes the row numbers of the bits of a word, and returns where the next ones go. Up to 16
// entries behind these may be overwritten.
std::int32_t* expand_baseline(std::int32_t first, std::uint64_t word, std::int32_t* to) {
    for (; word; word &= word - 1) *to++ = first + lowest_bit(word);
    return to;
}

void mark_baseline(const float* values, std::int64_t width, float limit, std::uint64_t* words) {
    for (std::int64_t start = 0; start < width; start += WORD) {
        std::uint64_t word = 0;
        for (std::int64_t j = start; j < std::min(start + WORD, width); ++j)
            word |= std::uint64_t{values[j] <= limit} << (j - start);
        words[start / WORD] = word;
    }
}

#ifdef NL_VNNI
constexpr int LANES = 16;

NL_TARGET_VNNI std::int32_t* expand_avx512(std::int32_t first, std::uint64_t word,
                                           std::int32_t* to) {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    if (!word) return to;
    for (int part = 0; part < WORD; part += LANES, first += LANES) {
        const auto mask = static_cast<__mmask16>(word >> part);
        const __m512i rows = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(mask, rows));
        to += __builtin_popcount(mask);
    }
    return to;
}

NL_TARGET_VNNI void mark_avx512(const float* values, std::int64_t width, float limit,
                                std::uint64_t* words) {
    const __m512 limits = _mm512_set1_ps(limit);
    for (std::int64_t start = 0; start < width; start += WORD) {
        std::uint64_t word = 0;
        for (std::int64_t part = 0; part < WORD && start + part < width; part += LANES) {
            const std::int64_t left = width - start - part;
            const auto real = static_cast<__mmask16>(left < LANES ? (1 << left) - 1 : 0xffff);
            const __m512 some = _mm512_maskz_loadu_ps(real, values + start + part);
            const __mmask16 found = _mm512_mask_cmp_ps_mask(real, some, limits, _CMP_LE_OQ);
            word |= static_cast<std::uint64_t>(found) << part;
        }
        words[start / WORD] = word;
    }
}
#endif

}  // namespace

void OpenPairs::add(std::int64_t query, std::int64_t first, const std::uint64_t* words,
                    std::int64_t count) {
    const auto needed = static_cast<std::size_t>(size_ + (count + 1) * WORD);
    if (rows_.size() < needed) rows_.resize(2 * needed);
    auto expand = expand_baseline;
#ifdef NL_VNNI
    if (has_vnni()) expand = expand_avx512;
#endif
    std::int32_t* end = rows_.data() + size_;
    for (std::int64_t i = 0; i < count; ++i)
        end = expand(static_cast<std::int32_t>(first + i * WORD), words[i], end);
    const std::int64_t stop = end - rows_.data();
    if (stop > size_) runs_.push_back({query, stop});
    size_ = stop;
}

void OpenPairs::clear() {
    size_ = 0;
    runs_.clear();
}

void mark_within(const float* values, std::int64_t width, float limit, std::uint64_t* words) {
#ifdef NL_VNNI
    if (has_vnni()) return mark_avx512(values, width, limit, words);
#endif
    mark_baseline(values, width, limit, words);
}

}  // namespace nearlabel
