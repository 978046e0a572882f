// Lower bounds on distances from products of 8-bit integers.
//
// A row is rounded to a scale times whole numbers from -127 to 127, its codes; see
// src/nearlabel/search/exact/byte_bounds.py. Base rows are in panels of 64: the scales, the
// offsets, and then, for each group of four features, the codes plus 128 of all 64 rows. Queries
// have their codes row by row. The bound of a pair is scale * code . code' * factor + offset +
// offset'.
#pragma once

#include "bindings.h"
#include "cpu.h"
#include "distances.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace nearlabel {

constexpr std::int64_t PANEL_ROWS = 64;       // four AVX-512 registers of sums
constexpr std::int64_t GROUP_BYTES = 4;       // features multiplied by one instruction
constexpr int TILE_ROWS = 6;                  // 24 registers of sums; the rest hold factors
constexpr std::int64_t MOST_BYTES = 1 << 16;  // features whose products add up to less than 2^31

// Memory that begins at a cache line.
class AlignedBytes {
public:
    explicit AlignedBytes(std::size_t size) : memory_(size + 64) {}
    std::uint8_t* data() {
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        return memory_.data() + (64 - address % 64) % 64;
    }

private:
    std::vector<std::uint8_t> memory_;
};

// Queries whose bounds are computed together.
struct ByteTile {
    std::int64_t groups;
    bool is_one;  // all are the same query
    std::array<const std::int8_t*, TILE_ROWS> codes;
    std::array<std::int32_t, TILE_ROWS> corrections;  // -128 times the sum of the codes
    std::array<float, TILE_ROWS> factors, offsets;
};

// Packed queries.
struct ByteQueries {
    std::int64_t size = 0, groups = 0;
    std::vector<std::int8_t> codes;
    std::vector<std::int32_t> corrections;
    std::vector<float> factors, offsets;

    ByteQueries(std::int64_t size, std::int64_t groups);
    std::int8_t* row(std::int64_t i) { return codes.data() + i * groups * GROUP_BYTES; }
    const std::int8_t* row(std::int64_t i) const { return codes.data() + i * groups * GROUP_BYTES; }
    ByteQueries chosen(Vector<const std::int32_t> some) const;

    // A tile of the queries number(first), number(first + 1) and so on, the last one repeated.
    template <class Number>
    ByteTile tile(std::int64_t first, std::int64_t count, Number number) const {
        ByteTile tile;
        tile.groups = groups;
        tile.is_one = first + 1 >= count;
        for (std::int64_t i = 0; i < TILE_ROWS; ++i) {
            const std::int64_t query = number(std::min(first + i, count - 1));
            tile.codes[i] = row(query);
            tile.corrections[i] = corrections[query];
            tile.factors[i] = factors[query];
            tile.offsets[i] = offsets[query];
        }
        return tile;
    }
};

// Packed base rows, or a view of some of them.
class ByteRows {
public:
    // Packs the chosen rows, and writes their errors. A row whose products might overflow is packed
    // as zeros, with an infinite error. `share` divides the error of a pair between its two rows.
    ByteRows(const Rows& rows, Vector<const std::int32_t> chosen, Vector<const double> center,
             double unit, double share, double slack, double tiny, Vector<float> errors);

    std::int64_t size() const { return size_; }
    std::int64_t groups() const { return groups_; }
    std::int64_t bytes() const { return panels() * bytes_of_panel(); }
    const std::uint8_t* panel(std::int64_t number) const {
        return first_ + number * bytes_of_panel();
    }

    ByteRows view(std::int64_t start, std::int64_t stop) const;  // start: the first of a panel
    ByteQueries as_queries(float factor) const;  // factor: that of the metric, -2 or -1

private:
    std::int64_t panels() const { return (size_ + PANEL_ROWS - 1) / PANEL_ROWS; }
    std::int64_t bytes_of_panel() const { return PANEL_ROWS * (2 * 4 + GROUP_BYTES * groups_); }

    std::int64_t size_, groups_;
    std::shared_ptr<AlignedBytes> memory_;
    std::uint8_t* first_;
};

// Compares the bounds between a tile and the rows of a panel with limits: within[i] has a bit for
// each row whose bound is within the limit of query i or that of the row, in `columns`.
void tile_within(const ByteTile& tile, const std::uint8_t* panel, const float* limits,
                 const float* columns, std::uint64_t* within);

// Writes the bounds between a tile and the rows of a panel, TILE_ROWS x PANEL_ROWS.
void tile_bounds(const ByteTile& tile, const std::uint8_t* panel, float* bounds);

// Writes the bounds of all pairs of the queries number(0) to number(height - 1) and a base row.
template <class Number>
void byte_block(const ByteQueries& queries, std::int64_t height, Number number,
                const ByteRows& base, float* block) {
    std::array<float, TILE_ROWS * PANEL_ROWS> bounds;
    for (std::int64_t i = 0; i < height; i += TILE_ROWS) {
        const ByteTile tile = queries.tile(i, height, number);
        for (std::int64_t first = 0; first < base.size(); first += PANEL_ROWS) {
            tile_bounds(tile, base.panel(first / PANEL_ROWS), bounds.data());
            const std::int64_t width = std::min(PANEL_ROWS, base.size() - first);
            for (std::int64_t row = i; row < std::min(i + TILE_ROWS, height); ++row)
                std::copy_n(&bounds[static_cast<std::size_t>((row - i) * PANEL_ROWS)], width,
                            block + row * base.size() + first);
        }
    }
}

}  // namespace nearlabel
