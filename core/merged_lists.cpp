// Merges two sorted neighbor lists of each row. The twin is in
// src/nearlabel/search/exact/merged_lists.py.
#include "bindings.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace nearlabel {

namespace {

// Writes the nearest of both lists of each row, by (distance, row). A list that is not full is
// padded with infinite distances, and so is the result. `offset` is added to `more`.
template <class I>
void merge_lists(Matrix<const I> rows, Matrix<const double> distances,
                 Matrix<const std::int32_t> more, Matrix<const double> more_distances,
                 std::int64_t offset, Matrix<I> new_rows, Matrix<double> new_distances) {
    const std::size_t n = rows.shape(0), a = rows.shape(1), b = more.shape(1);
    const std::size_t k = new_rows.shape(1);
    require(has_shape(distances, n, a) && has_shape(more, n, b) &&
                has_shape(more_distances, n, b) && has_shape(new_rows, n, k) &&
                has_shape(new_distances, n, k),
            "rows and distances must have one row per list");
    for (std::size_t row = 0; row < n; ++row) {
        const I* const near = rows.data() + row * a;
        const double* const far = distances.data() + row * a;
        const std::int32_t* const new_near = more.data() + row * b;
        const double* const new_far = more_distances.data() + row * b;
        std::size_t i = 0, j = 0;
        for (std::size_t place = 0; place < k; ++place) {
            const bool has = i < a && std::isfinite(far[i]);
            const bool has_new = j < b && std::isfinite(new_far[j]);
            const std::int64_t name = has_new ? new_near[j] + offset : 0;
            I result = -1;
            double distance = std::numeric_limits<double>::infinity();
            if (has && (!has_new || far[i] < new_far[j] ||
                        (far[i] == new_far[j] && static_cast<std::int64_t>(near[i]) < name))) {
                result = near[i];
                distance = far[i++];
            } else if (has_new) {
                require(name >= 0 && name <= std::numeric_limits<I>::max(),
                        "more plus offset must fit into the integer type of rows");
                result = static_cast<I>(name);
                distance = new_far[j++];
            }
            new_rows.data()[row * k + place] = result;
            new_distances.data()[row * k + place] = distance;
        }
    }
}

}  // namespace

void bind_merged_lists(nb::module_& module) {
    const auto bind = [&module](auto function) {
        module.def("merge_lists", function, "rows"_array, "distances"_array, "more"_array,
                   "more_distances"_array, "offset"_a, "new_rows"_array, "new_distances"_array,
                   Released());
    };
    bind(&merge_lists<std::int32_t>);
    bind(&merge_lists<std::int64_t>);
}

}  // namespace nearlabel
