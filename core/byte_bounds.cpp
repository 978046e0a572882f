#include "byte_bounds.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace nearlabel {

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
const double FAR = std::ldexp(1.0, 100);          // as in packed_bounds.cpp
const double LEAST_SCALE = std::ldexp(1.0, -60);  // smaller rows are rounded to zero
constexpr double LARGEST_CODE = 127;
constexpr std::uint32_t FLIPPED = 0x80808080;  // adds 128 to four codes
constexpr double MARGINS = 2 + 1e-5;           // between a lower and an upper bound

const float* scales_of(const std::uint8_t* panel) { return reinterpret_cast<const float*>(panel); }
const float* offsets_of(const std::uint8_t* panel) { return scales_of(panel) + PANEL_ROWS; }
const std::uint8_t* codes_of(const std::uint8_t* panel) { return panel + PANEL_ROWS * 8; }

template <class Take>
NL_INLINE void tile_baseline(const ByteTile& tile, const std::uint8_t* panel, Take take) {
    const float *scales = scales_of(panel), *offsets = offsets_of(panel);
    for (int i = 0; i < TILE_ROWS; ++i) {
        std::int32_t sums[PANEL_ROWS];
        std::fill(sums, sums + PANEL_ROWS, tile.corrections[i]);
        const std::int8_t* row = tile.codes[i];
        const std::uint8_t* codes = codes_of(panel);
        for (std::int64_t group = 0; group < tile.groups; ++group, row += GROUP_BYTES)
            for (std::int64_t j = 0; j < PANEL_ROWS; ++j, codes += GROUP_BYTES)
                for (std::int64_t f = 0; f < GROUP_BYTES; ++f) sums[j] += row[f] * codes[f];
        for (int j = 0; j < PANEL_ROWS; ++j) {
            const float product = static_cast<float>(sums[j]) * scales[j] * tile.factors[i];
            take(i, j, product + (tile.offsets[i] + offsets[j]));
        }
    }
}

void bounds_baseline(const ByteTile& tile, const std::uint8_t* panel, float* bounds) {
    tile_baseline(tile, panel,
                  [&](int i, int j, float bound) { bounds[i * PANEL_ROWS + j] = bound; });
}

void within_baseline(const ByteTile& tile, const std::uint8_t* panel, const float* limits,
                     const float* columns, std::uint64_t* within) {
    std::fill(within, within + TILE_ROWS, 0);
    tile_baseline(tile, panel, [&](int i, int j, float bound) {
        within[i] |= std::uint64_t{bound <= std::max(limits[i], columns[j])} << j;
    });
}

#ifdef NL_VNNI
// GCC 12 warns of _mm512_max_ps and the like, though not of their forms with a mask.
constexpr __mmask16 ALL = 0xffff;
constexpr int COLUMNS = 4;  // registers that the rows of a panel take
#define NL_UNROLL _Pragma("GCC unroll 32")

// The products of the first ROWS queries. All sums stay in registers, which compilers manage only
// if nothing else is computed here.
template <int ROWS>
NL_TARGET_VNNI __attribute__((noinline)) void sum_products(const ByteTile& tile,
                                                           const std::uint8_t* codes,
                                                           std::int32_t* sums) {
    __m512i total[ROWS * COLUMNS];
    const std::int8_t* rows[ROWS];
    NL_UNROLL for (int i = 0; i < ROWS; ++i) {
        rows[i] = tile.codes[i];
        NL_UNROLL for (int j = 0; j < COLUMNS; ++j) total[i * COLUMNS + j] =
            _mm512_set1_epi32(tile.corrections[i]);
    }
    const std::int64_t groups = tile.groups;
    for (std::int64_t group = 0; group < groups; ++group, codes += PANEL_ROWS * GROUP_BYTES) {
        __m512i column[COLUMNS];
        NL_UNROLL for (int j = 0; j < COLUMNS; ++j) column[j] = _mm512_loadu_si512(codes + 64 * j);
        NL_UNROLL for (int i = 0; i < ROWS; ++i) {
            std::int32_t four;
            std::memcpy(&four, rows[i] + group * GROUP_BYTES, sizeof four);
            const __m512i row = _mm512_set1_epi32(four);
            NL_UNROLL for (int j = 0; j < COLUMNS; ++j) total[i * COLUMNS + j] =
                _mm512_dpbusd_epi32(total[i * COLUMNS + j], column[j], row);
        }
    }
    NL_UNROLL for (int i = 0; i < ROWS * COLUMNS; ++i) _mm512_store_si512(sums + 16 * i, total[i]);
}

