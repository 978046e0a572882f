// Compares every form of the filter that this machine has with the plain one; prints which it has.
#include "filter.h"

#include <cstdio>
#include <limits>
#include <random>
#include <utility>
#include <vector>

using namespace nearlabel;

namespace {

// What a filter calls, in order: which limit it was (0 the row's, 1 the column's), and the column.
using Calls = std::vector<std::pair<int, std::int64_t>>;

struct Row {
    std::vector<float> bounds, limits;
    float limit;
};

// Each call lowers its limit, as a shortlist does.
template <class Form, bool both>
Calls calls(Row row, float lowered) {
    Calls found;
    filter_with<Form, both>(
        row.bounds.data(), both ? row.limits.data() : nullptr,
        static_cast<std::int64_t>(row.bounds.size()), row.limit,
        [&](std::int64_t j) {
            found.emplace_back(0, j);
            row.limit -= lowered;
        },
        [&](std::int64_t j) {
            found.emplace_back(1, j);
            row.limits[static_cast<std::size_t>(j)] -= lowered;
        });
    return found;
}

// The definition, one bound after the other; for limits that stay as they are.
template <bool both>
Calls expected(const Row& row) {
    Calls found;
    for (std::size_t first = 0; first < row.bounds.size(); first += GROUP) {
        const std::size_t end = std::min(first + GROUP, row.bounds.size());
        for (std::size_t j = first; j < end; ++j)
            if (row.bounds[j] <= row.limit) found.emplace_back(0, j);
        for (std::size_t j = first; both && j < end; ++j)
            if (row.bounds[j] <= row.limits[j]) found.emplace_back(1, j);
    }
    return found;
}

class RandomRows {
public:
    // Few different values, so that many bounds are equal to a limit.
    float value() {
        constexpr float infinite = std::numeric_limits<float>::infinity();
        constexpr float tiny = std::numeric_limits<float>::denorm_min();
        constexpr float values[] = {0.0f, -0.0f, tiny, -tiny, 1.0f, -1.0f, infinite, -infinite};
        return values[random_() % 8];
    }

    Row row() {
        Row result;
        const std::size_t width = random_() % 131;
        const bool is_far = random_() % 2;  // most groups are skipped
        for (std::size_t j = 0; j < width; ++j) {
            result.bounds.push_back(is_far && random_() % 50 ? 3.0f : value());
            if (random_() % 20 == 0) result.bounds.back() = std::numeric_limits<float>::quiet_NaN();
            result.limits.push_back(is_far ? 2.0f * static_cast<float>(random_() % 2) : value());
        }
        result.limit = value();
        return result;
    }

private:
    std::mt19937 random_{0};
};

template <class Form>
bool is_as_plain() {
    RandomRows rows;
    for (int i = 0; i < 20000; ++i) {
        const Row row = rows.row();
        if (calls<Form, false>(row, 0) != expected<false>(row)) return false;
        if (calls<Form, true>(row, 0) != expected<true>(row)) return false;
        const float lowered = 0.5f;
        if (calls<Form, false>(row, lowered) != calls<PlainFilter, false>(row, lowered))
            return false;
        if (calls<Form, true>(row, lowered) != calls<PlainFilter, true>(row, lowered)) return false;
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
