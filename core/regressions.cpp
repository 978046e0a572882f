// The kernel of the regressions. Its twin is in src/nearlabel/formulas/regressions.py.
#include "label_rows.h"

namespace nearlabel {

namespace {

// Adds h_i x_i x_i' for the rows x_i of a CSR matrix, one row after another: the upper triangle if
// the columns of each row are sorted. The lower one is left unchanged.
template <class I>
void add_weighted_products(Vector<const I> indptr, Vector<const I> indices,
                           Vector<const double> data, Vector<const double> h, Matrix<double> sums) {
    const std::size_t m = sums.shape(0);
    require(sums.shape(1) == m, "sums must be square");
    require(data.size() == indices.size(), "data and indices must have the same size");
    const CsrRows<I> rows(indptr, indices.size(), "indptr must fit indices");
    require(h.size() == rows.rows(), "h must have one entry per row");
    const I* const columns = indices.data();
    const double* const values = data.data();
    for (std::size_t row = 0; row < rows.rows(); ++row) {
        std::size_t begin, end;
        rows.row(row, begin, end);
        for (std::size_t at = begin; at < end; ++at) {
            checked_index(columns[at], m, "indices must contain columns of sums");
        }
        const double weight = h.data()[row];
        for (std::size_t first = begin; first < end; ++first) {
            double* const line = sums.data() + static_cast<std::size_t>(columns[first]) * m;
            for (std::size_t second = first; second < end; ++second) {
                line[columns[second]] += values[first] * (values[second] * weight);
            }
        }
    }
}

}  // namespace

void bind_regressions(nb::module_& module) {
    const auto bind = [&module](auto function) {
        module.def("add_weighted_products", function, "indptr"_array, "indices"_array, "data"_array,
                   "h"_array, "sums"_array, Released());
    };
    bind(&add_weighted_products<std::int32_t>);
    bind(&add_weighted_products<std::int64_t>);
}

}  // namespace nearlabel