// Calls take(i, bounds) for the bounds of each query, or of the first if they are all the same.
template <class Take>
NL_TARGET_VNNI inline void tile_vnni(const ByteTile& tile, const std::uint8_t* panel, Take take) {
    alignas(64) std::int32_t sums[TILE_ROWS * PANEL_ROWS];
    tile.is_one ? sum_products<1>(tile, codes_of(panel), sums)
                : sum_products<TILE_ROWS>(tile, codes_of(panel), sums);
    const float *scales = scales_of(panel), *offsets = offsets_of(panel);
    const int count = tile.is_one ? 1 : TILE_ROWS;
    for (int i = 0; i < count; ++i) {
        const __m512 factor = _mm512_set1_ps(tile.factors[i]);
        const __m512 offset = _mm512_set1_ps(tile.offsets[i]);
        __m512 bounds[COLUMNS];
        NL_UNROLL for (int j = 0; j < COLUMNS; ++j) {
            const __m512i sum = _mm512_load_si512(sums + i * PANEL_ROWS + 16 * j);
            const __m512 scaled =
                _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(ALL, sum), _mm512_loadu_ps(scales + 16 * j));
            const __m512 both = _mm512_add_ps(offset, _mm512_loadu_ps(offsets + 16 * j));
            bounds[j] = _mm512_fmadd_ps(scaled, factor, both);
        }
        take(i, bounds);
    }
}

NL_TARGET_VNNI void bounds_vnni(const ByteTile& tile, const std::uint8_t* panel, float* bounds) {
    tile_vnni(tile, panel, [&](int i, const __m512* found) NL_TARGET_VNNI {
        NL_UNROLL for (int j = 0; j < COLUMNS; ++j)
            _mm512_storeu_ps(bounds + i * PANEL_ROWS + 16 * j, found[j]);
    });
}

NL_TARGET_VNNI void within_vnni(const ByteTile& tile, const std::uint8_t* panel,
                                const float* limits, const float* columns, std::uint64_t* within) {
    tile_vnni(tile, panel, [&](int i, const __m512* found) NL_TARGET_VNNI {
        const __m512 limit = _mm512_set1_ps(limits[i]);
        std::uint64_t bits = 0;
        NL_UNROLL for (int j = 0; j < COLUMNS; ++j) {
            const __m512 reach = _mm512_maskz_max_ps(ALL, limit, _mm512_loadu_ps(columns + 16 * j));
            const auto these = _mm512_cmp_ps_mask(found[j], reach, _CMP_LE_OQ);
            bits |= static_cast<std::uint64_t>(these) << (16 * j);
        }
        within[i] = bits;
    });
}
#endif

// What rounding a row to codes keeps and leaves: squared lengths.
struct Rounded {
    float scale;
    double size, kept, left;
};

// Centers a row, and rounds it to codes. Sums have several parts, which compilers add at once.
NL_INLINE Rounded round_row(double* row, std::int64_t width, const double* center, double unit,
                            std::int8_t* codes) {
    constexpr int PARTS = 8;
    constexpr double TO_WHOLE = 6755399441055744.0;  // 1.5 * 2^52: its last digit is worth 1
    double largest[PARTS] = {}, size[PARTS] = {}, kept[PARTS] = {}, left[PARTS] = {};
    const auto for_all = [width](auto work) {
        std::int64_t f = 0;
        for (; f + PARTS <= width; f += PARTS)
            for (int part = 0; part < PARTS; ++part) work(f + part, part);
        for (int part = 0; f < width; ++f, ++part) work(f, part);
    };
    for_all([&](std::int64_t f, int part) {
        row[f] = (row[f] - center[f]) * unit;
        const double magnitude = std::fabs(row[f]);
        largest[part] = magnitude > largest[part] ? magnitude : largest[part];
        size[part] += row[f] * row[f];
    });
    const auto total = [](const double* parts) {
        return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
               ((parts[1] + parts[5]) + (parts[3] + parts[7]));
    };
    const double all = total(size);
    if (!(all <= FAR)) return {0, all, 0, 0};  // without codes, which might not be numbers
    const double wanted = *std::max_element(largest, largest + PARTS) / LARGEST_CODE;
    const float scale = wanted < LEAST_SCALE ? 0 : static_cast<float>(wanted);
    const double inverse = scale == 0 ? 0 : 1 / static_cast<double>(scale);
    for_all([&](std::int64_t f, int part) {
        const double code = (row[f] * inverse + TO_WHOLE) - TO_WHOLE;
        const double value = code * scale, rest = row[f] - value;
        codes[f] = static_cast<std::int8_t>(static_cast<std::int32_t>(code));
        kept[part] += value * value;
        left[part] += rest * rest;
    });
    return {scale, all, total(kept), total(left)};
}

}  // namespace

