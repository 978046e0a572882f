// Rows packed for lower bounds on distances, and blocks of bounds that are not products of dense
// matrices. src/nearlabel/search/exact/packed_bounds.py defines a packed row.
#include "bindings.h"
#include "cpu.h"
#include "distances.h"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace nearlabel {

namespace {

constexpr int PANEL = 16;  // columns computed together: two AVX2 registers
constexpr int TILE = 4;    // rows computed together

constexpr std::size_t SUMS = 8;  // independent additions
// Lengths of rows whose products neither overflow nor underflow in float; Python uses the same
// limits for sparse rows.
const double FAR = std::ldexp(1.0, 100);

// Sums of absolute differences of TILE rows and PANEL columns, in float.
NL_INLINE void tile_sums(const float* const rows[TILE], const float* panel, std::int64_t width,
                         float sums[TILE][PANEL]) {
    float total[TILE][PANEL] = {};
    for (std::int64_t f = 0; f < width; ++f)
        for (int i = 0; i < TILE; ++i)
            for (int j = 0; j < PANEL; ++j)
                total[i][j] += std::fabs(rows[i][f] - panel[f * PANEL + j]);
    for (int i = 0; i < TILE; ++i) std::copy(total[i], total[i] + PANEL, sums[i]);
}

// block[i, j] = the sum of |queries[i] - base[j]| plus the products of their last two columns.
void manhattan_block(Matrix<const float> queries, Matrix<const float> base, Matrix<float> block) {
    const auto height = static_cast<std::int64_t>(queries.shape(0));
    const auto columns = static_cast<std::int64_t>(base.shape(0));
    const auto stride = static_cast<std::int64_t>(queries.shape(1)), width = stride - 2;
    require(width >= 0 && base.shape(1) == queries.shape(1) && has_shape(block, height, columns),
            "block must have one row per query and one column per base row");
    const auto compute = up_to_avx2<tile_sums>();
    std::vector<float> panel(static_cast<std::size_t>(width * PANEL));
    for (std::int64_t first = 0; first < columns; first += PANEL) {
        const std::int64_t count = std::min<std::int64_t>(PANEL, columns - first);
        for (std::int64_t j = 0; j < PANEL; ++j) {
            const float* row = base.data() + (first + std::min(j, count - 1)) * stride;
            for (std::int64_t f = 0; f < width; ++f) panel[f * PANEL + j] = row[f];
        }
        for (std::int64_t top = 0; top < height; top += TILE) {
            const std::int64_t rows = std::min<std::int64_t>(TILE, height - top);
            const float* from[TILE];
            for (std::int64_t i = 0; i < TILE; ++i)
                from[i] = queries.data() + (top + std::min(i, rows - 1)) * stride;
            float sums[TILE][PANEL];
            compute(from, panel.data(), width, sums);
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < count; ++j) {
                    const float* a = from[i] + width;
                    const float* b = base.data() + (first + j) * stride + width;
                    block.data()[(top + i) * columns + first + j] =
                        sums[i][j] + (a[0] * b[0] + a[1] * b[1]);
                }
        }
    }
}

// CSR rows by feature: for each feature, the rows that store it and their values.
class Postings {
public:
    Postings(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
             Vector<const float> values, Vector<const float> offsets, std::int64_t width,
             float factor, std::optional<float> apart)
        : offsets_(std::move(offsets)),
          rows_(static_cast<std::int64_t>(starts.shape(0)) - 1),
          width_(width),
          factor_(factor),
          apart_(apart) {
        check_csr(starts, columns, values.shape(0), width);
        require(offsets_.shape(0) + 1 == starts.shape(0), "offsets must have one entry per row");
        require(rows_ <= std::numeric_limits<std::int32_t>::max(),
                "starts must have fewer than 2^31 rows");
        // Shifted by one until all entries are in.
        begin_.assign(static_cast<std::size_t>(width) + 2, 0);
        entries_.resize(columns.shape(0));
        const auto column = [&columns](std::int64_t i) -> std::int64_t {
            return columns.data()[i];
        };
        const std::int64_t stored = starts.data()[rows_];
        for (std::int64_t i = 0; i < stored; ++i) ++begin_[column(i) + 2];
        for (std::int64_t f = 0; f < width; ++f) begin_[f + 2] += begin_[f + 1];
        for (std::int64_t row = 0; row < rows_; ++row)
            for (std::int64_t i = starts.data()[row]; i < starts.data()[row + 1]; ++i)
                entries_[begin_[column(i) + 1]++] = {static_cast<std::int32_t>(row),
                                                     values.data()[i]};
    }

