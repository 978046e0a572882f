// Kernels over labels: counting. Their twins are in counts.py, histograms.py and sweep.py of
// src/nearlabel/labels.
#include "label_rows.h"

#include <algorithm>
#include <utility>

namespace nearlabel {

namespace {

// Calls `work` with a zero of the smallest type that can count to k: smaller counters fit better
// into the cache.
template <class Work>
void with_counter(std::size_t k, Work work) {
    if (k <= UINT8_MAX) {
        work(std::uint8_t{0});
    } else if (k <= UINT16_MAX) {
        work(std::uint16_t{0});
    } else {
        require(k <= INT32_MAX, "graph must have at most 2^31 - 1 neighbors per row");
        work(std::uint32_t{0});
    }
}

constexpr const char* TOO_FEW_CELLS =
    "graph must not repeat a neighbor, and start must have a cell for every count of a label";

// Adds graph rows to the tables of `LabelHistograms`; `rows` maps each graph row to its row of Y.
// Afterwards the cells of `without_label` for count 0 are meaningless.
template <class G, class I>
void add_to_histograms(Strided<const G> graph, Vector<const std::int64_t> rows,
                       Vector<const I> indptr, Vector<const I> indices,
                       Vector<const std::int64_t> start, Vector<std::int64_t> with_label,
                       Vector<std::int64_t> without_label) {
    require(with_label.size() == without_label.size(),
            "with_label and without_label must have the same size");
    const Cells cells(start, with_label.size());
    const std::size_t q = cells.labels();
    NeighborLabels<G, I> neighbors(graph, indptr, indices, q);
    require(rows.size() == neighbors.rows(), "rows must have one entry per row of graph");
    const std::int64_t* const own_row = rows.data();
    std::int64_t* const with = with_label.data();
    std::int64_t* const without = without_label.data();
    with_counter(graph.shape(1), [&](auto zero) {
        Tally<decltype(zero)> tally(q);
        for (std::size_t row = 0; row < neighbors.rows(); ++row) {
            for (const Span<I>& span : neighbors.row(row)) tally.add(span);
            auto* const count = tally.count.data();
            const Span<I> own = neighbors.labels(checked_index(
                own_row[row], neighbors.base_rows(), "rows must contain row numbers of Y"));
            own.each(q, [&](std::size_t label) {
                ++with[cells.of(label, count[label], TOO_FEW_CELLS)];
                count[label] = 0;  // so that the next loop adds it to a meaningless cell
            });
            for (std::size_t i = 0; i < tally.size; ++i) {
                const auto l = static_cast<std::size_t>(tally.touched[i]);
                ++without[cells.of(l, count[l], TOO_FEW_CELLS)];
                count[l] = 0;
            }
            tally.size = 0;
        }
    });
}

// The rows of a CSR matrix, written one after another.
template <class T>
class CsrWriter {
public:
    explicit CsrWriter(std::size_t rows) : rows_(rows) {
        ends_.reserve(rows + 1);
        ends_.data()[0] = 0;
    }

    // Writes a row of at most `most` labels, emptying their set; `value` returns that of each.
    template <class Value>
    void write(std::size_t row, OrderedSet& labels, std::size_t most, Value value) {
        data_.reserve(stored_ + most);
        columns_.reserve(stored_ + most);
        T* data = data_.data() + stored_;
        std::int32_t* column = columns_.data() + stored_;
        labels.drain([&](std::size_t label) {
            *data++ = value(label);
            *column++ = static_cast<std::int32_t>(label);
        });
        stored_ = static_cast<std::size_t>(data - data_.data());
        ends_.data()[row + 1] = static_cast<std::int64_t>(stored_);
    }

