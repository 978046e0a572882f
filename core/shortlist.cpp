// The k nearest rows of each query, from blocks of lower bounds on distances.
//
// A bound is a float L: the distance, on the scale of the products, is between L and
// (L + error[query] + error[base]) * (1 + relative)
// (src/nearlabel/search/exact/packed_bounds.py). Each query has a limit, an upper bound on its k-th
// distance, and a list of the rows whose L is within it. A full list is shrunk: the k-th smallest
// upper bound is the new limit. If nearly all stay (ties, loose bounds), their canonical distances
// decide which k stay. So no row is ever lost, and lists stay short. A query that would measure
// many rows that bounds in double could separate is given up: the caller searches it again with
// such bounds.
#include "bindings.h"
#include "cpu.h"
#include "distances.h"
#include "filter.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace nearlabel {

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float APART = 8;  // twice the largest limit: no distance of unit rows exceeds 2
constexpr double BETTER = 1.0 / (1 << 28);  // errors of bounds in double relative to float

NL_INLINE std::int64_t count_within(const float* values, std::int64_t size, float limit) {
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < size; ++i) count += values[i] <= limit;
    return count;
}

// A limit with at least k of the values within it and, usually, at most k + spare. Bisection by
// counting takes a fraction of the time of a selection.
NL_INLINE float close_in(const float* values, std::int64_t size, std::int64_t k) {
    constexpr int LANES = 8;  // one register
    float lows[LANES], highs[LANES];
    for (int lane = 0; lane < LANES; ++lane) lows[lane] = highs[lane] = values[0];
    for (std::int64_t i = 0; i + LANES <= size; i += LANES)
        for (int lane = 0; lane < LANES; ++lane) {
            const float value = values[i + lane];
            lows[lane] = value < lows[lane] ? value : lows[lane];
            highs[lane] = value > highs[lane] ? value : highs[lane];
        }
    float low = *std::min_element(lows, lows + LANES);
    float high = *std::max_element(highs, highs + LANES);
    for (std::int64_t i = size - size % LANES; i < size; ++i) {
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
    }
    const std::int64_t spare = k / 16;
    std::int64_t below = 0, within = size;
    for (int tries = 0; tries < 32 && within > k + spare; ++tries) {
        // Interpolates as if the values were evenly spread; every third time bisects, in case they
        // are not.
        const auto aim = static_cast<float>(k + spare / 2 - below);
        const float share = tries % 3 == 2 ? 0.5f : aim / static_cast<float>(within - below);
        const float middle = low + (high - low) * std::min(std::max(share, 0.03f), 0.97f);
        if (!(low < middle && middle < high)) break;
        const std::int64_t found = count_within(values, size, middle);
        if (found < k) {
            low = middle;
            below = found;
        } else {
            high = middle;
            within = found;
        }
    }
    return high;
}

float close_in_baseline(const float* values, std::int64_t size, std::int64_t k) {
    return close_in(values, size, k);
}

NL_TARGET_AVX2 float close_in_avx2(const float* values, std::int64_t size, std::int64_t k) {
    return close_in(values, size, k);
}

float limit_of(const float* values, std::int64_t size, std::int64_t k) {
    return has_avx2() ? close_in_avx2(values, size, k) : close_in_baseline(values, size, k);
}

// A measured row: ordered by distance, ties by name.
struct Measured {
    double distance;
    std::int32_t name, row;

    bool operator<(const Measured& other) const {
        return distance < other.distance || (distance == other.distance && name < other.name);
    }
};

// The queries of the rows of a block: consecutive ones, or any.
struct Queries {
    std::int64_t first = 0;
    const std::int32_t* chosen = nullptr;

    std::int64_t operator[](std::int64_t i) const { return chosen ? chosen[i] : first + i; }
};

