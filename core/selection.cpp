#include "selection.h"

#include "cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace nearlabel {

namespace {

NL_INLINE std::int64_t count_within(const float* values, std::int64_t size, float limit) {
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < size; ++i) count += values[i] <= limit;
    return count;
}

// Bisection by counting takes a fraction of the time of a selection.
NL_INLINE float close_in(const float* values, std::int64_t size, std::int64_t k) {
    constexpr int LANES = 16;  // one register of AVX-512
    float lows[LANES], highs[LANES], sums[LANES] = {}, squares[LANES] = {};
    for (int lane = 0; lane < LANES; ++lane) lows[lane] = highs[lane] = values[0];
    for (std::int64_t i = 0; i + LANES <= size; i += LANES)
        for (int lane = 0; lane < LANES; ++lane) {
            const float value = values[i + lane];
            lows[lane] = value < lows[lane] ? value : lows[lane];
            highs[lane] = value > highs[lane] ? value : highs[lane];
            sums[lane] += value;
            squares[lane] += value * value;
        }
    float low = *std::min_element(lows, lows + LANES);
    float high = *std::max_element(highs, highs + LANES);
    for (std::int64_t i = size - size % LANES; i < size; ++i) {
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
    }
    const std::int64_t spare = k / 16;
    const auto aim = static_cast<float>(k) + static_cast<float>(spare) / 2;
    // The first guess is right for a normal distribution, whose quantiles are close to those of a
    // logistic one.
    const auto whole = static_cast<float>(std::max<std::int64_t>(size - size % LANES, 1));
    const float mean = std::accumulate(sums, sums + LANES, 0.0f) / whole;
    const float variance = std::accumulate(squares, squares + LANES, 0.0f) / whole - mean * mean;
    const float odds = aim / (static_cast<float>(size) - aim);
    const float guess = mean + 0.5513f * std::log(odds) * std::sqrt(variance);
    std::int64_t below = 0, within = size;
    for (int tries = 0; tries < 32 && within > k + spare; ++tries) {
        // Then interpolates as if the values were evenly spread; every third time bisects, in case
        // they are not.
        const float share = (aim - static_cast<float>(below)) / static_cast<float>(within - below);
        const float part = tries % 3 == 2 ? 0.5f : std::min(std::max(share, 0.03f), 0.97f);
        const bool is_first = tries == 0 && low < guess && guess < high;
        const float middle = is_first ? guess : low + (high - low) * part;
        if (!(low < middle && middle < high)) break;
        const std::int64_t found = count_within(values, size, middle);
        if (found < k) {
            low = middle;
            below = found;
        } else {
            high = middle;
            within = found;
        }
    }
    return high;
}

NL_INLINE void count_smaller(const double* values, std::int64_t size, std::int32_t* ranks) {
    for (std::int64_t i = 0; i < size; ++i) {
        const double value = values[i];
        std::int64_t smaller = 0;
        for (std::int64_t j = 0; j < size; ++j) smaller += values[j] < value;
        ranks[i] = static_cast<std::int32_t>(smaller);
    }
}

}  // namespace

float limit_of(const float* values, std::int64_t size, std::int64_t k) {
    return up_to_avx512<close_in>()(values, size, k);
}

void ranks_of(const double* values, std::int64_t size, std::int32_t* ranks) {
    up_to_avx512<count_smaller>()(values, size, ranks);
}

}  // namespace nearlabel