void tile_within(const ByteTile& tile, const std::uint8_t* panel, const float* limits,
                 const float* columns, std::uint64_t* within) {
#ifdef NL_VNNI
    if (has_vnni()) return within_vnni(tile, panel, limits, columns, within);
#endif
    within_baseline(tile, panel, limits, columns, within);
}

ByteRows::ByteRows(const Rows& rows, Vector<const std::int32_t> chosen, Vector<const double> center,
                   double unit, double share, double slack, double tiny, Vector<float> errors)
    : size_(static_cast<std::int64_t>(chosen.shape(0))),
      groups_((rows.width() + GROUP_BYTES - 1) / GROUP_BYTES),
      memory_(std::make_shared<AlignedBytes>(static_cast<std::size_t>(bytes()))),
      first_(memory_->data()) {
    const auto d = static_cast<std::size_t>(rows.width());
    require(center.shape(0) == d, "center must have one entry per feature");
    require(errors.shape(0) == chosen.shape(0), "errors must have one entry per entry of chosen");
    require(rows.metric() != Metric::manhattan, "metric must not be 'manhattan'");
    require(rows.width() <= MOST_BYTES, "rows must have at most 65536 features");
    require(share > 0, "share must be positive");
    const bool is_cosine = rows.metric() == Metric::cosine;
    const double half = is_cosine ? 0.5 : 1;
    const auto round = up_to_avx2<round_row>();
    Query row;
    std::vector<std::int8_t> codes(static_cast<std::size_t>(groups_ * GROUP_BYTES));
    for (std::int64_t i = 0; i < panels() * PANEL_ROWS; ++i) {
        std::uint8_t* const panel = first_ + i / PANEL_ROWS * bytes_of_panel();
        const std::int64_t lane = i % PANEL_ROWS;
        float scale = 0, offset = infinite;
        if (i >= size_) std::fill(codes.begin(), codes.end(), std::int8_t{0});
        if (i < size_) {
            const std::size_t number =
                checked_index(chosen.data()[i], static_cast<std::size_t>(rows.size()),
                              "chosen must contain row numbers");
            double* const values = rows.load_dense(static_cast<std::int64_t>(number), row);
            Rounded rounded = round(values, rows.width(), center.data(), unit, codes.data());
            if (!(rounded.size <= FAR)) {
                std::fill(codes.begin(), codes.end(), std::int8_t{0});
                offset = 0;
                errors.data()[i] = infinite;
            } else {
                scale = rounded.scale;
                const double margin = slack * rounded.size + tiny + share * rounded.kept +
                                      (1 + 1 / share) * rounded.left;
                // A zero row has cosine distance 1 to all rows, as if its length were not zero.
                const double size = rounded.size + (is_cosine && row.empty ? 1 : 0);
                offset = static_cast<float>(half * (size - margin));
                errors.data()[i] = static_cast<float>(half * MARGINS * margin);
            }
        }
        float* const scales = reinterpret_cast<float*>(panel);
        scales[lane] = scale;
        scales[PANEL_ROWS + lane] = offset;
        std::uint8_t* to = panel + PANEL_ROWS * 8 + lane * GROUP_BYTES;
        for (std::int64_t group = 0; group < groups_; ++group, to += PANEL_ROWS * GROUP_BYTES) {
            std::uint32_t four;
            std::memcpy(&four, &codes[static_cast<std::size_t>(group * GROUP_BYTES)], sizeof four);
            four ^= FLIPPED;
            std::memcpy(to, &four, sizeof four);
        }
    }
}

