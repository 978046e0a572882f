// Kernels that count one more neighbor of every row. Their twins are in
// src/nearlabel/labels/sweep.py.
#include "label_rows.h"

namespace nearlabel {

namespace {

// Adds the labels of one neighbor of each row to the counts, and moves each row, with or without
// the label, to the cell of its new count.
template <class I>
void add_neighbor(Vector<const std::int64_t> neighbor, Vector<const I> indptr,
                  Vector<const I> indices, Matrix<const std::uint8_t> own,
                  Matrix<std::uint16_t> counts, Cube<std::int64_t> cells) {
    const std::size_t n = counts.shape(0), q = counts.shape(1), width = cells.shape(2);
    const CsrRows<I> labels(indptr, indices.size(), "Y must have an indptr that fits its indices");
    require(neighbor.size() == n && has_shape(own, n, q),
            "neighbor, own and counts must have the same numbers of rows and labels");
    require(has_shape(cells, 2, q, width), "cells must have the shape (2, labels, counts)");
    for (std::size_t row = 0; row < n; ++row) {
        const std::size_t base = checked_index(neighbor.data()[row], labels.rows(),
                                               "neighbor must contain row numbers of Y");
        std::size_t begin, end;
        labels.row(base, begin, end);
        std::uint16_t* const count = counts.data() + row * q;
        const std::uint8_t* const carried = own.data() + row * q;
        for (std::size_t at = begin; at < end; ++at) {
            const std::size_t label = checked_index(indices.data()[at], q, NOT_A_LABEL);
            require(count[label] + std::size_t{1} < width,
                    "cells must have an entry for each count");
            std::int64_t* const cell =
                cells.data() + ((carried[label] != 0) * q + label) * width + count[label];
            --cell[0];
            ++cell[1];
            ++count[label];
        }
    }
}

// The entry of a table for whether a row carries a label, the label, and its count.
void values_of_counts(Cube<const double> table, Matrix<const std::uint8_t> own,
                      Matrix<const std::uint16_t> counts, Matrix<double> out) {
    const std::size_t n = counts.shape(0), q = counts.shape(1), width = table.shape(2);
    require(has_shape(own, n, q) && has_shape(out, n, q),
            "own, counts and out must have the same shape");
    require(has_shape(table, 2, q, width), "table must have the shape (2, labels, counts)");
    for (std::size_t row = 0; row < n; ++row) {
        const std::uint16_t* const count = counts.data() + row * q;
        const std::uint8_t* const carried = own.data() + row * q;
        double* const value = out.data() + row * q;
        for (std::size_t label = 0; label < q; ++label) {
            require(count[label] < width, "table must have an entry for each count");
            value[label] = table.data()[((carried[label] != 0) * q + label) * width + count[label]];
        }
    }
}

}  // namespace

void bind_sweep(nb::module_& module) {
    const auto bind = [&module](auto function) {
        module.def("add_neighbor", function, "neighbor"_array, "indptr"_array, "indices"_array,
                   "own"_array, "counts"_array, "cells"_array, Released());
    };
    bind(&add_neighbor<std::int32_t>);
    bind(&add_neighbor<std::int64_t>);
    module.def("values_of_counts", &values_of_counts, "table"_array, "own"_array, "counts"_array,
               "out"_array, Released());
}

}  // namespace nearlabel