class Shortlist {
public:
    // With `itself` at least 0, query i is base row itself + i and excluded from its own list.
    // `names` break ties between distances; without names, the row numbers do. Stripes are queries
    // that one thread at a time may write to: from each of `starts` to the next. A query whose
    // error is infinite is given up from the start. With `apart`, a bound of APART means that a
    // query and a base row share no feature, and so are at distance 1 exactly: they are never
    // listed, and `finish` adds those that are needed. With `limits`, upper bounds on the distances
    // that each query asks for, it may find fewer than k; a limit of -infinity asks for nothing.
    Shortlist(const Rows& queries, const Rows& base, std::int64_t k, std::int64_t room,
              Vector<const float> query_errors, Vector<const float> base_errors, double scale,
              std::int64_t itself, std::vector<std::int64_t> starts,
              Vector<const std::int32_t> names, float relative, bool apart,
              std::optional<Vector<const float>> limits)
        : queries_(queries),
          base_(base),
          n_(queries.size()),
          k_(k),
          room_(room),
          query_errors_(std::move(query_errors)),
          base_errors_(std::move(base_errors)),
          scale_(scale),
          itself_(itself),
          starts_(std::move(starts)),
          names_(std::move(names)),
          relative_(relative),
          apart_(apart),
          limited_(limits.has_value()) {
        require(!limited_ || (!apart && limits->shape(0) == static_cast<std::size_t>(n_)),
                "limits must have one entry per query, and need apart = false");
        require(!apart || (base.sparse() && base.metric() == Metric::cosine),
                "apart must be false unless rows are sparse and the metric is cosine");
        require(relative >= 0 && relative <= 1, "relative must be from 0 to 1");
        require(names_.shape(0) == 0 || names_.shape(0) == static_cast<std::size_t>(base.size()),
                "names must be empty or have one entry per base row");
        require(queries.sparse() == base.sparse() && queries.width() == base.width() &&
                    queries.metric() == base.metric(),
                "queries and base must have the same metric, width and storage (dense or sparse)");
        require(n_ > 0, "queries must have at least one row");
        require(-1 <= itself && (itself < 0 || itself <= base.size() - n_),
                "itself must be -1 or a base row such that itself + i is one for every query i");
        const std::int64_t others = base.size() - (itself < 0 ? 0 : 1);
        require(0 < k && k <= others && (k < room || room == others),
                "k must be from 1 to the number of rows searched, and room must be above k");
        require(room <= others && base.size() <= std::numeric_limits<std::int32_t>::max(),
                "room must not exceed the rows searched, and base must have fewer than 2^31 rows");
        require(query_errors_.shape(0) == static_cast<std::size_t>(n_) &&
                    base_errors_.shape(0) == static_cast<std::size_t>(base.size()),
                "query_errors and base_errors must have one entry per row");
        for (std::int64_t i = 0; i < n_; ++i) {
            const float limit = limited_ ? limits->data()[i] : most();
            require(!std::isnan(limit), "limits must not contain NaN");
            limits_.push_back(query_errors_.data()[i] == infinite ? -infinite : limit);
        }
        sizes_.assign(static_cast<std::size_t>(n_), 0);
        in_vain_.assign(static_cast<std::size_t>(n_), 0);
        bounds_.reset(new float[static_cast<std::size_t>(n_ * room)]);
        rows_.reset(new std::int32_t[static_cast<std::size_t>(n_ * room)]);
        require(
            !starts_.empty() && starts_[0] == 0 && std::is_sorted(starts_.begin(), starts_.end()),
            "starts must begin with 0 and not decrease");
        locks_ = std::vector<std::mutex>(starts_.size());
    }

    // Lists the near pairs of a block of bounds, of queries from `query` on and base rows from
    // `row` on. With `both`, these are rows of one set, and the block is also used for its columns.
    void offer(Matrix<const float> block, std::int64_t query, std::int64_t row, bool both) {
        const auto height = static_cast<std::int64_t>(block.shape(0));
        const auto width = static_cast<std::int64_t>(block.shape(1));
        require(0 <= query && height <= n_ && query <= n_ - height && 0 <= row &&
                    width <= base_.size() && row <= base_.size() - width &&
                    (!both || (itself_ == 0 && n_ == base_.size())),
                "block must be within the queries and the base rows");
        if (height == 0 || width == 0) return;
        const std::int64_t a = stripe_of(query), b = both ? stripe_of(row) : -1;
        require(a == stripe_of(query + height - 1), "block must be within a stripe of queries");
        require(!both || (a != b && b == stripe_of(row + width - 1)),
                "block must be within two different stripes if both is true");
        Work work;
        if (both) {
            std::scoped_lock guard(locks_[a], locks_[b]);
            take_near<true>(block.data(), height, width, {query}, row, work);
        } else {
            std::scoped_lock guard(locks_[a]);
            start(block.data(), height, width, {query}, row);
            take_near<false>(block.data(), height, width, {query}, row, work);
        }
    }

