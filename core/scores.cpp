// Kernels over label scores: the best labels, and the ranks of given ones. Their twins are in
// src/nearlabel/labels/scores.py and src/nearlabel/labels/ranks.py.
#include "label_rows.h"

#include <algorithm>
#include <cstring>

namespace nearlabel {

namespace {

// The bits of a score as an integer with the same order. Integers are always ordered, so that a NaN
// cannot break a sort; the two zeros are equal.
std::int64_t key(double score) {
    std::int64_t bits;
    const double one_zero = score + 0.0;
    std::memcpy(&bits, &one_zero, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

struct Scored {
    double score;
    std::int32_t label;
};

// Better scores first, ties in the order of the columns.
bool before(const Scored& a, const Scored& b) {
    const std::int64_t of_a = key(a.score), of_b = key(b.score);
    return of_a != of_b ? of_a > of_b : a.label < b.label;
}

// The r best labels, one row after another.
class Best {
public:
    explicit Best(std::size_t r) : r_(r) {}

    // Those of a row, best first. `scores` are in the order of the columns, and `label` returns the
    // column of each.
    template <class Label>
    const std::vector<Scored>& of(const double* scores, std::size_t size, Label label) {
        const std::size_t at_once = std::min(size, r_);
        list_.clear();
        for (std::size_t at = 0; at < at_once; ++at) list_.push_back({scores[at], label(at)});
        if (size > r_) {
            std::make_heap(list_.begin(), list_.end(), before);  // the worst is at the front
            for (std::size_t at = r_; at < size; ++at) {
                // An equal score is in a higher column than the one kept.
                if (scores[at] > list_.front().score) replace_worst({scores[at], label(at)});
            }
        }
        std::sort(list_.begin(), list_.end(), before);
        return list_;
    }

private:
    // Puts one at the front of the heap, and sifts it down.
    void replace_worst(Scored one) {
        Scored* const heap = list_.data();
        std::size_t hole = 0;
        for (std::size_t child = 1; child < r_; child = 2 * hole + 1) {
            if (child + 1 < r_ && before(heap[child], heap[child + 1])) ++child;
            if (!before(one, heap[child])) break;
            heap[hole] = heap[child];
            hole = child;
        }
        heap[hole] = one;
    }

    std::size_t r_;
    std::vector<Scored> list_;
};

constexpr const char* WRONG_ENTRIES = "touched must have an indptr that fits its entries";
constexpr const char* WRONG_LABEL = "touched must contain labels";
constexpr const char* WRONG_ORDER = "order must contain each label once";

// The labels that a row touches, their scores, and the scores of all others: the defaults of its
// group. The labels are checked by those who use them.
template <class I>
struct ScoredRow {
    Span<I> labels;
    const double* scores;
    std::size_t group;
    const double* defaults;
};

template <class I>
class ScoredRows {
public:
    ScoredRows(const Vector<const I>& indptr, const Vector<const I>& indices,
               const Vector<const double>& scores, const Vector<const std::int64_t>& group,
               const Matrix<const double>& values)
        : rows_(indptr, scores.size(), WRONG_ENTRIES),
          indices_(indices.data()),
          scores_(scores.data()),
          group_(group.data()),
          values_(values.data()),
          groups_(values.shape(0)),
          q_(label_size(static_cast<std::int64_t>(values.shape(1)))) {
        require(group.size() == rows_.rows(),
                "touched and group must have the same number of rows");
        require(indices.size() == scores.size(), WRONG_ENTRIES);
    }

    std::size_t rows() const { return rows_.rows(); }
    std::size_t labels() const { return q_; }

    ScoredRow<I> row(std::size_t row) const {
        std::size_t begin, end;
        rows_.row(row, begin, end);
        const std::size_t group =
            checked_index(group_[row], groups_, "group must contain row numbers of the defaults");
        return {{indices_ + begin, indices_ + end}, scores_ + begin, group, values_ + group * q_};
    }

private:
    CsrRows<I> rows_;
    const I* indices_;
    const double* scores_;
    const std::int64_t* group_;
    const double* values_;
    std::size_t groups_, q_;
};

// The r best labels of each row, among those it touches and the defaults; r is the width of
// `labels`.
template <class I>
void top_labels(Vector<const I> indptr, Vector<const I> indices, Vector<const double> scores,
                Vector<const std::int64_t> group, Matrix<const double> values,
                Matrix<const std::int64_t> order, Matrix<std::int32_t> labels,
                Matrix<double> best_scores) {
    const ScoredRows<I> rows(indptr, indices, scores, group, values);
    const std::size_t n = rows.rows(), q = rows.labels(), r = labels.shape(1);
    require(has_shape(labels, n, r) && has_shape(best_scores, n, r) && r <= q,
            "labels and scores must have the same shape, no wider than there are labels");
    require(has_shape(order, values.shape(0), q), "order must have the shape of the defaults");
    if (r == 0) return;
    Best best(r);
    OrderedSet is_touched(q);
    for (std::size_t row = 0; row < n; ++row) {
        const ScoredRow<I> mine = rows.row(row);
        const Span<I> touched = mine.labels;
        const std::vector<Scored>& found =
            best.of(mine.scores, touched.size(), [=](std::size_t at) {
                return static_cast<std::int32_t>(checked_index(touched.begin[at], q, WRONG_LABEL));
            });

        // Merges two sorted lists. The label of a default is looked up among those that the row
        // touches only when it is inserted; for most rows none is.
        const std::int64_t* const in_order = order.data() + mine.group * q;
        std::size_t taken = 0, place = 0;
        bool marked = false;
        for (std::size_t out = row * r; out < row * r + r; ++out) {
            Scored next{};
            for (;; ++place) {
                if (place == q) {
                    require(taken < found.size(), WRONG_ORDER);
                    next = found[taken++];
                    break;
                }
                const std::size_t label = checked_index(in_order[place], q, WRONG_ORDER);
                next = {mine.defaults[label], static_cast<std::int32_t>(label)};
                if (taken < found.size() && !before(next, found[taken])) {
                    next = found[taken++];
                    break;
                }
                if (!marked) {
                    touched.each(q, [&](std::size_t one) { is_touched.insert(one); }, WRONG_LABEL);
                    marked = true;
                }
                if (!is_touched.contains(label)) {
                    ++place;
                    break;
                }
            }
            labels.data()[out] = next.label;
            best_scores.data()[out] = next.score;
        }
        if (marked) touched.each(q, [&](std::size_t one) { is_touched.clear(one); }, WRONG_LABEL);
    }
}

// The same if every row has a score for every label.
void top_of_dense(Matrix<const double> scores, Matrix<std::int32_t> labels,
                  Matrix<double> best_scores) {
    const std::size_t n = labels.shape(0), r = labels.shape(1);
    const std::size_t q = label_size(static_cast<std::int64_t>(scores.shape(1)));
    require(scores.shape(0) == n && has_shape(best_scores, n, r) && r <= q,
            "labels and scores must have the same shape, no wider than there are labels");
    if (r == 0) return;
    Best best(r);
    for (std::size_t row = 0; row < n; ++row) {
        std::size_t out = row * r;
        const auto column = [](std::size_t label) { return static_cast<std::int32_t>(label); };
        for (const Scored& one : best.of(scores.data() + row * q, q, column)) {
            labels.data()[out] = one.label;
            best_scores.data()[out++] = one.score;
        }
    }
}

// All scores: the defaults of each row, overwritten by those of the labels that it touches.
template <class I>
void fill_scores(Vector<const I> indptr, Vector<const I> indices, Vector<const double> scores,
                 Vector<const std::int64_t> group, Matrix<const double> values,
                 Matrix<double> out) {
    const ScoredRows<I> rows(indptr, indices, scores, group, values);
    const std::size_t n = rows.rows(), q = rows.labels();
    require(has_shape(out, n, q),
            "out must have one row per row of touched, as wide as the defaults");
    for (std::size_t row = 0; row < n; ++row) {
        const ScoredRow<I> mine = rows.row(row);
        const I* const touched = mine.labels.begin;
        const double* const score = mine.scores;
        const std::size_t size = mine.labels.size();
        double* const result = out.data() + row * q;
        std::copy_n(mine.defaults, q, result);
        for (std::size_t at = 0; at < size; ++at) {
            result[checked_index(touched[at], q, WRONG_LABEL)] = score[at];
        }
    }
}

template <class I>
void bind_touched(nb::module_& module) {
    module.def("top_labels", &top_labels<I>, "indptr"_array, "indices"_array, "scores"_array,
               "group"_array, "values"_array, "order"_array, "labels"_array, "best_scores"_array,
               Released());
    module.def("fill_scores", &fill_scores<I>, "indptr"_array, "indices"_array, "scores"_array,
               "group"_array, "values"_array, "out"_array, Released());
}

constexpr const char* WRONG_TRUTH = "Y must have an indptr that fits its indices";

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
    const ScoredRows<I> rows(touched_indptr, touched_indices, touched_scores, group, values);
    const std::size_t n = rows.rows(), q = rows.labels();
    require(asked.rows() == n, "Y and touched must have the same number of rows");
    require(has_shape(order, values.shape(0), q), "order must have the shape of the defaults");
    for (std::size_t row = 0; row < n; ++row) {
        const ScoredRow<I> mine = rows.row(row);
        mine.labels.each(q, [](std::size_t) {}, WRONG_LABEL);  // checks them
        const I *const first = mine.labels.begin, *const last = mine.labels.end;
        const double *const score = mine.scores, *const value = mine.defaults;
        const std::int64_t* const best = order.data() + mine.group * q;
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

void bind_scores(nb::module_& module) {
    bind_touched<std::int32_t>(module);
    bind_touched<std::int64_t>(module);
    module.def("top_of_dense", &top_of_dense, "scores"_array, "labels"_array, "best_scores"_array,
               Released());
    const auto bind_places_in_touched = [&module](auto function) {
        module.def("places_in_touched", function, "touched_indptr"_array, "touched_indices"_array,
                   "touched_scores"_array, "group"_array, "values"_array, "order"_array,
                   "indptr"_array, "indices"_array, "above"_array, "lower"_array, "higher"_array,
                   Released());
    };
    bind_places_in_touched(&places_in_touched<std::int32_t>);
    bind_places_in_touched(&places_in_touched<std::int64_t>);
    module.def("places_in_dense", &places_in_dense, "scores"_array, "indptr"_array, "indices"_array,
               "above"_array, "lower"_array, "higher"_array, Released());
    module.def("at_or_above", &at_or_above, "indptr"_array, "ranks"_array, "out"_array, Released());
}

}  // namespace nearlabel
