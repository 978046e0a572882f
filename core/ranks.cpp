// Kernels that find the ranks of given labels in the order of scores. Their twins are in
// src/nearlabel/labels/ranks.py and src/nearlabel/labels/scores.py.
#include "label_rows.h"

#include <algorithm>

namespace nearlabel {

namespace {

constexpr const char* WRONG_TRUTH = "Y must have an indptr that fits its indices";
constexpr const char* WRONG_TOUCHED = "touched must have entries that fit its rows and labels";
constexpr const char* WRONG_ORDER = "order must contain labels";
constexpr const char* NOT_A_GROUP = "group must contain row numbers of the defaults";

// Labels ahead of one label: with a larger score, and with the same one in a lower and in a higher
// column.
struct Standing {
    std::int64_t above = 0, lower = 0, higher = 0;

    void count(double score, double mine, std::int64_t column, std::int64_t label,
               std::int64_t weight) {
        above += score > mine ? weight : 0;
        lower += score == mine && column < label ? weight : 0;
        higher += score == mine && column > label ? weight : 0;
    }
};

// The requested labels, row by row, and the results for each.
class Asked {
public:
    Asked(const Vector<const std::int64_t>& indptr, const Vector<const std::int64_t>& indices,
          const Vector<std::int64_t>& above, const Vector<std::int64_t>& lower,
          const Vector<std::int64_t>& higher)
        : rows_(indptr, indices.size(), WRONG_TRUTH),
          labels_(indices.data()),
          above_(above.data()),
          lower_(lower.data()),
          higher_(higher.data()) {
        require(above.size() == indices.size() && lower.size() == indices.size() &&
                    higher.size() == indices.size(),
                "above, lower and higher must have one entry per label of Y");
    }

    std::size_t rows() const { return rows_.rows(); }

