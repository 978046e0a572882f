// The kernel that finds the best cut of every feature. Its twin is in
// src/nearlabel/baselines/stumps.py.
#include "bindings.h"
#include "cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace nearlabel {

namespace {

struct Column {
    const std::int32_t* rows;  // rows with values, then rows without
    std::size_t listed, known;
    const std::int32_t* ends;  // of each cut: the number of rows to its left
    std::size_t cuts;
    std::size_t rest;  // the first cut with the rows that are not listed to its left
};

// Labels are processed LANES at a time: LANES weights with the label, then LANES without it. Labels
// that pad the last block have weight 0, and so add nothing.
constexpr std::size_t LANES = 4, BLOCK = 2 * LANES;

struct Weights {
    const double* of_rows;
    const std::uint8_t* reached;
    std::size_t n, blocks;
    const double* total;
};

// Sums of weights: left of a cut, of all rows with values, and of those that are not listed.
struct Sums {
    double *left, *all, *rest;
};

// Results go through a separate array before they are stored: the compiler cannot know that the two
// do not overlap.
NL_INLINE void add(const double* weight, std::size_t blocks, double* sums) {
    for (std::size_t block = 0; block < blocks; ++block, weight += BLOCK, sums += BLOCK) {
        double added[BLOCK];
        for (std::size_t at = 0; at < BLOCK; ++at) added[at] = sums[at] + weight[at];
        for (std::size_t at = 0; at < BLOCK; ++at) sums[at] = added[at];
    }
}

// Adds the reached rows of a part of the list, and returns whether there were any.
NL_INLINE bool add_rows(const Weights& weights, const Column& column, std::size_t begin,
                        std::size_t end, double* sums) {
    bool any = false;
    for (std::size_t at = begin; at < end; ++at) {
        const std::size_t row =
            checked_index(column.rows[at], weights.n, "rows must contain row numbers of weights");
        if (weights.reached[row] == 0) continue;
        add(weights.of_rows + row * weights.blocks * BLOCK, weights.blocks, sums);
        any = true;
    }
    return any;
}

// Sum over labels of sqrt(W+ W-) left and right.
NL_INLINE double divided(const Sums& sums, std::size_t blocks) {
    const double *left = sums.left, *all = sums.all;
    double lanes[LANES] = {0};
    for (std::size_t block = 0; block < blocks; ++block, left += BLOCK, all += BLOCK) {
        for (std::size_t lane = 0; lane < LANES; ++lane) {
            const double with_label = all[lane] - left[lane];
            const double without = all[LANES + lane] - left[LANES + lane];
            lanes[lane] +=
                std::sqrt(left[lane] * left[LANES + lane]) + std::sqrt(with_label * without);
        }
    }
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

NL_INLINE void best_cut(const Column& column, const Weights& weights, const Sums& sums,
                        double* loss, std::int64_t* cut) {
    const std::size_t width = weights.blocks * BLOCK;
    *loss = std::numeric_limits<double>::infinity();
    *cut = 0;
    if (column.cuts == 0) return;
    // Until the cuts are tried, `left` has the rows without values, then all with values.
    std::fill_n(sums.left, width, 0.0);
    add_rows(weights, column, column.known, column.listed, sums.left);
    double missing = 0;
    for (std::size_t at = 0; at < width; ++at) {
        missing += sums.left[at];
        sums.all[at] = weights.total[at] - sums.left[at];
    }
    std::fill_n(sums.left, width, 0.0);
    const bool has_rest = column.listed < weights.n;
    if (has_rest) {
        add_rows(weights, column, 0, column.known, sums.left);
        for (std::size_t at = 0; at < width; ++at) sums.rest[at] = sums.all[at] - sums.left[at];
        std::fill_n(sums.left, width, 0.0);
    }
    std::size_t done = 0;
    for (std::size_t place = 0; place < column.cuts; ++place) {
        const std::int64_t end = column.ends[place];
        require(end >= static_cast<std::int64_t>(done) &&
                    static_cast<std::uint64_t>(end) <= column.known,
                "ends must not decrease, and not exceed the known rows of a column");
        bool changed = add_rows(weights, column, done, static_cast<std::size_t>(end), sums.left);
        done = static_cast<std::size_t>(end);
        if (has_rest && place == column.rest) {
            add(sums.rest, weights.blocks, sums.left);
            changed = true;
        }
        if (!changed && place > 0) continue;  // the rows are divided as by the previous cut
        const double found = missing + 2 * divided(sums, weights.blocks);
        if (found < *loss) {
            *loss = found;
            *cut = static_cast<std::int64_t>(place);
        }
    }
}

// Weights of rows in blocks of labels.
std::vector<double> in_blocks(const Matrix<const double>& weights, std::size_t q,
                              std::size_t blocks) {
    const std::size_t n = weights.shape(0);
    std::vector<double> found(n * blocks * BLOCK);
    for (std::size_t row = 0; row < n; ++row) {
        const double* const given = weights.data() + row * 2 * q;
        double* const own = found.data() + row * blocks * BLOCK;
        for (std::size_t label = 0; label < q; ++label) {
            double* const place = own + label / LANES * BLOCK + label % LANES;
            place[0] = given[label];
            place[LANES] = given[q + label];
        }
    }
    return found;
}

void best_cuts(Matrix<const double> weights, Vector<const std::uint8_t> reached,
               Vector<const std::int32_t> rows, Vector<const std::int64_t> start,
               Vector<const std::int64_t> known, Vector<const std::int64_t> first,
               Vector<const std::int32_t> ends, Vector<const std::int32_t> rest,
               Vector<double> losses, Vector<std::int64_t> cuts) {
    const std::size_t n = weights.shape(0), q = weights.shape(1) / 2, d = known.size();
    require(weights.shape(1) % 2 == 0, "weights must have two columns per label");
    require(reached.size() == n, "reached must have one entry per row of weights");
    check_starts(start, rows.size(),
                 "start must not decrease, and must go from 0 to the size of rows");
    check_starts(first, ends.size(),
                 "first must not decrease, and must go from 0 to the size of ends");
    require(start.size() == d + 1 && first.size() == d + 1 && rest.size() == d &&
                losses.size() == d && cuts.size() == d,
            "start, known, first, rest, losses and cuts must have the same number of columns");
    const std::size_t blocks = (q + LANES - 1) / LANES, width = blocks * BLOCK;
    const std::vector<double> of_rows = in_blocks(weights, q, blocks);
    std::vector<double> memory(4 * width);
    double* const total = memory.data();
    const Sums sums{total + width, total + 2 * width, total + 3 * width};
    const Weights all{of_rows.data(), reached.data(), n, blocks, total};
    for (std::size_t row = 0; row < n; ++row) {
        if (reached.data()[row] != 0) add(of_rows.data() + row * width, blocks, total);
    }
    const auto compute = up_to_avx2<best_cut>();
    for (std::size_t feature = 0; feature < d; ++feature) {
        const auto begin = static_cast<std::size_t>(start.data()[feature]);
        const auto place = static_cast<std::size_t>(first.data()[feature]);
        Column column;
        column.rows = rows.data() + begin;
        column.listed = static_cast<std::size_t>(start.data()[feature + 1]) - begin;
        column.known = checked_index(known.data()[feature], column.listed + 1,
                                     "known must not exceed the number of rows of a column");
        column.ends = ends.data() + place;
        column.cuts = static_cast<std::size_t>(first.data()[feature + 1]) - place;
        column.rest = checked_index(rest.data()[feature], column.cuts + 1,
                                    "rest must be a cut of its column");
        compute(column, all, sums, losses.data() + feature, cuts.data() + feature);
    }
}

}  // namespace

void bind_stumps(nb::module_& module) {
    module.def("best_cuts", &best_cuts, "weights"_array, "reached"_array, "rows"_array,
               "start"_array, "known"_array, "first"_array, "ends"_array, "rest"_array,
               "losses"_array, "cuts"_array, Released());
}

}  // namespace nearlabel
