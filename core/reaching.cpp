// Base rows that have a query within their own limit, from blocks of lower bounds.
//
// src/nearlabel/search/exact/packed_bounds.py defines the bounds. A pair whose bound is within the
// limit of its base row is measured; src/nearlabel/search/exact/reaching.py compares the distance
// itself with the limit.
#include "bindings.h"
#include "distances.h"
#include "filter.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace nearlabel {

namespace {

class Reaching {
public:
    // `limits` has one entry per base row, on the scale of the bounds.
    Reaching(const Rows& queries, const Rows& base, Vector<const float> limits)
        : queries_(queries), base_(base), limits_(std::move(limits)) {
        require_comparable(queries, base);
        require(limits_.shape(0) == static_cast<std::size_t>(base.size()),
                "limits must have one entry per base row");
        require(std::max(queries.size(), base.size()) <= std::numeric_limits<std::int32_t>::max(),
                "queries and base must have fewer than 2^31 rows");
    }

    // Computes the distances of the near pairs in a block of bounds; its columns are the base rows
    // from `row` on.
    void offer(Matrix<const float> block, Vector<const std::int32_t> chosen, std::int64_t row) {
        const auto height = static_cast<std::int64_t>(block.shape(0));
        const auto width = static_cast<std::int64_t>(block.shape(1));
        require(0 <= row && width <= base_.size() && row <= base_.size() - width,
                "block must be within the base rows");
        require(chosen.shape(0) == block.shape(0), "chosen must have one entry per row of block");
        for (std::int64_t i = 0; i < height; ++i)
            require(0 <= chosen.data()[i] && chosen.data()[i] < queries_.size(),
                    "chosen must contain query numbers");
        const std::scoped_lock guard(lock_);
        const float nothing = -std::numeric_limits<float>::infinity();
        Query query;
        for (std::int64_t i = 0; i < height; ++i) {
            const std::size_t before = rows_.size();
            filter<true>(
                block.data() + i * width, 1, width, limits_.data() + row,
                [&](std::int64_t) -> const float& { return nothing; },
                [](std::int64_t, std::int64_t) {},
                [&](std::int64_t, std::int64_t j) {
                    if (limits_.data()[row + j] > nothing)
                        rows_.push_back(static_cast<std::int32_t>(row + j));
                });
            if (rows_.size() == before) continue;
            queries_.load(chosen.data()[i], query);
            asked_.resize(rows_.size(), chosen.data()[i]);
            distances_.resize(rows_.size());
            base_.distances(query, rows_.data() + before,
                            static_cast<std::int64_t>(rows_.size() - before),
                            distances_.data() + before);
        }
    }

    std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }

    // Writes the pairs in the order in which they were found: queries, rows, canonical distances.
    void write(Vector<std::int32_t> queries, Vector<std::int32_t> rows, Vector<double> distances) {
        const std::scoped_lock guard(lock_);
        require(
            has_shape(queries, size()) && has_shape(rows, size()) && has_shape(distances, size()),
            "queries, rows and distances must have one entry per pair");
        std::copy(asked_.begin(), asked_.end(), queries.data());
        std::copy(rows_.begin(), rows_.end(), rows.data());
        std::copy(distances_.begin(), distances_.end(), distances.data());
    }

private:
    const Rows& queries_;
    const Rows& base_;
    Vector<const float> limits_;
    std::vector<std::int32_t> asked_, rows_;
    std::vector<double> distances_;
    std::mutex lock_;
};

}  // namespace

void bind_reaching(nb::module_& module) {
    nb::class_<Reaching>(module, "Reaching", "Base rows that have a query within their limit.")
        .def(nb::init<const Rows&, const Rows&, Vector<const float>>(), nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 3>(), "queries"_a, "base"_a, "limits"_array)
        .def("__len__", &Reaching::size)
        .def("offer", &Reaching::offer, Released(), "block"_array, "chosen"_array, "row"_a)
        .def("write", &Reaching::write, Released(), "queries"_array, "rows"_array,
             "distances"_array);
}

}  // namespace nearlabel