    // Lists the near pairs of a block of bounds, of the chosen queries and base rows from `row` on.
    // Only if there is one stripe.
    void offer_to(Matrix<const float> block, Vector<const std::int32_t> chosen, std::int64_t row) {
        const auto height = static_cast<std::int64_t>(block.shape(0));
        const auto width = static_cast<std::int64_t>(block.shape(1));
        require(
            0 <= row && width <= base_.size() && row <= base_.size() - width && starts_.size() == 1,
            "block must be within the base rows, and starts must have one stripe");
        require(chosen.shape(0) == block.shape(0), "chosen must have one entry per row of block");
        for (std::int64_t i = 0; i < height; ++i)
            require(0 <= chosen.data()[i] && chosen.data()[i] < n_,
                    "chosen must contain query numbers");
        if (height == 0 || width == 0) return;
        Work work;
        std::scoped_lock guard(locks_[0]);
        const Queries queries{0, chosen.data()};
        start(block.data(), height, width, queries, row);
        take_near<false>(block.data(), height, width, queries, row, work);
    }

    // Writes the k nearest of some queries: rows and canonical distances, ties by row. If limits
    // leave fewer, the rest is -1 at infinite distance.
    void finish(std::int64_t query, Matrix<std::int32_t> rows, Matrix<double> distances) {
        const auto count = static_cast<std::int64_t>(rows.shape(0));
        const auto k = static_cast<std::size_t>(k_);
        require(0 <= query && count <= n_ && query <= n_ - count && rows.shape(1) == k &&
                    distances.shape(1) == k && distances.shape(0) == rows.shape(0),
                "rows and distances must have one row per query");
        Work work;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::scoped_lock guard(locks_[stripe_of(query + i)]);
            if (limits_[query + i] == -infinite) continue;
            require(apart_ || limited_ || sizes_[query + i] >= k_,
                    "a query has been offered too few rows");
            if (sizes_[query + i] >= k_) {
                shrink(query + i, work);
                require(sizes_[query + i] >= k_,
                        "query_errors and base_errors must not contain NaN");
            }
            measure(query + i, work);
            auto& found = work.found;
            if (apart_) add_those_apart(query + i, work);
            if (static_cast<std::int64_t>(found.size()) > k_)
                std::nth_element(found.begin(), found.begin() + k_ - 1, found.end());
            const auto size = std::min(k_, static_cast<std::int64_t>(found.size()));
            std::sort(found.begin(), found.begin() + size);
            for (std::int64_t place = 0; place < size; ++place) {
                distances.data()[i * k_ + place] = found[place].distance;
                rows.data()[i * k_ + place] = found[place].row;
            }
            for (std::int64_t place = size; place < k_; ++place) {
                distances.data()[i * k_ + place] = std::numeric_limits<double>::infinity();
                rows.data()[i * k_ + place] = -1;
            }
            require(size == 0 || std::isfinite(found[size - 1].distance),
                    "a distance to a neighbor is too large for float64; rescale X");
        }
    }

    // Reports which queries were given up; `finish` writes nothing for them.
    void given_up(Vector<bool> result) {
        require(result.shape(0) == static_cast<std::size_t>(n_),
                "result must have one entry per query");
        for (std::int64_t query = 0; query < n_; ++query) {
            const std::scoped_lock guard(locks_[stripe_of(query)]);
            result.data()[query] = limits_[query] == -infinite;
        }
    }

