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
//
// Bounds from bytes are loose (`refined`): what they leave open gets a better bound at once, while
// both rows are in a cache, from a distance that may be off by rounding errors only.
#include "bindings.h"
#include "byte_bounds.h"
#include "cpu.h"
#include "distances.h"
#include "filter.h"
#include "open_pairs.h"
#include "refinement.h"
#include "selection.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
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
constexpr double MOST_SHARE = 1.0 / 64;     // of a rough distance that may be wrong
constexpr double BETTER = 1.0 / (1 << 28);  // errors of bounds in double relative to float

// Writes a limit for each row of a block, within which are at least k of its values and, usually,
// hardly more.
void row_limits(Matrix<const float> block, std::int64_t k, Vector<float> limits) {
    const auto width = static_cast<std::int64_t>(block.shape(1));
    require(limits.shape(0) == block.shape(0), "limits must have one entry per row of block");
    require(0 < k && k <= width, "k must be from 1 to the number of columns of block");
    for (std::size_t i = 0; i < block.shape(0); ++i)
        limits.data()[i] = limit_of(block.data() + static_cast<std::int64_t>(i) * width, width, k);
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
    // With `margin`, it may leave out rows that are farther than the nearest by more than that.
    // `refined`: see above.
    Shortlist(const Rows& queries, const Rows& base, std::int64_t k, std::int64_t room,
              Vector<const float> query_errors, Vector<const float> base_errors, double scale,
              std::int64_t itself, std::vector<std::int64_t> starts,
              Vector<const std::int32_t> names, float relative, bool apart,
              std::optional<Vector<const float>> limits, bool refined, double margin)
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
          margin_(margin),
          limited_(limits.has_value() || margin < infinite),
          refined_(refined && base.rough_share() <= MOST_SHARE),
          most_in_vain_((refined_ ? 4 : 1) * (4 * room + base.size() / 32)),
          refinement_(base, scale) {
        require(!limits || has_shape(*limits, n_), "limits must have one entry per query");
        require(!limited_ || !apart, "limits and margin need apart = false");
        require(margin >= 0 && (margin == infinite || itself < 0),
                "margin must not be negative, and needs itself = -1");
        require(!apart || (base.sparse() && base.metric() == Metric::cosine),
                "apart must be false unless rows are sparse and the metric is cosine");
        require(relative >= 0 && relative <= 1, "relative must be from 0 to 1");
        require(names_.shape(0) == 0 || has_shape(names_, base.size()),
                "names must be empty or have one entry per base row");
        require_comparable(queries, base);
        require(n_ > 0, "queries must have at least one row");
        require(-1 <= itself && (itself < 0 || itself <= base.size() - n_),
                "itself must be -1 or a base row such that itself + i is one for every query i");
        const std::int64_t others = base.size() - (itself < 0 ? 0 : 1);
        require(0 < k && k <= others && (k < room || room == others),
                "k must be from 1 to the number of rows searched, and room must be above k");
        require(room <= others && base.size() <= std::numeric_limits<std::int32_t>::max(),
                "room must not exceed the rows searched, and base must have fewer than 2^31 rows");
        require(has_shape(query_errors_, n_) && has_shape(base_errors_, base.size()),
                "query_errors and base_errors must have one entry per row");
        for (std::int64_t i = 0; i < n_; ++i) {
            const float limit = limits ? limits->data()[i] : most();
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
        const auto [a, b] = stripes_of(height, width, query, row, both);
        if (height == 0 || width == 0) return;
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
        check_chosen(height, width, chosen, row);
        if (height == 0 || width == 0) return;
        Work work;
        std::scoped_lock guard(locks_[0]);
        const Queries queries{0, chosen.data()};
        start(block.data(), height, width, queries, row);
        take_near<false>(block.data(), height, width, queries, row, work);
    }

    // As `offer`, computing the bounds of a block from bytes.
    void offer_bytes(const ByteQueries& rows, const ByteRows& base, std::int64_t query,
                     std::int64_t row, bool both) {
        check_bytes(rows, base);
        const auto [a, b] = stripes_of(rows.size, base.size(), query, row, both);
        if (rows.size == 0 || base.size() == 0) return;
        Work work;
        if (both)
            take_near_bytes<true>(rows, base, {}, rows.size, {query}, row, {a, b}, work);
        else
            take_near_bytes<false>(rows, base, {}, rows.size, {query}, row, {a, a}, work);
    }

    // As `offer_to`, computing the bounds of the chosen ones of all queries from bytes.
    void offer_bytes_to(const ByteQueries& rows, const ByteRows& base,
                        Vector<const std::int32_t> chosen, std::int64_t row) {
        const auto height = static_cast<std::int64_t>(chosen.shape(0));
        check_bytes(rows, base);
        require(rows.size == n_, "rows must be all queries");
        check_chosen(height, base.size(), chosen, row);
        if (height == 0 || base.size() == 0) return;
        const std::scoped_lock guard(work_lock_);
        const Queries queries{0, chosen.data()};
        take_near_bytes<false>(rows, base, queries, height, queries, row, {0, 0}, work_);
    }

    // Compares a single query with some parts of the base rows, which start at `rows`. What a call
    // takes counts if the parts are small. With `limits` of all base rows, marks those of the parts
    // in `reached` whose bound is within their own.
    void offer_bytes_one(const ByteQueries& query, const std::vector<const ByteRows*>& parts,
                         const std::vector<std::int64_t>& rows,
                         std::optional<Vector<const float>> limits,
                         std::optional<Vector<bool>> reached) {
        require(n_ == 1 && query.size == 1, "query must be the only one");
        require(parts.size() == rows.size(), "rows must have one entry per part");
        require(limits.has_value() == reached.has_value() &&
                    (!limits ||
                     (has_shape(*limits, base_.size()) && has_shape(*reached, base_.size()))),
                "limits and reached must both have one entry per base row, or be None");
        const std::scoped_lock guard(work_lock_);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            require(parts[i], "parts must not contain None");
            check_bytes(query, *parts[i]);
            (void)stripes_of(1, parts[i]->size(), 0, rows[i], false);
            if (parts[i]->size() == 0) continue;
            take_near_bytes<false>(query, *parts[i], {}, 1, {}, rows[i], {0, 0}, work_);
            if (limits)
                mark_reached(query, *parts[i], limits->data() + rows[i], reached->data() + rows[i]);
        }
    }

    // Writes the k nearest of some queries: rows and canonical distances, ties by row. If limits
    // leave fewer, the rest is -1 at infinite distance.
    void finish(std::int64_t query, Matrix<std::int32_t> rows, Matrix<double> distances) {
        const auto count = static_cast<std::int64_t>(rows.shape(0));
        require(0 <= query && count <= n_ && query <= n_ - count && has_shape(rows, count, k_) &&
                    has_shape(distances, count, k_),
                "rows and distances must have one row per query");
        Work work;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::scoped_lock guard(locks_[stripe_of(query + i)]);
            if (limits_[query + i] == -infinite) continue;
            require(apart_ || limited_ || sizes_[query + i] >= k_,
                    "a query has been offered too few rows");
            if (sizes_[query + i] >= k_) {
                shrink(query + i, work);  // a limit may have been set after rows beyond it came
                require(limited_ || sizes_[query + i] >= k_,
                        "query_errors and base_errors must not contain NaN");
            }
            measure(query + i, work);
            auto& found = work.found;
            if (write_ranked(work, rows.data() + i * k_, distances.data() + i * k_)) continue;
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
        require(has_shape(result, n_), "result must have one entry per query");
        for (std::int64_t query = 0; query < n_; ++query) {
            const std::scoped_lock guard(locks_[stripe_of(query)]);
            result.data()[query] = limits_[query] == -infinite;
        }
    }

private:
    // Temporaries, reused from one list to the next.
    struct Work {
        std::vector<float> upper;
        std::vector<double> distances, rough;
        std::vector<Measured> found;
        Query query;
        std::vector<float> block, limits, bounds;
        std::vector<std::uint64_t> within;
        OpenPairs open;
    };

    // The stripes of the queries and, with `both`, of the base rows of a block, which it may not
    // exceed.
    std::pair<std::int64_t, std::int64_t> stripes_of(std::int64_t height, std::int64_t width,
                                                     std::int64_t query, std::int64_t row,
                                                     bool both) const {
        require(0 <= query && height <= n_ && query <= n_ - height && 0 <= row &&
                    width <= base_.size() && row <= base_.size() - width &&
                    (!both || (itself_ == 0 && n_ == base_.size())),
                "block must be within the queries and the base rows");
        if (height == 0 || width == 0) return {0, 0};
        const std::int64_t a = stripe_of(query), b = both ? stripe_of(row) : -1;
        require(a == stripe_of(query + height - 1), "block must be within a stripe of queries");
        require(!both || (a != b && b == stripe_of(row + width - 1)),
                "block must be within two different stripes if both is true");
        return {a, b};
    }

    void check_bytes(const ByteQueries& rows, const ByteRows& base) const {
        const std::int64_t groups = (base_.width() + GROUP_BYTES - 1) / GROUP_BYTES;
        require(rows.groups == groups && base.groups() == groups,
                "rows and base must have the width of the rows searched");
        require(refined_, "bytes need refined = true");
    }

    void check_chosen(std::int64_t height, std::int64_t width,
                      const Vector<const std::int32_t>& chosen, std::int64_t row) const {
        require(
            0 <= row && width <= base_.size() && row <= base_.size() - width && starts_.size() == 1,
            "block must be within the base rows, and starts must have one stripe");
        require(has_shape(chosen, height), "chosen must have one entry per row of block");
        for (std::int64_t i = 0; i < height; ++i)
            require(0 <= chosen.data()[i] && chosen.data()[i] < n_,
                    "chosen must contain query numbers");
    }

    // Queries without any rows yet get their first limit from the whole block, so that rows are
    // rarely listed only to be dropped later.
    void start(const float* block, std::int64_t height, std::int64_t width, Queries queries,
               std::int64_t row) {
        if (width < 2 * needed()) return;
        const float* errors = base_errors_.data() + row;
        const float largest = *std::max_element(errors, errors + width);
        for (std::int64_t i = 0; i < height; ++i) {
            const std::int64_t query = queries[i];
            if (limits_[query] == most()) {
                const float* bounds = block + i * width;
                const float error = query_errors_.data()[query] + largest;
                const bool is_wide = margin_ == infinite;
                const float first = upper(limit_of(bounds, width, is_wide ? needed() : 1), error);
                limits_[query] = std::min(is_wide ? first : beyond(first),
                                          most());  // in this order, so that a NaN is kept
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

    // Bounds are compared with the limits as soon as they are computed, and never written. What is
    // within a limit stays open until some panels are done, since branches would interrupt the
    // products. Query i of the block is the query from[i] of the rows. The stripes are locked only
    // while their limits and lists are used: meanwhile others may lower a limit, which is checked
    // again.
    template <bool both>
    void take_near_bytes(const ByteQueries& rows, const ByteRows& base, Queries from,
                         std::int64_t height, Queries queries, std::int64_t row,
                         std::pair<std::int64_t, std::int64_t> stripes, Work& work) {
        const auto locked = [&](auto use) {
            if constexpr (both) {
                const std::scoped_lock guard(locks_[stripes.first], locks_[stripes.second]);
                use();
            } else {
                const std::scoped_lock guard(locks_[stripes.first]);
                use();
            }
        };
        work.limits.resize(static_cast<std::size_t>(height + TILE_ROWS));
        bool any_new = false;
        const auto read_limits = [&] {
            for (std::int64_t i = 0; i < height; ++i) {
                work.limits[i] = limits_[queries[i]];
                any_new = any_new || work.limits[i] == most();
            }
        };
        if constexpr (!both) {
            locked(read_limits);
            if (any_new && base.size() >= 2 * needed())
                return start_bytes(rows, base, from, height, queries, row, locked, work);
        }
        constexpr std::int64_t PANELS = 4;
        work.within.resize(static_cast<std::size_t>(height + TILE_ROWS) * PANELS);
        std::array<float, PANELS * PANEL_ROWS> columns;
        for (std::int64_t first = 0; first < base.size(); first += PANELS * PANEL_ROWS) {
            const std::int64_t width = std::min(PANELS * PANEL_ROWS, base.size() - first);
            const std::int64_t panels = (width + PANEL_ROWS - 1) / PANEL_ROWS;
            columns.fill(-infinite);
            locked([&] {
                read_limits();
                if constexpr (both)
                    std::copy_n(limits_.data() + row + first, width, columns.data());
            });
            for (std::int64_t i = 0; i < height; i += TILE_ROWS) {
                const ByteTile tile =
                    rows.tile(i, height, [from](std::int64_t place) { return from[place]; });
                for (std::int64_t panel = 0; panel < panels; ++panel) {
                    std::array<std::uint64_t, TILE_ROWS> within;
                    tile_within(tile, base.panel(first / PANEL_ROWS + panel), &work.limits[i],
                                &columns[panel * PANEL_ROWS], within.data());
                    for (std::int64_t place = 0; place < TILE_ROWS; ++place)
                        work.within[(i + place) * PANELS + panel] = within[place];
                }
            }
            // Beyond the last row there is only what fills up its panel.
            const std::uint64_t real = ~std::uint64_t{0} >> (panels * PANEL_ROWS - width);
            for (std::int64_t i = 0; i < height; ++i) {
                std::uint64_t* words = &work.within[i * PANELS];
                words[panels - 1] &= real;
                leave_open(queries[i], row + first, words, panels, work);
            }
            bound_open(work);
            locked([&] { list_open<both>(work); });
        }
    }

    // Marks the base rows whose bound is within their own limit, for a single query.
    static void mark_reached(const ByteQueries& query, const ByteRows& base, const float* limits,
                             bool* reached) {
        const ByteTile tile = query.tile(0, 1, [](std::int64_t) { return 0; });
        std::array<float, TILE_ROWS> none;
        none.fill(-infinite);
        std::array<std::uint64_t, TILE_ROWS> within;
        for (std::int64_t first = 0; first < base.size(); first += PANEL_ROWS) {
            const std::int64_t width = std::min(PANEL_ROWS, base.size() - first);
            std::array<float, PANEL_ROWS> columns;
            columns.fill(-infinite);
            std::copy_n(limits + first, width, columns.data());
            tile_within(tile, base.panel(first / PANEL_ROWS), none.data(), columns.data(),
                        within.data());
            for (std::int64_t j = 0; j < width; ++j) reached[first + j] = within[0] >> j & 1;
        }
    }

    // As `take_near_bytes` if there are queries without any rows yet: the bounds are written to a
    // block, from which these get their first limit.
    template <class Locked>
    void start_bytes(const ByteQueries& rows, const ByteRows& base, Queries from,
                     std::int64_t height, Queries queries, std::int64_t row, Locked locked,
                     Work& work) {
        constexpr std::int64_t STEP = 16 * TILE_ROWS;  // whose bounds stay in a cache
        const std::int64_t width = base.size(), words = (width + WORD - 1) / WORD;
        work.block.resize(static_cast<std::size_t>(std::min(STEP, height) * width));
        work.within.resize(static_cast<std::size_t>(words));
        for (std::int64_t first = 0; first < height; first += STEP) {
            const Queries part{queries.first + first,
                               queries.chosen ? queries.chosen + first : nullptr};
            const std::int64_t count = std::min(STEP, height - first);
            byte_block(
                rows, count, [&](std::int64_t i) { return from[first + i]; }, base,
                work.block.data());
            locked([&] {
                start(work.block.data(), count, width, part, row);
                for (std::int64_t i = 0; i < count; ++i) work.limits[i] = limits_[part[i]];
            });
            for (std::int64_t i = 0; i < count; ++i) {
                mark_within(&work.block[i * width], width, work.limits[i], work.within.data());
                leave_open(part[i], row, work.within.data(), words, work);
            }
            bound_open(work);
            locked([&] { list_open<false>(work); });
        }
    }

    // Leaves the rows from `first` on open whose bits are set, except for the query itself.
    void leave_open(std::int64_t query, std::int64_t first, std::uint64_t* words,
                    std::int64_t count, Work& work) const {
        const std::int64_t own = itself_ < 0 ? -1 : itself_ + query - first;
        if (0 <= own && own < count * WORD) words[own / WORD] &= ~(std::uint64_t{1} << own % WORD);
        work.open.add(query, first, words, count);
    }

    // Bounds the distances of the open pairs again.
    void bound_open(Work& work) const {
        const std::int64_t count = work.open.size();
        work.rough.resize(static_cast<std::size_t>(count));
        work.bounds.resize(static_cast<std::size_t>(count));
        require(base_.rough(queries_, work.open.runs(), work.open.rows(), work.rough.data()),
                "bytes need dense rows");
        refinement_.bound_from_below(work.rough.data(), count, work.bounds.data());
    }

    // Lists the open pairs that are still within a limit.
    template <bool both>
    void list_open(Work& work) {
        const auto& runs = work.open.runs();
        const std::int32_t* rows = work.open.rows();
        std::int64_t first = 0;
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const auto [query, stop] = runs[i];
            if (i + 1 < runs.size()) prefetch_end(runs[i + 1].query);
            in_vain_[query] += stop - first;
            if constexpr (both) {
                for (std::int64_t j = first; j < stop; ++j) prefetch_end(rows[j]);
                for (std::int64_t j = first; j < stop; ++j)
                    push(rows[j], query, work.bounds[j], work);
            }
            push_all(query, rows + first, work.bounds.data() + first, stop - first, work);
            if (in_vain_[query] > most_in_vain_) give_up(query);
            first = stop;
        }
        work.open.clear();
    }

    // Lists some rows of a query, without a branch as long as there is room.
    void push_all(std::int64_t query, const std::int32_t* rows, const float* bounds,
                  std::int64_t count, Work& work) {
        for (std::int64_t i = 0; i < count;) {
            if (sizes_[query] == room_) make_room(query, work);
            const std::int64_t stop = std::min(count, i + room_ - sizes_[query]);
            require(i < stop, "block must not contain a pair of rows twice");
            const std::int64_t first = query * room_ + sizes_[query];
            std::int64_t place = first;
            const float limit = limits_[query];
            for (; i < stop; ++i) {
                bounds_[place] = bounds[i];
                rows_[place] = rows[i];
                place += bounds[i] <= limit;
            }
            sizes_[query] += place - first;
        }
    }

    // Prefetches the place in a list where the next row goes.
    void prefetch_end(std::int64_t query) const {
        const std::int64_t place = query * room_ + sizes_[query];
        prefetch(bounds_.get() + place);
        prefetch(rows_.get() + place);
    }

    void push(std::int64_t query, std::int64_t row, float bound, Work& work) {
        if (is_itself(query, row) || !(bound <= limits_[query])) return;
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
        if (refined_)
            refinement_.bound_from_above(bounds, size, work.upper.data());
        else
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
        limits_[query] = std::min(limits_[query], rounded_up(limit));
        if (in_vain_[query] > most_in_vain_) give_up(query);
    }

    void give_up(std::int64_t query) {
        limits_[query] = -infinite;
        sizes_[query] = 0;
    }

    // Writes the k nearest of some measured rows if they are few and no two are equally far. Each
    // is written to its rank, the number of nearer ones: unlike sorting, counting needs no
    // branches.
    bool write_ranked(Work& work, std::int32_t* rows, double* distances) const {
        constexpr std::size_t MOST = 256;
        const std::size_t size = work.found.size();
        if (apart_ || size > MOST || size < static_cast<std::size_t>(k_)) return false;
        std::int32_t ranks[MOST];
        ranks_of(work.distances.data(), static_cast<std::int64_t>(size), ranks);
        std::fill(rows, rows + k_, -1);
        for (std::size_t i = 0; i < size; ++i) {
            const std::int32_t rank = ranks[i];
            if (rank >= k_) continue;
            if (rows[rank] >= 0) return false;
            rows[rank] = work.found[i].row;
            distances[rank] = work.distances[i];
        }
        return std::isfinite(distances[k_ - 1]);
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
            if (!is_itself(query, row) && !base_.shares(work.query, row)) {
                found.push_back({1, name(row), row});
                --missing;
            }
        require(static_cast<std::int64_t>(found.size()) >= k_,
                "a query has been offered too few rows");
    }

    bool is_itself(std::int64_t query, std::int64_t row) const {
        return itself_ >= 0 && row == itself_ + query;
    }

    // The number of rows that are sure to contain k others.
    std::int64_t needed() const { return k_ + (itself_ < 0 ? 0 : 1); }

    // The limit of a query without any rows yet.
    float most() const { return apart_ ? APART / 2 : infinite; }

    // No distance with the lower bound `bound` is above this.
    float upper(float bound, float error) const { return (bound + error) * (1 + relative_); }

    std::int64_t stripe_of(std::int64_t query) const {
        return std::upper_bound(starts_.begin(), starts_.end(), query) - starts_.begin() - 1;
    }

    std::int32_t name(std::int32_t row) const { return names_.shape(0) ? names_.data()[row] : row; }

    // The limit of rows that are farther by at most the margin than one at a distance, all on the
    // scale of the bounds.
    float beyond(float near) const {
        const double distance = std::max(0.0, near / scale_);
        const bool is_root = base_.metric() == Metric::euclidean;
        return rounded_up(scaled((is_root ? std::sqrt(distance) : distance) + margin_));
    }

    // Equal distances stay within.
    static float rounded_up(double limit) {
        return static_cast<float>(limit * (1 + 1e-6)) + std::numeric_limits<float>::min();
    }

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
    double margin_;
    bool limited_;  // whether limits or a margin were given
    bool refined_;
    std::int64_t most_in_vain_;
    Refinement refinement_;
    std::vector<float> limits_;
    std::vector<std::int64_t> sizes_;
    std::vector<std::int64_t> in_vain_;  // distances computed that better bounds would have saved
    std::unique_ptr<float[]> bounds_;
    std::unique_ptr<std::int32_t[]> rows_;
    Work work_;  // if there is one stripe
    std::mutex work_lock_;
    std::vector<std::mutex> locks_;  // one per stripe of queries: for its limits, sizes and lists
};

}  // namespace

void bind_shortlist(nb::module_& module) {
    module.attr("APART") = APART;
    module.def("row_limits", &row_limits, Released(), "block"_array, "k"_a, "limits"_array);
    nb::class_<Shortlist>(module, "Shortlist", "The nearest rows of queries seen so far.")
        .def(nb::init<const Rows&, const Rows&, std::int64_t, std::int64_t, Vector<const float>,
                      Vector<const float>, double, std::int64_t, std::vector<std::int64_t>,
                      Vector<const std::int32_t>, float, bool, std::optional<Vector<const float>>,
                      bool, double>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), "queries"_a, "base"_a, "k"_a, "room"_a,
             "query_errors"_array, "base_errors"_array, "scale"_a, "itself"_a, "starts"_a,
             "names"_array, "relative"_a = 0.0f, "apart"_a = false, "limits"_array = nb::none(),
             "refined"_a = false, "margin"_a = infinite)
        .def("offer", &Shortlist::offer, Released(), "block"_array, "query"_a, "row"_a, "both"_a)
        .def("offer_to", &Shortlist::offer_to, Released(), "block"_array, "chosen"_array, "row"_a)
        .def("offer_bytes", &Shortlist::offer_bytes, Released(), "rows"_a, "base"_a, "query"_a,
             "row"_a, "both"_a)
        .def("offer_bytes_to", &Shortlist::offer_bytes_to, Released(), "rows"_a, "base"_a,
             "chosen"_array, "row"_a)
        .def("offer_bytes_one", &Shortlist::offer_bytes_one, Released(), "query"_a, "parts"_a,
             "rows"_a, "limits"_array = nb::none(), "reached"_array = nb::none())
        .def("given_up", &Shortlist::given_up, Released(), "result"_array)
        .def("finish", &Shortlist::finish, Released(), "query"_a, "rows"_array, "distances"_array);
}

}  // namespace nearlabel
