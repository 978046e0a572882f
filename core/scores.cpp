// Kernels over label scores. Their twins are in src/nearlabel/labels/scores.py.
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

// Default scores of groups of rows, and the labels of each group, best first.
class Defaults {
public:
    Defaults(const Vector<const std::int64_t>& group, const Matrix<const double>& values)
        : group_(group.data()),
          values_(values.data()),
          groups_(values.shape(0)),
          q_(label_size(static_cast<std::int64_t>(values.shape(1)))) {}

    std::size_t labels() const { return q_; }

    std::size_t group(std::size_t row) const {
        return checked_index(group_[row], groups_,
                             "group must contain row numbers of the defaults");
    }

    const double* of(std::size_t group) const { return values_ + group * q_; }

private:
    const std::int64_t* group_;
    const double* values_;
    std::size_t groups_, q_;
};

constexpr const char* WRONG_INDPTR = "touched must have an indptr that fits its entries";
constexpr const char* WRONG_LABEL = "touched must contain labels";
constexpr const char* WRONG_ORDER = "order must contain each label once";

template <class I>
void check_touched(const CsrRows<I>& rows, std::size_t n, std::size_t indices, std::size_t scores,
                   std::size_t group) {
    require(rows.rows() == n && group == n,
            "touched, group and out must have the same number of rows");
    require(indices == scores, WRONG_INDPTR);
}

// The r best labels of each row, among those it touches and the defaults; r is the width of
// `labels`.
template <class I>
void top_labels(Vector<const I> indptr, Vector<const I> indices, Vector<const double> scores,
                Vector<const std::int64_t> group, Matrix<const double> values,
                Matrix<const std::int64_t> order, Matrix<std::int32_t> labels,
                Matrix<double> best_scores) {
    const std::size_t n = labels.shape(0), r = labels.shape(1);
    const CsrRows<I> rows(indptr, scores.size(), WRONG_INDPTR);
    const Defaults defaults(group, values);
    const std::size_t q = defaults.labels();
    check_touched(rows, n, indices.size(), scores.size(), group.size());
    require(has_shape(best_scores, n, r) && r <= q,
            "labels and scores must have the same shape, no wider than there are labels");
    require(has_shape(order, values.shape(0), q), "order must have the shape of the defaults");
    if (r == 0) return;
    const I* const columns = indices.data();
    const auto column = [=](std::size_t at) { return checked_index(columns[at], q, WRONG_LABEL); };
    Best best(r);
    OrderedSet is_touched(q);
    for (std::size_t row = 0; row < n; ++row) {
        std::size_t begin, end;
        rows.row(row, begin, end);
        const std::vector<Scored>& found =
            best.of(scores.data() + begin, end - begin,
                    [=](std::size_t at) { return static_cast<std::int32_t>(column(begin + at)); });

        // Merges two sorted lists. The label of a default is looked up among those that the row
        // touches only when it is inserted; for most rows none is.
        const std::size_t mine = defaults.group(row);
        const double* const value = defaults.of(mine);
        const std::int64_t* const in_order = order.data() + mine * q;
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
                next = {value[label], static_cast<std::int32_t>(label)};
                if (taken < found.size() && !before(next, found[taken])) {
                    next = found[taken++];
                    break;
                }
                if (!marked) {
                    for (std::size_t at = begin; at < end; ++at) {
                        is_touched.insert(column(at));
                    }
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
        if (marked) {
            for (std::size_t at = begin; at < end; ++at) is_touched.clear(column(at));
        }
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
    const std::size_t n = out.shape(0), q = out.shape(1);
    const CsrRows<I> rows(indptr, scores.size(), WRONG_INDPTR);
    const Defaults defaults(group, values);
    check_touched(rows, n, indices.size(), scores.size(), group.size());
    require(defaults.labels() == q, "out must be as wide as the defaults");
    for (std::size_t row = 0; row < n; ++row) {
        double* const mine = out.data() + row * q;
        std::copy_n(defaults.of(defaults.group(row)), q, mine);
        std::size_t begin, end;
        rows.row(row, begin, end);
        for (std::size_t at = begin; at < end; ++at) {
            mine[checked_index(indices.data()[at], q, WRONG_LABEL)] = scores.data()[at];
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

}  // namespace

void bind_scores(nb::module_& module) {
    bind_touched<std::int32_t>(module);
    bind_touched<std::int64_t>(module);
    module.def("top_of_dense", &top_of_dense, "scores"_array, "labels"_array, "best_scores"_array,
               Released());
}

}  // namespace nearlabel
