// Kernels that apply count changes to histograms by label and count, stored in blocks.
// Their twins are in src/nearlabel/labels/living_histograms.py.
#include "bindings.h"
#include "cpu.h"

#include <cstddef>
#include <cstdint>

namespace nearlabel {

namespace {

// Changes come in pairs: a row leaves a cell, then it enters one.
constexpr int SIGN[] = {-1, 1};
constexpr std::size_t AHEAD = 64;  // changes whose cells are prefetched together

// Adds each change of a row that carries the label to the total of its table.
template <class I>
void add_to_totals(Vector<const I> table, Vector<const std::int8_t> own,
                   Vector<std::int64_t> totals) {
    const std::size_t n = table.size(), tables = totals.size();
    require(own.size() == n, "table and own must have the same length");
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t t =
            checked_index(table.data()[i], tables, "table must contain labels of the tables");
        if (own.data()[i] == 1) totals.data()[t] += SIGN[i % 2];
    }
}

// The addresses of cells, in blocks of 2^bits.
template <class I>
class Cells {
public:
    Cells(const Vector<const I>& table, const Vector<const std::int32_t>& count,
          const Vector<const std::int64_t>& start, const Vector<const std::int64_t>& room, int bits,
          std::size_t blocks)
        : table_(table.data()),
          count_(count.data()),
          start_(start.data()),
          room_(room.data()),
          tables_(start.size()),
          labels_(room.size()) {
        require(count.size() == table.size(), "table and count must have the same length");
        require(bits >= 0 && bits < 16, "bits must be from 0 to 15");
        require(labels_ > 0 || tables_ == 0, "room must have one entry per label");
        end_ = blocks << bits;
    }

    std::size_t address(std::size_t i) const {
        const std::size_t t =
            checked_index(table_[i], tables_, "table must contain labels of the tables");
        const std::int64_t count = count_[i];
        require(count >= 0 && count < room_[t < labels_ ? t : t % labels_],
                "count must be within the room of its label");
        const std::size_t first =
            checked_index(start_[t], end_, "start must contain cells of the blocks");
        require(static_cast<std::size_t>(count) < end_ - first, "room must not exceed the blocks");
        return first + static_cast<std::size_t>(count);
    }

private:
    const I* table_;
    const std::int32_t* count_;
    const std::int64_t *start_, *room_;
    std::size_t tables_, labels_, end_;
};

// Marks the blocks that contain the cells of the changes.
template <class I>
void mark_blocks(Vector<const I> table, Vector<const std::int32_t> count,
                 Vector<const std::int64_t> start, Vector<const std::int64_t> room, int bits,
                 Vector<std::uint8_t> touched) {
    const Cells<I> cells(table, count, start, room, bits, touched.size());
    for (std::size_t i = 0; i < table.size(); ++i) touched.data()[cells.address(i) >> bits] = 1;
}

// Adds each change to its cell, which counts rows with the label and rows without it. Only tables
// from `begin` to `end` are updated, so that several threads can share the work.
template <class I>
void add_to_cells(Vector<const I> table, Vector<const std::int32_t> count,
                  Vector<const std::int8_t> own, Vector<const std::int64_t> start,
                  Vector<const std::int64_t> room, int bits, Vector<const std::int32_t> slot,
                  Vector<std::int64_t> numbers, std::int64_t begin, std::int64_t end) {
    const Cells<I> cells(table, count, start, room, bits, slot.size());
    const std::size_t n = table.size(), inside = (std::size_t{1} << bits) - 1;
    const std::size_t blocks = numbers.size() >> (bits + 1);
    require(own.size() == n, "table and own must have the same length");
    // Cells are scattered over the memory, so they are prefetched some changes ahead.
    std::size_t chosen[AHEAD], places[AHEAD];
    for (std::size_t i = 0; i < n;) {
        std::size_t found = 0;
        for (; i < n && found < AHEAD; ++i) {
            if (table.data()[i] < begin || table.data()[i] >= end) continue;
            chosen[found] = i;
            places[found] = cells.address(i);
            prefetch(slot.data() + (places[found++] >> bits));
        }
        for (std::size_t at = 0; at < found; ++at) {
            const std::size_t block = checked_index(slot.data()[places[at] >> bits], blocks,
                                                    "slot must contain blocks of numbers");
            places[at] =
                2 * ((block << bits) + (places[at] & inside)) + (own.data()[chosen[at]] == 0);
            prefetch(numbers.data() + places[at]);
        }
        for (std::size_t at = 0; at < found; ++at) {
            numbers.data()[places[at]] += SIGN[chosen[at] % 2];
        }
    }
}

template <class I>
void bind(nb::module_& module) {
    module.def("add_to_totals", &add_to_totals<I>, "table"_a.noconvert(), "own"_a.noconvert(),
               "totals"_a.noconvert(), Released());
    module.def("mark_blocks", &mark_blocks<I>, "table"_a.noconvert(), "count"_a.noconvert(),
               "start"_a.noconvert(), "room"_a.noconvert(), "bits"_a, "touched"_a.noconvert(),
               Released());
    module.def("add_to_cells", &add_to_cells<I>, "table"_a.noconvert(), "count"_a.noconvert(),
               "own"_a.noconvert(), "start"_a.noconvert(), "room"_a.noconvert(), "bits"_a,
               "slot"_a.noconvert(), "numbers"_a.noconvert(), "begin"_a, "end"_a, Released());
}

}  // namespace

void bind_living_histograms(nb::module_& module) {
    bind<std::int32_t>(module);
    bind<std::int64_t>(module);
}

}  // namespace nearlabel
