// Compares every form of the filter that this machine has with its definition; prints which it has.
#include "filter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <tuple>
#include <type_traits>
#include <vector>

using namespace nearlabel;

namespace {

// What a filter calls, in order: whether for a column's limit, the row and the column.
using Calls = std::vector<std::tuple<bool, std::size_t, std::size_t>>;

struct Block {
    std::size_t height, width;
    std::vector<float> bounds, row_limits, column_limits;
};

// Each call lowers its limit, as a shortlist does.
template <bool both, class Filter>
Calls calls(Block block, float lowered, Filter filter) {
    Calls found;
    filter(
        block.bounds.data(), static_cast<std::int64_t>(block.height),
        static_cast<std::int64_t>(block.width), both ? block.column_limits.data() : nullptr,
        [&](std::size_t i) -> const float& { return block.row_limits[i]; },
        [&](std::size_t i, std::size_t j) {
            found.emplace_back(false, i, j);
            block.row_limits[i] -= lowered;
        },
        [&](std::size_t i, std::size_t j) {
            found.emplace_back(true, i, j);
            block.column_limits[j] -= lowered;
        });
    return found;
}

// The definition, one bound after the other: limits are read for each group.
template <bool both>
Calls expected(Block block, float lowered) {
    Calls found;
    for (std::size_t i = 0; i < block.height; ++i)
        for (std::size_t first = 0; first < block.width; first += GROUP) {
            const float* const bounds = block.bounds.data() + i * block.width;
            const std::size_t end = std::min<std::size_t>(first + GROUP, block.width);
            const std::size_t begin = found.size();
            for (std::size_t j = first; j < end; ++j)
                if (bounds[j] <= block.row_limits[i]) found.emplace_back(false, i, j);
            for (std::size_t j = first; both && j < end; ++j)
                if (bounds[j] <= block.column_limits[j]) found.emplace_back(true, i, j);
            for (std::size_t call = begin; call < found.size(); ++call) {
                const auto [of_column, row, column] = found[call];
                (of_column ? block.column_limits[column] : block.row_limits[row]) -= lowered;
            }
        }
    return found;
}

class RandomBlocks {
public:
    Block next() {
        Block block{random_() % 4, random_() % 131, {}, {}, {}};
        const bool is_far = random_() % 2;  // most groups are skipped
        for (std::size_t i = 0; i < block.height * block.width; ++i)
            block.bounds.push_back(is_far && random_() % 50 ? 3.0f : bound());
        for (std::size_t i = 0; i < block.height; ++i) block.row_limits.push_back(limit());
        for (std::size_t j = 0; j < block.width; ++j)
            block.column_limits.push_back(is_far ? static_cast<float>(random_() % 2) : limit());
        return block;
    }

private:
    // Few different values, so that many bounds are equal to a limit.
    float limit() {
        constexpr float infinite = std::numeric_limits<float>::infinity();
        constexpr float tiny = std::numeric_limits<float>::denorm_min();
        constexpr float values[] = {0.0f, -0.0f, tiny, -tiny, 1.0f, -1.0f, infinite, -infinite};
        return values[random_() % 8];
    }

    float bound() {
        return random_() % 20 == 0 ? std::numeric_limits<float>::quiet_NaN() : limit();
    }

    std::mt19937 random_{0};
};

template <bool both, class Filter>
bool is_as_defined(Filter filter) {
    RandomBlocks blocks;
    for (int i = 0; i < 20000; ++i) {
        const Block block = blocks.next();
        for (const float lowered : {0.0f, 0.5f})
            if (calls<both>(block, lowered, filter) != expected<both>(block, lowered)) return false;
    }
    return true;
}

int report(const char* name, bool same) {
    std::printf("%s %s\n", name, same ? "same" : "different");
    return same ? 0 : 1;
}

}  // namespace

int main() {
    const auto plain = [](auto both) {
        return [=](auto... how) { filter_groups<both.value>(how...); };
    };
    using One = std::false_type;
    using Both = std::true_type;
    int different = report(
        "baseline", is_as_defined<false>(plain(One())) && is_as_defined<true>(plain(Both())));
#ifdef NL_X86
    const auto avx2 = [](auto both) {
        return [=](auto... how) { filter_avx2<both.value>(how...); };
    };
    if (has_avx2())
        different +=
            report("avx2", is_as_defined<false>(avx2(One())) && is_as_defined<true>(avx2(Both())));
#endif
    return different;
}
