// Array types of the interface to Python, checks of its arguments, and the functions by which each
// file adds to the module.
//
// nanobind checks the type, the dimensions and the memory order of every array. Sizes that belong
// together, and values that are used as indices, are checked by the kernels themselves.
#pragma once

#include "arithmetic.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace nearlabel {

namespace nb = nanobind;
using namespace nb::literals;

// The name of an argument that is an array, which is never copied silently.
inline auto operator""_array(const char* name, std::size_t) { return nb::arg(name).noconvert(); }

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Raises a ValueError in Python.
inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Whether an array has these sizes.
template <class Array, class... Sizes>
bool has_shape(const Array& array, Sizes... sizes) {
    std::size_t dimension = 0;
    return ((array.shape(dimension++) == static_cast<std::size_t>(sizes)) && ...);
}

// An index that comes from Python, such as a label or a row, checked to be from 0 to size - 1.
inline std::size_t checked_index(std::int64_t index, std::size_t size, const char* message) {
    require(static_cast<std::uint64_t>(index) < size, message);  // negative ones become large
    return static_cast<std::size_t>(index);
}

// Checks where the parts of an array with some entries start and end.
inline void check_starts(const Vector<const std::int64_t>& starts, std::size_t entries,
                         const char* message) {
    const std::int64_t* const start = starts.data();
    const std::size_t n = starts.size();
    require(n > 0 && start[0] == 0 && static_cast<std::uint64_t>(start[n - 1]) == entries &&
                std::is_sorted(start, start + n),
            message);
}

// Lets other Python threads run while a kernel runs.
using Released = nb::call_guard<nb::gil_scoped_release>;

void bind_all_pairs(nb::module_& module);
void bind_byte_bounds(nb::module_& module);
void bind_count_changes(nb::module_& module);
void bind_counts(nb::module_& module);
void bind_distances(nb::module_& module);
void bind_living_histograms(nb::module_& module);
void bind_neighbor_lists(nb::module_& module);
void bind_packed_bounds(nb::module_& module);
void bind_reconstruction(nb::module_& module);
void bind_regressions(nb::module_& module);
void bind_scores(nb::module_& module);
void bind_shortlist(nb::module_& module);
void bind_similar_counts(nb::module_& module);
void bind_simplex(nb::module_& module);
void bind_stumps(nb::module_& module);

}  // namespace nearlabel