    // Calls `standing` with each label of a row.
    template <class Find>
    void of(std::size_t row, std::size_t q, Find standing) const {
        std::size_t begin, end;
        rows_.row(row, begin, end);
        for (std::size_t at = begin; at < end; ++at) {
            const Standing found = standing(checked_index(labels_[at], q, NOT_A_LABEL));
            above_[at] = found.above;
            lower_[at] = found.lower;
            higher_[at] = found.higher;
        }
    }

private:
    CsrRows<std::int64_t> rows_;
    const std::int64_t* labels_;
    std::int64_t *above_, *lower_, *higher_;
};

// The position of a label among the scores of all labels.
NL_INLINE Standing standing_in_dense(const double* scores, std::size_t label, std::size_t q) {
    const double mine = scores[label];
    std::int64_t above = 0, same = 0;
    for (std::size_t l = 0; l < q; ++l) {
        above += scores[l] > mine;
        same += scores[l] == mine;
    }
    Standing found;
    found.above = above;
    if (same > 1) {  // rare: determine on which side of the label the others are
        for (std::size_t l = 0; l < label; ++l) found.lower += scores[l] == mine;
        found.higher = same - 1 - found.lower;
    }
    return found;
}

// The positions of labels of Y in rows with a score for every label.
void places_in_dense(Matrix<const double> scores, Vector<const std::int64_t> indptr,
                     Vector<const std::int64_t> indices, Vector<std::int64_t> above,
                     Vector<std::int64_t> lower, Vector<std::int64_t> higher) {
    const Asked asked(indptr, indices, above, lower, higher);
    const std::size_t q = scores.shape(1);
    require(asked.rows() == scores.shape(0), "Y and scores must have the same number of rows");
    const auto standing = up_to_avx2<standing_in_dense>();
    for (std::size_t row = 0; row < asked.rows(); ++row) {
        const double* const score = scores.data() + row * q;
        asked.of(row, q, [=](std::size_t label) { return standing(score, label, q); });
    }
}

// The positions of labels of Y in rows of touched labels, sorted by column, with defaults for the
// rest: all labels by their defaults, minus the touched by theirs, plus the touched by their
// scores.
template <class I>
void places_in_touched(Vector<const I> touched_indptr, Vector<const I> touched_indices,
                       Vector<const double> touched_scores, Vector<const std::int64_t> group,
                       Matrix<const double> values, Matrix<const std::int64_t> order,
                       Vector<const std::int64_t> indptr, Vector<const std::int64_t> indices,
                       Vector<std::int64_t> above, Vector<std::int64_t> lower,
                       Vector<std::int64_t> higher) {
    const Asked asked(indptr, indices, above, lower, higher);
    const CsrRows<I> touched(touched_indptr, touched_scores.size(), WRONG_TOUCHED);
    const std::size_t n = asked.rows(), q = values.shape(1);
    require(touched.rows() == n && group.size() == n,
            "Y, touched and group must have the same number of rows");
    require(touched_indices.size() == touched_scores.size(), WRONG_TOUCHED);
    require(has_shape(order, values.shape(0), q), "order must have the shape of the defaults");
    for (std::size_t row = 0; row < n; ++row) {
        std::size_t begin, end;
        touched.row(row, begin, end);
        const I* const first = touched_indices.data() + begin;
        const I* const last = touched_indices.data() + end;
        const double* const score = touched_scores.data() + begin;
        for (const I* column = first; column != last; ++column)
            checked_index(*column, q, WRONG_TOUCHED);
        const std::size_t g = checked_index(group.data()[row], values.shape(0), NOT_A_GROUP);
        const double* const value = values.data() + g * q;
        const std::int64_t* const best = order.data() + g * q;
        asked.of(row, q, [=](std::size_t label) {
            const auto l = static_cast<std::int64_t>(label);
            const I* const own = std::lower_bound(first, last, static_cast<I>(label));
            const bool has = own != last && *own == static_cast<I>(label);
            const double mine = has ? score[own - first] : value[label];

            // By defaults: those before `tied` are larger, those from `tied` to `rest` the same, in
            // the order of their columns.
            const auto value_of = [=](std::int64_t one) {
                return value[checked_index(one, q, WRONG_ORDER)];
            };
            const std::int64_t* const tied = std::partition_point(
                best, best + q, [=](std::int64_t one) { return value_of(one) > mine; });
            const std::int64_t* const rest = std::partition_point(
                tied, best + q, [=](std::int64_t one) { return value_of(one) == mine; });
            const std::int64_t* const from = std::lower_bound(tied, rest, l);
            Standing found;
            found.above = tied - best;
            found.lower = from - tied;
            found.higher = rest - from - (from != rest && *from == l);
            for (std::size_t at = 0; at < static_cast<std::size_t>(last - first); ++at) {
                const auto column = static_cast<std::int64_t>(first[at]);
                found.count(value[first[at]], mine, column, l, -1);
                found.count(score[at], mine, column, l, 1);
            }
            return found;
        });
    }
}

// For each label of Y, the number of labels of its row with the same or a better rank.
void at_or_above(Vector<const std::int64_t> indptr, Vector<const std::int64_t> ranks,
                 Vector<std::int64_t> out) {
    const CsrRows<std::int64_t> rows(indptr, ranks.size(), WRONG_TRUTH);
    require(ranks.size() == out.size(), "ranks and out must have the same size");
    constexpr std::size_t FEW = 32;  // comparing this many is faster than sorting
    std::vector<std::int64_t> sorted;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
        std::size_t begin, end;
        rows.row(row, begin, end);
        const std::int64_t *const first = ranks.data() + begin, *const last = ranks.data() + end;
        if (end - begin > FEW) {
            sorted.assign(first, last);
            std::sort(sorted.begin(), sorted.end());
        }
        for (std::size_t at = begin; at < end; ++at) {
            const std::int64_t mine = ranks.data()[at];
            out.data()[at] =
                end - begin > FEW
                    ? std::upper_bound(sorted.begin(), sorted.end(), mine) - sorted.begin()
                    : std::count_if(first, last, [=](std::int64_t rank) { return rank <= mine; });
        }
    }
}

}  // namespace

void bind_ranks(nb::module_& module) {
    const auto bind = [&module](auto function) {
        module.def("places_in_touched", function, "touched_indptr"_array, "touched_indices"_array,
                   "touched_scores"_array, "group"_array, "values"_array, "order"_array,
                   "indptr"_array, "indices"_array, "above"_array, "lower"_array, "higher"_array,
                   Released());
    };
    bind(&places_in_touched<std::int32_t>);
    bind(&places_in_touched<std::int64_t>);
    module.def("places_in_dense", &places_in_dense, "scores"_array, "indptr"_array, "indices"_array,
               "above"_array, "lower"_array, "higher"_array, Released());
    module.def("at_or_above", &at_or_above, "indptr"_array, "ranks"_array, "out"_array, Released());
}

}  // namespace nearlabel
