// Kernels over lists of neighbors: changed in place, or merged. Their twins are in
// src/nearlabel/search/living/kept_neighbors.py and src/nearlabel/search/exact/block_pairs.py.
#include "label_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace nearlabel {

namespace {

// Lists of places, one per row; only the first `length` places of a list are valid.
template <class P>
class PlaceLists {
public:
    template <class Length>
    PlaceLists(const Strided<P>& places, const Vector<Length>& lengths)
        : data_(places.data()),
          rows_(places.shape(0)),
          width_(places.shape(1)),
          stride_(places.stride(0)),
          lengths_(lengths.data()) {
        require(lengths.size() == rows_, "lengths must have one entry per list");
        require(width_ <= INT32_MAX, "lists must have at most 2^31 - 1 places");
        require((width_ < 2 || places.stride(1) == 1) &&
                    (rows_ < 2 || stride_ >= static_cast<std::int64_t>(width_)),
                "places must have contiguous rows, one after another");
    }

    std::size_t rows() const { return rows_; }
    std::size_t width() const { return width_; }
    P* row(std::size_t row) const { return data_ + static_cast<std::int64_t>(row) * stride_; }

    std::size_t length(std::size_t row) const {
        const std::int32_t length = lengths_[row];
        require(length >= 0 && static_cast<std::size_t>(length) <= width_,
                "lengths must be from 0 to the width of the lists");
        return static_cast<std::size_t>(length);
    }

private:
    P* data_;
    std::size_t rows_, width_;
    std::int64_t stride_;
    const std::int32_t* lengths_;
};

// Lists with their distances, to be changed.
template <class D>
class NeighborLists {
public:
    NeighborLists(const Strided<std::int32_t>& places, const Strided<D>& distances,
                  const Vector<std::int32_t>& lengths)
        : places_(places, lengths),
          distances_(distances.data()),
          stride_(distances.stride(0)),
          lengths_(lengths.data()) {
        require(has_shape(distances, places.shape(0), places.shape(1)),
                "places and distances must have the same shape");
        require(places_.width() < 2 || distances.stride(1) == 1,
                "distances must have contiguous rows");
    }

    std::size_t rows() const { return places_.rows(); }

