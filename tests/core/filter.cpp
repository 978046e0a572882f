// Compares every form of the filter that this machine has with the plain one; prints which it has.
#include "filter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <tuple>
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
template <class Form, bool both>
Calls calls(Block block, float lowered) {
    Calls found;
    filter_with<Form, both>(
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

// The definition, one bound after the other; for limits that stay as they are.
template <bool both>
Calls expected(const Block& block) {
    Calls found;
    for (std::size_t i = 0; i < block.height; ++i)
        for (std::size_t first = 0; first < block.width; first += GROUP) {
            const float* const bounds = block.bounds.data() + i * block.width;
            const std::size_t end = std::min<std::size_t>(first + GROUP, block.width);
            for (std::size_t j = first; j < end; ++j)
                if (bounds[j] <= block.row_limits[i]) found.emplace_back(false, i, j);
            for (std::size_t j = first; both && j < end; ++j)
                if (bounds[j] <= block.column_limits[j]) found.emplace_back(true, i, j);
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

template <class Form>
bool is_as_plain() {
    RandomBlocks blocks;
    for (int i = 0; i < 20000; ++i) {
        const Block block = blocks.next();
        if (calls<Form, false>(block, 0) != expected<false>(block)) return false;
        if (calls<Form, true>(block, 0) != expected<true>(block)) return false;
        const float lowered = 0.5f;
        if (calls<Form, false>(block, lowered) != calls<PlainFilter, false>(block, lowered))
            return false;
        if (calls<Form, true>(block, lowered) != calls<PlainFilter, true>(block, lowered))
            return false;
    }
    return true;
}

template <class Form>
int report(const char* name) {
    const bool same = is_as_plain<Form>();
    std::printf("%s %s\n", name, same ? "same" : "different");
    return same ? 0 : 1;
}

}  // namespace

int main() {
    int different = report<PlainFilter>("baseline");
#ifdef NL_X86
    if (has_avx2()) different += report<Avx2Filter>("avx2");
#endif
#ifdef NL_NEON
    if (has_neon()) different += report<NeonFilter>("neon");
#endif
    return different;
}