    // block[i, j] = factor * queries[i] . rows[j] + the offsets of both, or `apart` if the two have
    // no feature in common.
    void block(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
               Vector<const float> values, Vector<const float> offsets, Matrix<float> block) const {
        check_csr(starts, columns, values.shape(0), width_);
        const auto height = static_cast<std::int64_t>(starts.shape(0)) - 1;
        require(has_shape(block, height, rows_) && has_shape(offsets, height),
                "block must have one row per query and one column per base row");
        // Locals, which cannot alias the results: otherwise the last loop would be slow.
        const float* const base_offsets = offsets_.data();
        const float factor = factor_, mark = apart_.value_or(0);
        const bool marks = apart_.has_value();
        for (std::int64_t i = 0; i < height; ++i) {
            float* result = block.data() + i * rows_;
            // Adding anything but -0 to -0 gives a different value.
            std::fill(result, result + rows_, -0.0f);
            for (std::int64_t at = starts.data()[i]; at < starts.data()[i + 1]; ++at) {
                const float value = values.data()[at];
                const std::int64_t feature = columns.data()[at];
                const Entry* const end = entries_.data() + begin_[feature + 1];
                for (const Entry* e = entries_.data() + begin_[feature]; e < end; ++e)
                    result[e->row] += value * e->value;
            }
            const float offset = offsets.data()[i];
            const std::int64_t width = rows_;
            for (std::int64_t j = 0; j < width; ++j) {
                const bool is_apart = marks && result[j] == 0 && std::signbit(result[j]);
                const float bound = factor * result[j] + (offset + base_offsets[j]);
                result[j] = is_apart ? mark : bound;
            }
        }
    }

private:
    struct Entry {
        std::int32_t row;
        float value;
    };

    Vector<const float> offsets_;
    std::int64_t rows_, width_;
    float factor_;
    std::optional<float> apart_;
    std::vector<std::int64_t> begin_;
    std::vector<Entry> entries_;
};

}  // namespace

// Packs the chosen rows: centered and scaled factors, followed by the offset and 1. A row whose
// products might overflow is packed as zeros, with an infinite error.
void pack_rows(const Rows& rows, Vector<const std::int32_t> chosen, Vector<const double> center,
               double unit, double slack, double tiny, double margins, Matrix<float> factors,
               Vector<float> errors) {
    const std::int64_t width = rows.width();
    const std::size_t n = chosen.shape(0), d = static_cast<std::size_t>(width);
    require(center.shape(0) == d, "center must have one entry per feature");
    require(has_shape(factors, n, d + 2) && has_shape(errors, n),
            "factors and errors must have one row per entry of chosen");
    const bool absolute = rows.metric() == Metric::manhattan;
    Query row;
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t number =
            checked_index(chosen.data()[i], static_cast<std::size_t>(rows.size()),
                          "chosen must contain row numbers");
        const double* from = rows.load_dense(static_cast<std::int64_t>(number), row);
        float* to = factors.data() + i * (d + 2);
        double sums[SUMS] = {};
        for (std::size_t f = 0; f < d; f += SUMS)
            for (std::size_t j = f; j < std::min(f + SUMS, d); ++j) {
                const double value = (from[j] - center.data()[j]) * unit;
                to[j] = static_cast<float>(value);
                sums[j - f] += absolute ? std::fabs(value) : value * value;
            }
        double size = 0;
        for (const double sum : sums) size += sum;
        // A zero row has cosine distance 1 to all rows, as if its length were not zero.
        if (rows.metric() == Metric::cosine) size = (size + (row.empty ? 1 : 0)) / 2;
        const bool is_far = !(size <= FAR);
        if (is_far) std::fill(to, to + d, 0.0f);
        const double margin = slack * size + tiny;
        to[d] = is_far ? 0 : static_cast<float>((absolute ? 0 : size) - margin);
        to[d + 1] = 1;
        errors.data()[i] =
            is_far ? std::numeric_limits<float>::infinity() : static_cast<float>(margins * margin);
    }
}

void bind_packed_bounds(nb::module_& module) {
    module.def("manhattan_block", &manhattan_block, Released(), "queries"_array, "base"_array,
               "block"_array);
    nb::class_<Postings>(module, "Postings", "CSR rows by feature.")
        .def(nb::init<Vector<const std::int64_t>, Vector<const std::int32_t>, Vector<const float>,
                      Vector<const float>, std::int64_t, float, std::optional<float>>(),
             Released(), "starts"_array, "columns"_array, "values"_array, "offsets"_array,
             "width"_a, "factor"_a, "apart"_a = nb::none())
        .def("block", &Postings::block, Released(), "starts"_array, "columns"_array, "values"_array,
             "offsets"_array, "block"_array);
}

}  // namespace nearlabel
