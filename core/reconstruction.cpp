// Gram matrices of many small sets of rows. The twin is in
// src/nearlabel/formulas/reconstruction.py.
#include "bindings.h"
#include "cpu.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace nearlabel {

namespace {

constexpr std::size_t PANEL = 8;  // rows side by side: two AVX2 registers
constexpr std::size_t TILE = 4;   // rows multiplied with a panel together

// Products of TILE rows of one panel with the rows of another. Each is a sum in feature order, so
// that the result depends neither on the instructions nor on features that are zero.
NL_INLINE void tile_products(const double* left, const double* right, std::size_t width,
                             double products[TILE][PANEL]) {
    double total[TILE][PANEL] = {};
    for (std::size_t f = 0; f < width; ++f)
        for (std::size_t i = 0; i < TILE; ++i)
            for (std::size_t j = 0; j < PANEL; ++j)
                total[i][j] += left[f * PANEL + i] * right[f * PANEL + j];
    for (std::size_t i = 0; i < TILE; ++i) std::copy(total[i], total[i] + PANEL, products[i]);
}

// gram[i] = rows[i] rows[i]'
void gram_matrices(Cube<const double> rows, Cube<double> gram) {
    const std::size_t m = rows.shape(0), k = rows.shape(1), width = rows.shape(2);
    require(has_shape(gram, m, k, k), "gram must have one k x k matrix per set of k rows");
    const auto multiply = up_to_avx2<tile_products>();
    const std::size_t panels = (k + PANEL - 1) / PANEL;
    std::vector<double> packed(panels * width * PANEL);  // panels are padded with zeros
    for (std::size_t set = 0; set < m; ++set) {
        const double* const from = rows.data() + set * k * width;
        for (std::size_t row = 0; row < k; ++row)
            for (std::size_t f = 0; f < width; ++f)
                packed[(row / PANEL * width + f) * PANEL + row % PANEL] = from[row * width + f];
        double* const result = gram.data() + set * k * k;
        for (std::size_t top = 0; top < k; top += TILE) {
            const double* const left = packed.data() + top / PANEL * width * PANEL + top % PANEL;
            for (std::size_t first = 0; first < top + TILE; first += PANEL) {
                double products[TILE][PANEL];
                multiply(left, packed.data() + first * width, width, products);
                for (std::size_t i = top; i < std::min(top + TILE, k); ++i)
                    for (std::size_t j = first; j < std::min(first + PANEL, i + 1); ++j)
                        result[i * k + j] = result[j * k + i] = products[i - top][j - first];
            }
        }
    }
}

}  // namespace

void bind_reconstruction(nb::module_& module) {
    module.def("gram_matrices", &gram_matrices, Released(), "rows"_array, "gram"_array);
}

}  // namespace nearlabel