ByteRows ByteRows::view(std::int64_t start, std::int64_t stop) const {
    require(0 <= start && start <= stop && stop <= size_ && start % PANEL_ROWS == 0,
            "start must be a multiple of the rows of a panel, and stop at most the number of rows");
    ByteRows part = *this;
    part.first_ += start / PANEL_ROWS * bytes_of_panel();
    part.size_ = stop - start;
    return part;
}

ByteQueries::ByteQueries(std::int64_t size, std::int64_t groups)
    : size(size),
      groups(groups),
      codes(static_cast<std::size_t>(size * groups * GROUP_BYTES)),
      corrections(static_cast<std::size_t>(size)),
      factors(static_cast<std::size_t>(size)),
      offsets(static_cast<std::size_t>(size)) {}

ByteQueries ByteRows::as_queries(float factor) const {
    ByteQueries queries(size_, groups_);
    for (std::int64_t i = 0; i < size_; ++i) {
        const std::uint8_t* const from = panel(i / PANEL_ROWS);
        const std::int64_t lane = i % PANEL_ROWS;
        const std::uint8_t* codes = codes_of(from) + lane * GROUP_BYTES;
        std::int8_t* const row = queries.row(i);
        for (std::int64_t group = 0; group < groups_; ++group, codes += PANEL_ROWS * GROUP_BYTES) {
            std::uint32_t four;
            std::memcpy(&four, codes, sizeof four);
            four ^= FLIPPED;
            std::memcpy(row + group * GROUP_BYTES, &four, sizeof four);
        }
        std::int32_t sum = 0;
        for (std::int64_t f = 0; f < groups_ * GROUP_BYTES; ++f) sum += row[f];
        queries.corrections[i] = -128 * sum;
        queries.factors[i] = factor * scales_of(from)[lane];
        queries.offsets[i] = offsets_of(from)[lane];
    }
    return queries;
}

ByteQueries ByteQueries::chosen(Vector<const std::int32_t> some) const {
    ByteQueries result(static_cast<std::int64_t>(some.shape(0)), groups);
    for (std::int64_t i = 0; i < result.size; ++i) {
        const std::int64_t from = some.data()[i];
        (void)checked_index(from, static_cast<std::size_t>(size),
                            "some must contain query numbers");
        std::copy_n(row(from), groups * GROUP_BYTES, result.row(i));
        result.corrections[i] = corrections[from];
        result.factors[i] = factors[from];
        result.offsets[i] = offsets[from];
    }
    return result;
}

void tile_bounds(const ByteTile& tile, const std::uint8_t* panel, float* bounds) {
#ifdef NL_VNNI
    if (has_vnni()) return bounds_vnni(tile, panel, bounds);
#endif
    bounds_baseline(tile, panel, bounds);
}

void bind_byte_bounds(nb::module_& module) {
    module.attr("PANEL_ROWS") = PANEL_ROWS;
    module.def("multiplies_bytes", &has_vnni);
    nb::class_<ByteQueries>(module, "ByteQueries", "Queries rounded to bytes.")
        .def("__len__", [](const ByteQueries& queries) { return queries.size; })
        .def("__getitem__", &ByteQueries::chosen, Released(), "some"_array);
    nb::class_<ByteRows>(module, "ByteRows", "Base rows rounded to bytes.")
        .def(nb::init<const Rows&, Vector<const std::int32_t>, Vector<const double>, double, double,
                      double, double, Vector<float>>(),
             Released(), "rows"_a, "chosen"_array, "center"_array, "unit"_a, "share"_a, "slack"_a,
             "tiny"_a, "errors"_array)
        .def("__len__", &ByteRows::size)
        .def_prop_ro("nbytes", &ByteRows::bytes)
        .def("__getitem__",
             [](const ByteRows& rows, const nb::slice& some) {
                 const auto [start, stop, step, count] =
                     some.compute(static_cast<std::size_t>(rows.size()));
                 require(step == 1, "some must have the step 1");
                 return rows.view(start, start + static_cast<std::int64_t>(count));
             })
        .def("as_queries", &ByteRows::as_queries, Released(), "factor"_a)
        .def(
            "block",
            [](const ByteRows& base, const ByteQueries& queries, Matrix<float> block) {
                require(
                    queries.groups == base.groups() && has_shape(block, queries.size, base.size()),
                    "block must have one row per query and one column per base row");
                byte_block(
                    queries, queries.size, [](std::int64_t i) { return i; }, base, block.data());
            },
            Released(), "queries"_a, "block"_array);
}

}  // namespace nearlabel