    // Inserts a neighbor by (distance, place), if it comes before the last one kept. The last one
    // is dropped if there is no room.
    void insert(std::size_t row, std::int32_t place, D distance) const {
        const std::size_t length = places_.length(row);
        if (length == 0) return;
        std::int32_t* const near = places_.row(row);
        D* const far = distances_ + static_cast<std::int64_t>(row) * stride_;
        const auto is_before = [&](std::size_t at) {
            return distance < far[at] || (distance == far[at] && place < near[at]);
        };
        if (!is_before(length - 1)) return;
        std::size_t low = 0, high = length - 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (is_before(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        const bool has_room = length < places_.width();
        const std::size_t moved = length - low - (has_room ? 0 : 1);
        std::memmove(near + low + 1, near + low, moved * sizeof(std::int32_t));
        std::memmove(far + low + 1, far + low, moved * sizeof(D));
        near[low] = place;
        far[low] = distance;
        lengths_[row] += has_room;
    }

    // Removes the places that are gone; the rest moves up.
    void drop(std::size_t row, const std::uint8_t* gone, std::size_t size) const {
        const std::size_t length = places_.length(row);
        std::int32_t* const near = places_.row(row);
        D* const far = distances_ + static_cast<std::int64_t>(row) * stride_;
        std::size_t kept = 0;
        for (std::size_t at = 0; at < length; ++at) {
            near[kept] = near[at];
            far[kept] = far[at];
            kept += gone[checked_index(near[at], size, "places must contain row numbers")] == 0;
        }
        std::fill(near + kept, near + length, -1);
        std::fill(far + kept, far + length, std::numeric_limits<D>::infinity());
        lengths_[row] = static_cast<std::int32_t>(kept);
    }

private:
    PlaceLists<std::int32_t> places_;
    D* distances_;
    std::int64_t stride_;
    std::int32_t* lengths_;
};

constexpr const char* NOT_A_LIST = "rows must contain numbers of lists";

template <class D>
void insert_neighbors(Strided<std::int32_t> places, Strided<D> distances,
                      Vector<std::int32_t> lengths, Vector<const std::int64_t> row,
                      Vector<const std::int32_t> place, Vector<const D> distance) {
    const NeighborLists<D> lists(places, distances, lengths);
    require(row.size() == place.size() && row.size() == distance.size(),
            "row, place and distance must have the same size");
    for (std::size_t i = 0; i < row.size(); ++i) {
        lists.insert(checked_index(row.data()[i], lists.rows(), NOT_A_LIST), place.data()[i],
                     distance.data()[i]);
    }
}

template <class D>
void drop_neighbors(Strided<std::int32_t> places, Strided<D> distances,
                    Vector<std::int32_t> lengths, Vector<const std::int64_t> rows,
                    Vector<const std::uint8_t> gone) {
    const NeighborLists<D> lists(places, distances, lengths);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        lists.drop(checked_index(rows.data()[i], lists.rows(), NOT_A_LIST), gone.data(),
                   gone.size());
    }
}

// Whether some places contain one of few; a plain loop without an early exit, so that it
// vectorizes.
bool holds_any(const std::int32_t* places, std::size_t width, const std::int32_t* few,
               std::size_t size) {
    int found = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const std::int32_t place = few[i];
        for (std::size_t at = 0; at < width; ++at) found |= places[at] == place;
    }
    return found != 0;
}

// The number of remaining places of each list, and the position of the first removed one, or the
// length of the list if none was removed. If `few` is not empty, it contains all removed places,
// and `gone` is read only if a list contains one of them, or a list beside it does.
void left_without(Strided<const std::int32_t> places, Vector<const std::int32_t> lengths,
                  Vector<const std::uint8_t> gone, Vector<const std::int32_t> few,
                  Vector<std::int32_t> left, Vector<std::int32_t> first) {
    constexpr std::size_t BESIDE = 16;  // lists that are scanned at once, with what is between them
    const PlaceLists<const std::int32_t> lists(places, lengths);
    const std::size_t n = lists.rows();
    require(left.size() == n && first.size() == n, "left and first must have one entry per list");
    for (std::size_t begin = 0; begin < n; begin += BESIDE) {
        const std::size_t end = std::min(begin + BESIDE, n);
        const std::int32_t *const from = lists.row(begin), *const to = lists.row(end - 1);
        const bool any =
            few.size() == 0 || holds_any(from, static_cast<std::size_t>(to - from) + lists.width(),
                                         few.data(), few.size());
        for (std::size_t row = begin; row < end; ++row) {
            const std::int32_t* const near = lists.row(row);
            const std::size_t length = lists.length(row);
            std::size_t found = 0, where = length;
            for (std::size_t at = any ? length : 0; at-- > 0;) {
                const bool hit = gone.data()[checked_index(near[at], gone.size(),
                                                           "places must contain row numbers")];
                found += hit;
                where = hit ? at : where;
            }
            left.data()[row] = static_cast<std::int32_t>(length - found);
            first.data()[row] = static_cast<std::int32_t>(where);
        }
    }
}

template <class D>
void bind(nb::module_& module) {
    module.def("insert_neighbors", &insert_neighbors<D>, "places"_array, "distances"_array,
               "lengths"_array, "row"_array, "place"_array, "distance"_array, Released());
    module.def("drop_neighbors", &drop_neighbors<D>, "places"_array, "distances"_array,
               "lengths"_array, "rows"_array, "gone"_array, Released());
}

// Writes the nearest of both lists of each row, by (distance, row). A list that is not full is
// padded with infinite distances, and so is the result. `offset` is added to `more`.
template <class I>
void merge_lists(Matrix<const I> rows, Matrix<const double> distances,
                 Matrix<const std::int32_t> more, Matrix<const double> more_distances,
                 std::int64_t offset, Matrix<I> new_rows, Matrix<double> new_distances) {
    const std::size_t n = rows.shape(0), a = rows.shape(1), b = more.shape(1);
    const std::size_t k = new_rows.shape(1);
    require(has_shape(distances, n, a) && has_shape(more, n, b) &&
                has_shape(more_distances, n, b) && has_shape(new_rows, n, k) &&
                has_shape(new_distances, n, k),
            "rows and distances must have one row per list");
    for (std::size_t row = 0; row < n; ++row) {
        const I* const near = rows.data() + row * a;
        const double* const far = distances.data() + row * a;
        const std::int32_t* const new_near = more.data() + row * b;
        const double* const new_far = more_distances.data() + row * b;
        std::size_t i = 0, j = 0;
        for (std::size_t place = 0; place < k; ++place) {
            const bool has = i < a && std::isfinite(far[i]);
            const bool has_new = j < b && std::isfinite(new_far[j]);
            const std::int64_t name = has_new ? new_near[j] + offset : 0;
            I result = -1;
            double distance = std::numeric_limits<double>::infinity();
            if (has && (!has_new || far[i] < new_far[j] ||
                        (far[i] == new_far[j] && static_cast<std::int64_t>(near[i]) < name))) {
                result = near[i];
                distance = far[i++];
            } else if (has_new) {
                require(name >= 0 && name <= std::numeric_limits<I>::max(),
                        "more plus offset must fit into the integer type of rows");
                result = static_cast<I>(name);
                distance = new_far[j++];
            }
            new_rows.data()[row * k + place] = result;
            new_distances.data()[row * k + place] = distance;
        }
    }
}

}  // namespace

void bind_neighbor_lists(nb::module_& module) {
    bind<float>(module);
    bind<double>(module);
    module.def("left_without", &left_without, "places"_array, "lengths"_array, "gone"_array,
               "few"_array, "left"_array, "first"_array, Released());
    const auto bind_merge_lists = [&module](auto function) {
        module.def("merge_lists", function, "rows"_array, "distances"_array, "more"_array,
                   "more_distances"_array, "offset"_a, "new_rows"_array, "new_distances"_array,
                   Released());
    };
    bind_merge_lists(&merge_lists<std::int32_t>);
    bind_merge_lists(&merge_lists<std::int64_t>);
}

}  // namespace nearlabel
