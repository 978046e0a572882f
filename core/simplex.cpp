// The point of a simplex nearest to the origin. The twin is in
// src/nearlabel/formulas/simplex.py.
//
// Minimizes w'Hw over w >= 0 with sum 1, where H is G plus a ridge on its diagonal. Instead of w it
// computes u, which is w divided by w'Hw and minimizes u'Hu / 2 - sum(u) subject to u >= 0 only:
// Lawson and Hanson's active set method, with a Cholesky factor of H on the support, the corners of
// the simplex where u is positive.
#include "bindings.h"
#include "cpu.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace nearlabel {

namespace {

constexpr double EPSILON = std::numeric_limits<double>::epsilon();
constexpr int CORRECTIONS = 16;  // three are usual
// A correction this small, relative to sum(u), is the last.
constexpr double ENOUGH = 0x1p-60;
// A corner that would get less weight stays at zero.
constexpr double NO_WEIGHT = 0x1p-46;

double dot(const double* a, const double* b, std::size_t size) {
    double sums[4] = {};
    std::size_t i = 0;
    for (; i + 4 <= size; i += 4)
        for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    for (; i < size; ++i) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The upper half of the digits (Dekker).
NL_INLINE double upper_half(double number) {
    const double wide = 134217729.0 * number;  // 2^27 + 1
    return wide - (wide - number);
}

// Subtracts (high + low) * row from sums kept in twice the precision, each as two numbers, by the
// dot product of Ogita, Rump and Oishi (2005).
NL_INLINE void subtract_row(const double* row, double high, double low, std::size_t size,
                            double* sums, double* lost) {
    const double high_upper = upper_half(high), high_lower = high - high_upper;
    for (std::size_t j = 0; j < size; ++j) {
        const double upper = upper_half(row[j]), lower = row[j] - upper;
        const double product = row[j] * high;
        const double lost_by_product =
            lower * high_lower -
            (((product - upper * high_upper) - lower * high_upper) - upper * high_lower);
        const double sum = sums[j] - product;
        const double taken = sum - sums[j];
        const double lost_by_sum = (sums[j] - (sum - taken)) - (product + taken);
        sums[j] = sum;
        lost[j] += lost_by_sum - lost_by_product - row[j] * low;
    }
}

// One problem after another, of k corners each, in the same memory.
class ActiveSet {
public:
    explicit ActiveSet(std::size_t k)
        : k_(k),
          subtract_(up_to_avx2<subtract_row>()),
          gram_(k * k),
          factor_(k * k),
          change_(k),
          high_(k),
          low_(k),
          point_(k),
          rest_(k),
          lost_(k),
          is_free_(k) {
        support_.reserve(k);
    }

    // The weights of one problem, whose Gram matrix is `scale` times what is given.
    void solve(const double* gram, double scale, double ridge, std::int64_t steps,
               double* weights) {
        for (std::size_t i = 0; i < k_ * k_; ++i) gram_[i] = gram[i] * scale;
        ridge_ = ridge;
        start();
        bool exact = false;  // plain arithmetic first, which nearly always finds the support
        std::size_t entered = k_;
        for (std::int64_t step = 0; step < steps; ++step) {
            find_target(exact);
            const std::size_t leaving = first_at_zero();
            if (leaving < support_.size()) {
                const bool went_back = support_[leaving] == entered && point_[leaving] == 0;
                go_to_zero_of(leaving);
                if (went_back && exact) break;  // only rounding errors are left
                exact = exact || went_back;
                continue;
            }
            std::copy(high_.begin(), high_.begin() + support_.size(), point_.begin());
            entered = steepest(exact);
            if (entered < k_) {
                enter(entered);
            } else if (exact) {
                break;
            } else {
                exact = true;
            }
        }
        double total = 0;
        for (std::size_t i = 0; i < support_.size(); ++i) total += point_[i];
        require(total > 0 && total <= std::numeric_limits<double>::max(),
                "gram must contain finite numbers");
        std::fill(weights, weights + k_, 0.0);
        for (std::size_t i = 0; i < support_.size(); ++i) weights[support_[i]] = point_[i] / total;
    }

private:
    double& factor(std::size_t row, std::size_t column) { return factor_[row * k_ + column]; }

    // Starts with the nearest corner alone.
    void start() {
        std::size_t nearest = 0;
        for (std::size_t j = 1; j < k_; ++j)
            if (gram_[j * k_ + j] < gram_[nearest * k_ + nearest]) nearest = j;
        support_.clear();
        std::fill(is_free_.begin(), is_free_.end(), char{1});
        enter(nearest);
    }

    void enter(std::size_t corner) {
        point_[support_.size()] = 0;
        is_free_[corner] = 0;
        append(corner);
    }

    // Extends the factor of H on the support by one row.
    void append(std::size_t corner) {
        const std::size_t size = support_.size();
        const double* const gram = gram_.data() + corner * k_;
        double* const row = factor_.data() + size * k_;
        for (std::size_t i = 0; i < size; ++i)
            row[i] = (gram[support_[i]] - dot(&factor(i, 0), row, i)) / factor(i, i);
        // What remains of the diagonal is below the ridge only by rounding errors.
        row[size] = std::sqrt(std::max(gram[corner] + ridge_ - dot(row, row, size), ridge_));
        support_.push_back(corner);
    }

    // Moves from the point towards the target until u is zero at a corner, which leaves the
    // support.
    void go_to_zero_of(std::size_t leaving) {
        const double share = way_to_zero(leaving);
        for (std::size_t i = 0; i < support_.size(); ++i)
            point_[i] = std::max(0.0, point_[i] + share * (high_[i] - point_[i]));
        const std::vector<std::size_t> later(support_.begin() + leaving + 1, support_.end());
        is_free_[support_[leaving]] = 1;
        point_.erase(point_.begin() + leaving);
        point_.push_back(0);
        support_.resize(leaving);
        for (const std::size_t corner : later) append(corner);
    }

    // The share of the way to a target that is not positive until u is zero there.
    double way_to_zero(std::size_t i) const {
        return point_[i] > 0 ? point_[i] / (point_[i] - high_[i]) : 0.0;
    }

    // Where in the support u first becomes zero on the way to the target; its size if nowhere.
    std::size_t first_at_zero() const {
        std::size_t first = support_.size();
        for (std::size_t i = 0; i < support_.size(); ++i)
            if (!(high_[i] > 0) &&
                (first == support_.size() || way_to_zero(i) < way_to_zero(first)))
                first = i;
        return first;
    }

    // The target of the next step, high + low: the solution of Hu = 1 on the support.
    void find_target(bool exact) {
        std::fill(high_.begin(), high_.end(), 0.0);
        std::fill(low_.begin(), low_.end(), 0.0);
        std::fill(rest_.begin(), rest_.end(), 1.0);
        for (int round = 0; round < CORRECTIONS; ++round) {
            const bool is_enough = correct();
            if (!exact) return find_rest_plainly();
            find_rest();
            if (is_enough) return;
        }
    }

    // Corrects the target by the solution for the residual; returns whether that was small.
    bool correct() {
        const std::size_t size = support_.size();
        for (std::size_t i = 0; i < size; ++i)
            change_[i] =
                (rest_[support_[i]] - dot(&factor(i, 0), change_.data(), i)) / factor(i, i);
        for (std::size_t i = size; i-- > 0;) {
            const double* const row = &factor(i, 0);
            const double x = change_[i] /= row[i];
            for (std::size_t j = 0; j < i; ++j) change_[j] -= x * row[j];
        }
        double total = 0, largest = 0;
        for (std::size_t i = 0; i < size; ++i) {
            largest = std::max(largest, std::fabs(change_[i]));
            const double tail = low_[i] + change_[i], sum = high_[i] + tail;
            low_[i] = tail - (sum - high_[i]);
            high_[i] = sum;
            total += sum;
        }
        return largest <= ENOUGH * total;
    }

    // The residual 1 - H * target at all corners: in twice the precision on the support,
    void find_rest() {
        std::fill(rest_.begin(), rest_.end(), 1.0);
        std::fill(lost_.begin(), lost_.end(), 0.0);
        for (std::size_t i = 0; i < support_.size(); ++i) {
            const std::size_t corner = support_[i];
            subtract_(gram_.data() + corner * k_, high_[i], low_[i], k_, rest_.data(),
                      lost_.data());
            subtract_row(&ridge_, high_[i], low_[i], 1, &rest_[corner], &lost_[corner]);
        }
        for (std::size_t j = 0; j < k_; ++j) rest_[j] += lost_[j];
    }

    // and in plain arithmetic elsewhere, where the ridge does not count.
    void find_rest_plainly() {
        std::fill(rest_.begin(), rest_.end(), 1.0);
        for (std::size_t i = 0; i < support_.size(); ++i) {
            const double* const row = gram_.data() + support_[i] * k_;
            for (std::size_t j = 0; j < k_; ++j) rest_[j] -= high_[i] * row[j];
        }
    }

    // The free corner where u should grow the most; k if there is none.
    std::size_t steepest(bool exact) const {
        double total = 0;
        for (std::size_t i = 0; i < support_.size(); ++i) total += high_[i];
        // A corner gets the weight rest / total over at least the ridge.
        const double noise = exact ? NO_WEIGHT * ridge_ : 16 * EPSILON;
        double most = noise * total;
        std::size_t corner = k_;
        for (std::size_t j = 0; j < k_; ++j)
            if (is_free_[j] && rest_[j] > most) {
                most = rest_[j];
                corner = j;
            }
        return corner;
    }

    std::size_t k_;
    void (*subtract_)(const double*, double, double, std::size_t, double*, double*);
    std::vector<double> gram_, factor_, change_, high_, low_, point_, rest_, lost_;
    std::vector<char> is_free_;
    std::vector<std::size_t> support_;
    double ridge_ = 0;
};

// weights[i] = the weights of the problem with the Gram matrix scale[i] * gram[i] and ridge[i]
void simplex_weights(Cube<const double> gram, Vector<const double> scale,
                     Vector<const double> ridge, std::int64_t steps, Matrix<double> weights) {
    const std::size_t m = gram.shape(0), k = gram.shape(1);
    require(
        gram.shape(2) == k && scale.size() == m && ridge.size() == m && has_shape(weights, m, k),
        "gram, scale, ridge and weights must have the same numbers of problems and corners");
    require(k > 0 && steps > 0, "gram must have at least one corner, and steps must be at least 1");
    ActiveSet problem(k);
    for (std::size_t i = 0; i < m; ++i)
        problem.solve(gram.data() + i * k * k, scale.data()[i], ridge.data()[i], steps,
                      weights.data() + i * k);
}

}  // namespace

void bind_simplex(nb::module_& module) {
    module.def("simplex_weights", &simplex_weights, Released(), "gram"_array, "scale"_array,
               "ridge"_array, "steps"_a, "weights"_array);
}

}  // namespace nearlabel