private:
    // Temporaries, reused from one list to the next.
    struct Work {
        std::vector<float> upper;
        std::vector<double> distances;
        std::vector<Measured> found;
        Query query;
    };

    // Queries without any rows yet get their first limit from the whole block, so that rows are
    // rarely listed only to be dropped later.
    void start(const float* block, std::int64_t height, std::int64_t width, Queries queries,
               std::int64_t row) {
        const std::int64_t needed = k_ + (itself_ < 0 ? 0 : 1);
        if (width < 2 * needed) return;
        const float* errors = base_errors_.data() + row;
        const float largest = *std::max_element(errors, errors + width);
        for (std::int64_t i = 0; i < height; ++i) {
            const std::int64_t query = queries[i];
            if (limits_[query] == most()) {
                const float first = upper(limit_of(block + i * width, width, needed),
                                          query_errors_.data()[query] + largest);
                limits_[query] = std::min(first, most());  // in this order, so that a NaN is kept
            }
        }
    }

    template <bool both>
    void take_near(const float* block, std::int64_t height, std::int64_t width, Queries queries,
                   std::int64_t row, Work& work) {
        filter<both>(
            block, height, width, both ? limits_.data() + row : nullptr,
            [&](std::int64_t i) -> const float& { return limits_[queries[i]]; },
            [&](std::int64_t i, std::int64_t j) {
                push(queries[i], row + j, block[i * width + j], work);
            },
            [&](std::int64_t i, std::int64_t j) {
                push(row + j, queries[i], block[i * width + j], work);
            });
    }

    void push(std::int64_t query, std::int64_t row, float bound, Work& work) {
        if (itself_ >= 0 && row == itself_ + query) return;
        if (sizes_[query] == room_) make_room(query, work);
        if (!(bound <= limits_[query])) return;  // it may just have been lowered
        require(sizes_[query] < room_, "block must not contain a pair of rows twice");
        const std::int64_t place = query * room_ + sizes_[query]++;
        bounds_[place] = bound;
        rows_[place] = static_cast<std::int32_t>(row);
    }

    void make_room(std::int64_t query, Work& work) {
        shrink(query, work);
        if (sizes_[query] > k_ + (room_ - k_) / 2) resolve(query, work);
    }

    // Lowers the limit to the k-th smallest upper bound, and drops what is above it.
    void shrink(std::int64_t query, Work& work) {
        float* bounds = &bounds_[query * room_];
        std::int32_t* rows = &rows_[query * room_];
        const std::int64_t size = sizes_[query];
        work.upper.resize(static_cast<std::size_t>(size));
        const float error = query_errors_.data()[query], *errors = base_errors_.data();
        for (std::int64_t i = 0; i < size; ++i)
            work.upper[i] = upper(bounds[i], error + errors[rows[i]]);
        const float limit = std::min(limits_[query], limit_of(work.upper.data(), size, k_));
        limits_[query] = limit;
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < size; ++i) {
            bounds[kept] = bounds[i];
            rows[kept] = rows[i];
            kept += bounds[i] <= limit;
        }
        sizes_[query] = kept;
    }

    // Keeps the k nearest by their canonical distances.
    void resolve(std::int64_t query, Work& work) {
        measure(query, work);
        auto& found = work.found;
        std::nth_element(found.begin(), found.begin() + k_ - 1, found.end());
        float* bounds = &bounds_[query * room_];
        std::int32_t* rows = &rows_[query * room_];
        const Measured farthest = found[k_ - 1];
        const double limit = scaled(farthest.distance);
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < sizes_[query]; ++i) {
            const double error = query_errors_.data()[query] + base_errors_.data()[rows[i]];
            in_vain_[query] += scaled(work.distances[i]) > limit + error * BETTER;
            bounds[kept] = bounds[i];
            rows[kept] = rows[i];
            kept += !(farthest < Measured{work.distances[i], name(rows[i]), rows[i]});
        }
        sizes_[query] = kept;
        // Rounded up, so that equal distances stay within.
        const auto rounded = static_cast<float>(limit * (1 + 1e-6));
        limits_[query] = std::min(limits_[query], rounded + std::numeric_limits<float>::min());
        if (in_vain_[query] > 4 * room_ + base_.size() / 32) {
            limits_[query] = -infinite;
            sizes_[query] = 0;
        }
    }

    void measure(std::int64_t query, Work& work) {
        const std::int32_t* rows = &rows_[query * room_];
        const auto size = static_cast<std::size_t>(sizes_[query]);
        queries_.load(query, work.query);
        work.distances.resize(size);
        base_.distances(work.query, rows, sizes_[query], work.distances.data());
        work.found.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            double& distance = work.distances[i];
            if (std::isnan(distance)) distance = infinite;  // it would break the order
            work.found[i] = {distance, name(rows[i]), rows[i]};
        }
    }

    // Adds the first k rows that share no feature with a query, unless k that do are all nearer.
    void add_those_apart(std::int64_t query, Work& work) const {
        auto& found = work.found;
        const auto nearer = std::count_if(found.begin(), found.end(),
                                          [](const Measured& row) { return row.distance < 1; });
        std::int64_t missing = nearer < k_ ? k_ : 0;
        for (std::int32_t row = 0; missing > 0 && row < base_.size(); ++row)
            if (!(itself_ >= 0 && row == itself_ + query) && !base_.shares(work.query, row)) {
                found.push_back({1, name(row), row});
                --missing;
            }
        require(static_cast<std::int64_t>(found.size()) >= k_,
                "a query has been offered too few rows");
    }

    // The limit of a query without any rows yet.
    float most() const { return apart_ ? APART / 2 : infinite; }

    // No distance with the lower bound `bound` is above this.
    float upper(float bound, float error) const { return (bound + error) * (1 + relative_); }

    std::int64_t stripe_of(std::int64_t query) const {
        return std::upper_bound(starts_.begin(), starts_.end(), query) - starts_.begin() - 1;
    }

    std::int32_t name(std::int32_t row) const { return names_.shape(0) ? names_.data()[row] : row; }

    // A distance on the scale of the bounds.
    double scaled(double distance) const {
        return (base_.metric() == Metric::euclidean ? distance * distance : distance) * scale_;
    }

    const Rows& queries_;
    const Rows& base_;
    std::int64_t n_, k_, room_;
    Vector<const float> query_errors_, base_errors_;
    double scale_;
    std::int64_t itself_;
    std::vector<std::int64_t> starts_;  // of stripes
    Vector<const std::int32_t> names_;
    float relative_;
    bool apart_;
    bool limited_;  // whether limits were given
    std::vector<float> limits_;
    std::vector<std::int64_t> sizes_;
    std::vector<std::int64_t> in_vain_;  // distances computed that better bounds would have saved
    std::unique_ptr<float[]> bounds_;
    std::unique_ptr<std::int32_t[]> rows_;
    std::vector<std::mutex> locks_;  // one per stripe of queries: for its limits, sizes and lists
};

}  // namespace

