// Nearest neighbors by brute force: every canonical distance is computed. For small base sets; see
// src/nearlabel/search/exact/row_arithmetic.py.
#include "bindings.h"
#include "distances.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace nearlabel {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Writes the k nearest base rows of each query, ties by row. With `alone`, the queries are the base
// rows, and each is excluded from its own list.
void nearest_rows(const Rows& queries, const Rows& base, bool alone, Matrix<std::int32_t> rows,
                  Matrix<double> distances) {
    const std::int64_t m = queries.size(), n = base.size();
    const auto k = static_cast<std::int64_t>(rows.shape(1));
    require_comparable(queries, base);
    require(!alone || m == n, "queries must be the base rows if alone is true");
    require(n <= std::numeric_limits<std::int32_t>::max(), "base must have fewer than 2^31 rows");
    require(0 < k && k <= n - (alone ? 1 : 0), "k must be from 1 to the number of rows searched");
    require(has_shape(rows, m, k) && has_shape(distances, m, k),
            "rows and distances must have one row per query");
    std::vector<std::int32_t> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    std::vector<double> measured(static_cast<std::size_t>(n));
    std::vector<std::pair<double, std::int32_t>> found;  // a max-heap of the nearest so far
    Query query;
    for (std::int64_t i = 0; i < m; ++i) {
        queries.load(i, query);
        base.distances(query, all.data(), n, measured.data());
        found.clear();
        for (std::int32_t row = 0; row < n; ++row) {
            if (alone && row == i) continue;
            // A NaN, the result of two overflows, would break the order.
            const double distance = std::isnan(measured[row]) ? infinite : measured[row];
            const bool is_full = static_cast<std::int64_t>(found.size()) == k;
            if (is_full && !(distance < found.front().first)) continue;  // equal ones came earlier
            if (is_full) {
                std::pop_heap(found.begin(), found.end());
                found.pop_back();
            }
            found.emplace_back(distance, row);
            std::push_heap(found.begin(), found.end());
        }
        std::sort_heap(found.begin(), found.end());
        require(std::isfinite(found[k - 1].first),
                "a distance to a neighbor is too large for float64; rescale X");
        for (std::int64_t place = 0; place < k; ++place) {
            distances.data()[i * k + place] = found[place].first;
            rows.data()[i * k + place] = found[place].second;
        }
    }
}

}  // namespace

void bind_all_pairs(nb::module_& module) {
    module.def("nearest_rows", &nearest_rows, Released(), "queries"_a, "base"_a, "alone"_a,
               "rows"_array, "distances"_array);
}

}  // namespace nearlabel
