// One pass over the neighbors of neighbors, which finds neighbors that an approximate search has
// missed.
//
// Rows are sorted so that near rows are next to each other: what one row loads into the cache is
// used again by the next. `names` has their row numbers in the order of the user.
#include "bindings.h"
#include "cpu.h"
#include "distances.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace nearlabel {

namespace {

// By distance, ties by name.
using Neighbor = std::pair<float, std::int32_t>;

// Sorts a list whose last entries only are unsorted: each is inserted, unless there are many.
void sort_nearly_sorted(std::vector<Neighbor>& list, std::size_t came_last) {
    if (came_last > 64) return std::sort(list.begin(), list.end());
    for (std::size_t i = 1; i < list.size(); ++i) {
        const Neighbor one = list[i];
        std::size_t place = i;
        for (; place > 0 && one < list[place - 1]; --place) list[place] = list[place - 1];
        list[place] = one;
    }
}

class Pass {
public:
    Pass(const Rows& base, Matrix<const std::int32_t> rows, Matrix<const float> distances,
         Vector<const std::int32_t> names)
        : base_(base),
          rows_(std::move(rows)),
          distances_(std::move(distances)),
          names_(std::move(names)),
          n_(static_cast<std::int64_t>(rows_.shape(0))),
          k_(static_cast<std::int64_t>(rows_.shape(1))) {
        require(k_ > 0, "rows must have at least one column");
        require(base.size() == n_ && distances_.shape(0) == rows_.shape(0) &&
                    distances_.shape(1) == rows_.shape(1) && names_.shape(0) == rows_.shape(0),
                "rows, distances and names must have one entry per base row");
        seen_.assign(static_cast<std::size_t>(n_), -1);
    }

    // The k nearest of a row's neighbors and of those of its first `through` neighbors.
    const std::vector<Neighbor>& look(std::int64_t row, std::int64_t through) {
        list_.clear();
        candidates_.clear();
        const auto mark = static_cast<std::int32_t>(row);
        seen_[row] = mark;
        for (std::int64_t place = 0; place < k_; ++place) {
            const std::int32_t other = neighbor(row, place);
            seen_[other] = mark;
            list_.emplace_back(distances_.data()[row * k_ + place], name(other));
        }
        for (std::int64_t place = 0; place < through; ++place) {
            const std::int32_t between = neighbor(row, place);
            for (std::int64_t i = 0; i < k_; ++i) {
                const std::int32_t other = neighbor(between, i);
                if (seen_[other] == mark) continue;
                seen_[other] = mark;
                candidates_.push_back(other);
            }
        }
        // Rounded up: a distance is rounded to the nearest float.
        const double limit = distances_.data()[row * k_ + k_ - 1];
        base_.drop_far(row, limit * (1 + 1e-6), candidates_);
        if (!candidates_.empty()) {
            base_.load(row, query_);
            measured_.resize(candidates_.size());
            base_.distances(query_, candidates_.data(),
                            static_cast<std::int64_t>(candidates_.size()), measured_.data());
            for (std::size_t i = 0; i < candidates_.size(); ++i) {
                const auto distance = static_cast<float>(measured_[i]);
                if (distance <= limit) list_.emplace_back(distance, name(candidates_[i]));
            }
        }
        sort_nearly_sorted(list_, list_.size() - static_cast<std::size_t>(k_));
        return list_;
    }

    std::int64_t size() const { return n_; }
    std::int64_t k() const { return k_; }
    std::int32_t name(std::int64_t row) const { return checked(names_.data()[row]); }

private:
    std::int32_t neighbor(std::int64_t row, std::int64_t place) const {
        return checked(rows_.data()[row * k_ + place]);
    }

    std::int32_t checked(std::int32_t row) const {
        require(0 <= row && row < n_, "rows and names must contain base rows");
        return row;
    }

    const Rows& base_;
    Matrix<const std::int32_t> rows_;
    Matrix<const float> distances_;
    Vector<const std::int32_t> names_;
    std::int64_t n_, k_;
    std::vector<std::int32_t> seen_;  // the last row that has seen each row
    std::vector<std::int32_t> candidates_;
    std::vector<double> measured_;
    std::vector<Neighbor> list_;
    Query query_;
};

// Writes the neighbors, by name, of the rows from `first` to before `last`, in their order.
void look_at_neighbors(const Rows& base, Matrix<const std::int32_t> rows,
                       Matrix<const float> distances, Vector<const std::int32_t> names,
                       std::int64_t first, std::int64_t last, std::int64_t through,
                       Matrix<std::int32_t> new_rows, Matrix<float> new_distances) {
    require(rows.shape(0) <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
            "rows must have fewer than 2^31 rows");
    Pass pass(base, rows, distances, std::move(names));
    require(
        0 <= first && first <= last && last <= pass.size() && 0 <= through && through <= pass.k(),
        "first and last must be within the rows, and through within their neighbors");
    require(new_rows.shape(0) == static_cast<std::size_t>(last - first) &&
                new_rows.shape(1) == rows.shape(1) && new_distances.shape(0) == new_rows.shape(0) &&
                new_distances.shape(1) == rows.shape(1),
            "new_rows and new_distances must have last - first rows");
    for (std::int64_t row = first; row < last; ++row) {
        const auto& list = pass.look(row, through);
        const std::int64_t to = (row - first) * pass.k();
        for (std::int64_t place = 0; place < pass.k(); ++place) {
            new_distances.data()[to + place] = list[static_cast<std::size_t>(place)].first;
            new_rows.data()[to + place] = list[static_cast<std::size_t>(place)].second;
        }
    }
}

}  // namespace

void bind_neighbors_of_neighbors(nb::module_& module) {
    module.def("look_at_neighbors", &look_at_neighbors, Released(), "base"_a, "rows"_a.noconvert(),
               "distances"_a.noconvert(), "names"_a.noconvert(), "first"_a, "last"_a, "through"_a,
               "new_rows"_a.noconvert(), "new_distances"_a.noconvert());
}

}  // namespace nearlabel
