// Blocks of lower bounds on distances that are no product of dense matrices.
#include "bindings.h"
#include "cpu.h"
#include "distances.h"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace nearlabel {

namespace {

constexpr int PANEL = 16;  // columns that are computed together: two registers of AVX2
constexpr int TILE = 4;    // rows that are computed together

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

void tile_sums_baseline(const float* const rows[TILE], const float* panel, std::int64_t width,
                        float sums[TILE][PANEL]) {
    tile_sums(rows, panel, width, sums);
}

NL_TARGET_AVX2 void tile_sums_avx2(const float* const rows[TILE], const float* panel,
                                   std::int64_t width, float sums[TILE][PANEL]) {
    tile_sums(rows, panel, width, sums);
}

// block[i, j] = the sum of |queries[i] - base[j]| + query_offsets[i] + base_offsets[j]
void manhattan_block(Matrix<const float> queries, Matrix<const float> base,
                     Vector<const float> query_offsets, Vector<const float> base_offsets,
                     Matrix<float> block) {
    const auto height = static_cast<std::int64_t>(queries.shape(0));
    const auto columns = static_cast<std::int64_t>(base.shape(0));
    const auto width = static_cast<std::int64_t>(queries.shape(1));
    require(base.shape(1) == queries.shape(1) && block.shape(0) == queries.shape(0) &&
                block.shape(1) == base.shape(0) && query_offsets.shape(0) == queries.shape(0) &&
                base_offsets.shape(0) == base.shape(0),
            "block must have one row per query and one column per base row");
    const auto compute = has_avx2() ? tile_sums_avx2 : tile_sums_baseline;
    std::vector<float> panel(static_cast<std::size_t>(width * PANEL));
    for (std::int64_t first = 0; first < columns; first += PANEL) {
        const std::int64_t count = std::min<std::int64_t>(PANEL, columns - first);
        for (std::int64_t j = 0; j < PANEL; ++j) {
            const float* row = base.data() + (first + std::min(j, count - 1)) * width;
            for (std::int64_t f = 0; f < width; ++f) panel[f * PANEL + j] = row[f];
        }
        for (std::int64_t top = 0; top < height; top += TILE) {
            const std::int64_t rows = std::min<std::int64_t>(TILE, height - top);
            const float* from[TILE];
            for (std::int64_t i = 0; i < TILE; ++i)
                from[i] = queries.data() + (top + std::min(i, rows - 1)) * width;
            float sums[TILE][PANEL];
            compute(from, panel.data(), width, sums);
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < count; ++j)
                    block.data()[(top + i) * columns + first + j] =
                        sums[i][j] +
                        (query_offsets.data()[top + i] + base_offsets.data()[first + j]);
        }
    }
}

// CSR rows by feature: for each the rows that store it, with their values.
class Postings {
public:
    Postings(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
             Vector<const float> values, std::int64_t width)
        : rows_(static_cast<std::int64_t>(starts.shape(0)) - 1), width_(width) {
        check_csr(starts, columns, values.shape(0), width);
        require(rows_ <= std::numeric_limits<std::int32_t>::max(),
                "starts must be of fewer than 2^31 rows");
        // One place further than they belong, until all entries are in.
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

    // block[i, j] = factor * queries[i] . rows[j] + query_offsets[i] + offsets[j], or `apart` where
    // the two store no feature in common.
    void block(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
               Vector<const float> values, float factor, Vector<const float> query_offsets,
               Vector<const float> offsets, Matrix<float> block, std::optional<float> apart) const {
        check_csr(starts, columns, values.shape(0), width_);
        const auto height = static_cast<std::int64_t>(starts.shape(0)) - 1;
        require(block.shape(0) == static_cast<std::size_t>(height) &&
                    block.shape(1) == static_cast<std::size_t>(rows_) &&
                    query_offsets.shape(0) == block.shape(0) && offsets.shape(0) == block.shape(1),
                "block must have one row per query and one column per base row");
        for (std::int64_t i = 0; i < height; ++i) {
            float* result = block.data() + i * rows_;
            // Whatever is added to -0, another -0 aside, gives something else.
            std::fill(result, result + rows_, -0.0f);
            for (std::int64_t at = starts.data()[i]; at < starts.data()[i + 1]; ++at) {
                const float value = values.data()[at];
                const std::int64_t feature = columns.data()[at];
                const Entry* const end = entries_.data() + begin_[feature + 1];
                for (const Entry* e = entries_.data() + begin_[feature]; e < end; ++e)
                    result[e->row] += value * e->value;
            }
            const float offset = query_offsets.data()[i];
            for (std::int64_t j = 0; j < rows_; ++j) {
                const bool is_apart = apart && result[j] == 0 && std::signbit(result[j]);
                const float bound = factor * result[j] + (offset + offsets.data()[j]);
                result[j] = is_apart ? *apart : bound;
            }
        }
    }

private:
    struct Entry {
        std::int32_t row;
        float value;
    };

    std::int64_t rows_, width_;
    std::vector<std::int64_t> begin_;
    std::vector<Entry> entries_;
};

}  // namespace

void bind_packed_bounds(nb::module_& module) {
    module.def("manhattan_block", &manhattan_block, Released(), "queries"_a.noconvert(),
               "base"_a.noconvert(), "query_offsets"_a.noconvert(), "base_offsets"_a.noconvert(),
               "block"_a.noconvert());
    nb::class_<Postings>(module, "Postings", "CSR rows by feature.")
        .def(nb::init<Vector<const std::int64_t>, Vector<const std::int32_t>, Vector<const float>,
                      std::int64_t>(),
             Released(), "starts"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
             "width"_a)
        .def("block", &Postings::block, Released(), "starts"_a.noconvert(), "columns"_a.noconvert(),
             "values"_a.noconvert(), "factor"_a, "query_offsets"_a.noconvert(),
             "offsets"_a.noconvert(), "block"_a.noconvert(), "apart"_a = nb::none());
}

}  // namespace nearlabel
