// Array types of the interface to Python, and what each file adds to the module.
//
// nanobind checks the type, the dimensions and the order of every array; the sizes that belong
// together and the values that are used as places are checked by the functions themselves.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;  // "name"_a.noconvert(): no silent copy of an array

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Python sees a ValueError.
inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Lets other Python threads run while a kernel does.
using Released = nb::call_guard<nb::gil_scoped_release>;

// Raised with every change of what Python calls, here and in src/nearlabel/common/engine.py, so
// that a module of an older build is not used.
constexpr int CORE_VERSION = 5;

void bind_admissible(nb::module_& module);
void bind_cpu(nb::module_& module);
void bind_gram(nb::module_& module);
void bind_labels(nb::module_& module);
void bind_neighbors(nb::module_& module);
void bind_places(nb::module_& module);
void bind_products(nb::module_& module);
void bind_ranking(nb::module_& module);
void bind_regressions(nb::module_& module);
void bind_rows(nb::module_& module);
void bind_shortlist(nb::module_& module);
void bind_simplex(nb::module_& module);
void bind_sweep(nb::module_& module);