    // Data, columns and indptr.
    nb::tuple to_numpy() {
        return nb::make_tuple(data_.to_numpy(stored_), columns_.to_numpy(stored_),
                              ends_.to_numpy(rows_ + 1));
    }

private:
    Buffer<T> data_;
    Buffer<std::int32_t> columns_;
    Buffer<std::int64_t> ends_;
    std::size_t rows_, stored_ = 0;
};

// The product of the graph, with a one per neighbor, and Y, rows sorted.
template <class G, class I>
nb::tuple neighbor_counts(Strided<const G> graph, Vector<const I> indptr, Vector<const I> indices,
                          std::int64_t labels) {
    CsrWriter<std::int32_t> product(graph.shape(0));
    {
        nb::gil_scoped_release released;
        const std::size_t q = label_size(labels);
        NeighborLabels<G, I> neighbors(graph, indptr, indices, q);
        OrderedSet found(q);
        with_counter(graph.shape(1), [&](auto zero) {
            Tally<decltype(zero)> tally(q);
            for (std::size_t row = 0; row < neighbors.rows(); ++row) {
                for (const Span<I>& span : neighbors.row(row)) tally.add(span);
                for (std::size_t i = 0; i < tally.size; ++i) {
                    found.insert(static_cast<std::size_t>(tally.touched[i]));
                }
                auto* const count = tally.count.data();
                product.write(row, found, tally.size, [count](std::size_t label) {
                    return static_cast<std::int32_t>(std::exchange(count[label], 0));
                });
                tally.size = 0;
            }
        });
    }
    return product.to_numpy();
}

// The same product with a weight for each neighbor; sums add the nearest neighbor first. A label of
// a neighbor is stored even if its sum is zero.
template <class G, class I>
nb::tuple neighbor_sums(Strided<const G> graph, Matrix<const double> weights,
                        Vector<const I> indptr, Vector<const I> indices, std::int64_t labels) {
    CsrWriter<double> product(graph.shape(0));
    {
        nb::gil_scoped_release released;
        const std::size_t q = label_size(labels);
        require(has_shape(weights, graph.shape(0), graph.shape(1)),
                "weights must have the shape of graph");
        NeighborLabels<G, I> neighbors(graph, indptr, indices, q);
        OrderedSet found(q);
        std::vector<double> sums(q);
        const double* weight = weights.data();
        for (std::size_t row = 0; row < neighbors.rows(); ++row) {
            std::size_t votes = 0;
            for (const Span<I>& span : neighbors.row(row)) {
                span.each(q, [&](std::size_t label) {
                    found.insert(label);
                    sums[label] += *weight;
                });
                votes += span.size();
                ++weight;
            }
            product.write(row, found, std::min(votes, q),
                          [&](std::size_t label) { return std::exchange(sums[label], 0); });
        }
    }
    return product.to_numpy();
}

constexpr const char* NO_CELL = "count must be within the cells of its label";

// Values of a ragged table at pairs of a label and a count.
template <class I>
void look_up(Vector<const double> table, Vector<const std::int64_t> start, Vector<const I> label,
             Vector<const std::int32_t> count, Vector<double> out) {
    require(label.size() == count.size() && label.size() == out.size(),
            "label, count and out must have the same size");
    const Cells cells(start, table.size());
    const std::size_t q = cells.labels();
    const double* const values = table.data();
    const I* const labels = label.data();
    const std::int32_t* const counts = count.data();
    double* const result = out.data();
    for (std::size_t i = 0, size = out.size(); i < size; ++i) {
        const std::size_t l = checked_index(labels[i], q, "label must contain labels of the table");
        require(counts[i] >= 0, NO_CELL);
        result[i] = values[cells.of(l, counts[i], NO_CELL)];
    }
}

template <class G, class I>
void bind_counting(nb::module_& module) {
    module.def("add_to_histograms", &add_to_histograms<G, I>, "graph"_array, "rows"_array,
               "indptr"_array, "indices"_array, "start"_array, "with_label"_array,
               "without_label"_array, Released());
    module.def("neighbor_counts", &neighbor_counts<G, I>, "graph"_array, "indptr"_array,
               "indices"_array, "labels"_a);
    module.def("neighbor_sums", &neighbor_sums<G, I>, "graph"_array, "weights"_array,
               "indptr"_array, "indices"_array, "labels"_a);
}

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
        const Span<I> added{indices.data() + begin, indices.data() + end};
        added.each(q, [&](std::size_t label) {
            require(count[label] + std::size_t{1} < width,
                    "cells must have an entry for each count");
            std::int64_t* const cell =
                cells.data() + ((carried[label] != 0) * q + label) * width + count[label];
            --cell[0];
            ++cell[1];
            ++count[label];
        });
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

void bind_counts(nb::module_& module) {
    bind_counting<std::int32_t, std::int32_t>(module);
    bind_counting<std::int32_t, std::int64_t>(module);
    bind_counting<std::int64_t, std::int32_t>(module);
    bind_counting<std::int64_t, std::int64_t>(module);
    const auto bind_look_up = [&module](auto function) {
        module.def("look_up", function, "table"_array, "start"_array, "label"_array, "count"_array,
                   "out"_array, Released());
    };
    bind_look_up(&look_up<std::int32_t>);
    bind_look_up(&look_up<std::int64_t>);
    const auto bind_add_neighbor = [&module](auto function) {
        module.def("add_neighbor", function, "neighbor"_array, "indptr"_array, "indices"_array,
                   "own"_array, "counts"_array, "cells"_array, Released());
    };
    bind_add_neighbor(&add_neighbor<std::int32_t>);
    bind_add_neighbor(&add_neighbor<std::int64_t>);
    module.def("values_of_counts", &values_of_counts, "table"_array, "own"_array, "counts"_array,
               "out"_array, Released());
}

}  // namespace nearlabel