void bind_shortlist(nb::module_& module) {
    module.attr("APART") = APART;
    nb::class_<Shortlist>(module, "Shortlist", "The nearest rows of queries seen so far.")
        .def(
            nb::init<const Rows&, const Rows&, std::int64_t, std::int64_t, Vector<const float>,
                     Vector<const float>, double, std::int64_t, std::vector<std::int64_t>,
                     Vector<const std::int32_t>, float, bool, std::optional<Vector<const float>>>(),
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), "queries"_a, "base"_a, "k"_a, "room"_a,
            "query_errors"_a.noconvert(), "base_errors"_a.noconvert(), "scale"_a, "itself"_a,
            "starts"_a, "names"_a.noconvert(), "relative"_a = 0.0f, "apart"_a = false,
            "limits"_a.noconvert() = nb::none())
        .def("offer", &Shortlist::offer, Released(), "block"_a.noconvert(), "query"_a, "row"_a,
             "both"_a)
        .def("offer_to", &Shortlist::offer_to, Released(), "block"_a.noconvert(),
             "chosen"_a.noconvert(), "row"_a)
        .def("given_up", &Shortlist::given_up, Released(), "result"_a.noconvert())
        .def("finish", &Shortlist::finish, Released(), "query"_a, "rows"_a.noconvert(),
             "distances"_a.noconvert());
}

}  // namespace nearlabel
