// Kernels that apply count changes to histograms by label and count.
// Their twins are in src/nearlabel/labels/living_histograms.py.
#include "bindings.h"
#include "cpu.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

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

// Adds each change to its cell, which counts rows with the label and rows without it. Only tables
// from `begin` to `end` are updated, so that several threads can share the work.
template <class I>
void add_to_cells(Vector<const I> table, Vector<const std::int32_t> count,
                  Vector<const std::int8_t> own, Vector<const std::int64_t> start,
                  Vector<const std::int64_t> room, Vector<std::int64_t> numbers, std::int64_t begin,
                  std::int64_t end) {
    const std::size_t n = table.size(), labels = room.size(), cells = numbers.size() / 2;
    require(count.size() == n && own.size() == n, "table, count and own must have the same length");
    require(labels > 0 || start.size() == 0, "room must have one entry per label");
    // Cells are scattered over the memory, so they are prefetched some changes ahead.
    std::size_t chosen[AHEAD], places[AHEAD];
    for (std::size_t i = 0; i < n;) {
        std::size_t found = 0;
        for (; i < n && found < AHEAD; ++i) {
            if (table.data()[i] < begin || table.data()[i] >= end) continue;
            const std::size_t t = checked_index(table.data()[i], start.size(),
                                                "table must contain labels of the tables");
            const std::int64_t j = count.data()[i];
            require(j >= 0 && j < room.data()[t < labels ? t : t % labels],
                    "count must be within the room of its label");
            const std::size_t cell = checked_index(start.data()[t] + j, cells,
                                                   "start and room must be within the numbers");
            chosen[found] = i;
            places[found] = 2 * cell + (own.data()[i] == 0);
            prefetch(numbers.data() + places[found++]);
        }
        for (std::size_t at = 0; at < found; ++at) {
            numbers.data()[places[at]] += SIGN[chosen[at] % 2];
        }
    }
}

// Copies tables, which begin at some cells and have some sizes, to other cells.
void copy_tables(Vector<const std::int64_t> begin, Vector<const std::int64_t> size,
                 Vector<const std::int64_t> to, Vector<const std::int64_t> numbers,
                 Vector<std::int64_t> target) {
    const std::size_t n = begin.size(), cells = numbers.size() / 2, places = target.size() / 2;
    require(size.size() == n && to.size() == n, "begin, size and to must have the same length");
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t first = checked_index(begin.data()[i], cells, "begin must be a cell");
        const std::size_t place = checked_index(to.data()[i], places, "to must be a cell");
        const auto many = static_cast<std::uint64_t>(size.data()[i]);
        require(many <= cells - first && many <= places - place, "size must be within the cells");
        std::memmove(target.data() + 2 * place, numbers.data() + 2 * first,
                     2 * many * sizeof(std::int64_t));
    }
}

template <class I>
void bind(nb::module_& module) {
    module.def("add_to_totals", &add_to_totals<I>, "table"_array, "own"_array, "totals"_array,
               Released());
    module.def("add_to_cells", &add_to_cells<I>, "table"_array, "count"_array, "own"_array,
               "start"_array, "room"_array, "numbers"_array, "begin"_a, "end"_a, Released());
}

}  // namespace

void bind_living_histograms(nb::module_& module) {
    module.def("copy_tables", &copy_tables, "begin"_array, "size"_array, "to"_array,
               "numbers"_array, "target"_array, Released());
    bind<std::int32_t>(module);
    bind<std::int64_t>(module);
}

}  // namespace nearlabel
