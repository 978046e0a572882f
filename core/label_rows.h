// Shared by the label kernels: rows of a graph and of a label matrix, an ordered set, and memory
// for results.
//
// The arrays come from Python: every index is checked before it is used, so that no input makes a
// kernel read or write beyond an array.
#pragma once

#include "bindings.h"
#include "cpu.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace nearlabel {

constexpr const char* NOT_A_LABEL = "Y must contain labels from 0 to q - 1";

// A matrix that may be a slice of a larger one.
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

// The number of labels as a size; labels fit into 32 bits.
inline std::size_t label_size(std::int64_t q) {
    require(q >= 0 && q <= INT32_MAX, "Y must have from 0 to 2^31 - 1 labels");
    return static_cast<std::size_t>(q);
}

// The rows of a CSR matrix; each is checked when it is accessed.
template <class I>
class CsrRows {
public:
    CsrRows(const Vector<const I>& indptr, std::size_t entries, const char* message)
        : indptr_(indptr.data()), entries_(entries), message_(message) {
        require(indptr.size() > 0, message);
        rows_ = indptr.size() - 1;
    }

    std::size_t rows() const { return rows_; }
    const I* place(std::size_t row) const { return indptr_ + row; }

    // Where the entries of a row start and end.
    void row(std::size_t row, std::size_t& begin, std::size_t& end) const {
        const I first = indptr_[row], last = indptr_[row + 1];
        require(first >= 0 && first <= last && static_cast<std::uint64_t>(last) <= entries_,
                message_);
        begin = static_cast<std::size_t>(first);
        end = static_cast<std::size_t>(last);
    }

private:
    const I* indptr_;
    std::size_t entries_, rows_;
    const char* message_;
};

// The cells of each label in a ragged table: label l from start[l] to start[l + 1].
class Cells {
public:
    Cells(const Vector<const std::int64_t>& start, std::size_t size) : start_(start.data()) {
        require(start.size() > 0, "start must have one entry more than there are labels");
        q_ = label_size(static_cast<std::int64_t>(start.size() - 1));
        require(start_[0] >= 0 && static_cast<std::uint64_t>(start_[q_]) <= size,
                "start must contain cells of the table");
        for (std::size_t label = 0; label < q_; ++label) {
            require(start_[label] <= start_[label + 1], "start must not decrease");
        }
    }

    std::size_t labels() const { return q_; }

    // The cell of a nonnegative count. `message` explains why a label may have none.
    std::size_t of(std::size_t label, std::int64_t count, const char* message) const {
        const std::int64_t cell = start_[label] + count;
        require(cell < start_[label + 1], message);
        return static_cast<std::size_t>(cell);
    }

    // The cell of a count, or the end of the label's cells if the count has none.
    std::size_t at_most(std::size_t label, std::int64_t count) const {
        const std::int64_t end = start_[label + 1], cell = start_[label] + count;
        return static_cast<std::size_t>(cell < end ? cell : end);
    }

private:
    const std::int64_t* start_;
    std::size_t q_;
};

// The labels of one base row.
template <class I>
struct Span {
    const I* begin;
    const I* end;

    std::size_t size() const { return static_cast<std::size_t>(end - begin); }

    // Calls `use` with each label.
    template <class Use>
    void each(std::size_t q, Use use, const char* message = NOT_A_LABEL) const {
        for (const I* label = begin; label != end; ++label) {
            use(checked_index(*label, q, message));
        }
    }
};

// The labels of the neighbors of graph rows. They are scattered over the memory, so they are
// prefetched: where they start two rows ahead, and the labels themselves one row ahead.
template <class G, class I>
class NeighborLabels {
public:
    NeighborLabels(const Strided<const G>& graph, const Vector<const I>& indptr,
                   const Vector<const I>& indices, std::size_t q)
        : graph_(graph.data()),
          n_(graph.shape(0)),
          k_(graph.shape(1)),
          row_stride_(graph.stride(0)),
          column_stride_(graph.stride(1)),
          labels_(indptr, indices.size(), "Y must have an indptr that fits its indices"),
          indices_(indices.data()),
          q_(q),
          now_(k_),
          next_(k_) {
        ask_for_places(0);
        ask_for_places(1);
        look_up(0, next_);
    }

    std::size_t rows() const { return n_; }
    std::size_t base_rows() const { return labels_.rows(); }

    // The labels of each neighbor of a row. Rows must be accessed one after another, from 0 on.
    const std::vector<Span<I>>& row(std::size_t row) {
        now_.swap(next_);
        ask_for_places(row + 2);
        look_up(row + 1, next_);
        return now_;
    }

    // The labels of a base row.
    Span<I> labels(std::size_t base_row) const {
        std::size_t begin, end;
        labels_.row(base_row, begin, end);
        // A row of distinct labels has at most q: `Tally` relies on it.
        require(end - begin <= q_, "Y must not repeat a label in one row");
        return {indices_ + begin, indices_ + end};
    }

private:
    // The base row of a neighbor, not yet checked.
    std::int64_t neighbor(std::size_t row, std::size_t column) const {
        const auto at = static_cast<std::int64_t>(row) * row_stride_ +
                        static_cast<std::int64_t>(column) * column_stride_;
        return graph_[at];
    }

    void ask_for_places(std::size_t row) const {
        if (row >= n_) return;
        for (std::size_t column = 0; column < k_; ++column) {
            const auto base_row = static_cast<std::uint64_t>(neighbor(row, column));
            if (base_row < labels_.rows()) prefetch(labels_.place(base_row));
        }
    }

    void look_up(std::size_t row, std::vector<Span<I>>& spans) const {
        if (row >= n_) return;
        for (std::size_t column = 0; column < k_; ++column) {
            const Span<I> span = labels(checked_index(neighbor(row, column), labels_.rows(),
                                                      "graph must contain row numbers of Y"));
            if (span.size() > 0) {
                prefetch(span.begin);
                prefetch(span.end - 1);
            }
            spans[column] = span;
        }
    }

    const G* graph_;
    std::size_t n_, k_;
    std::int64_t row_stride_, column_stride_;
    CsrRows<I> labels_;
    const I* indices_;
    std::size_t q_;
    std::vector<Span<I>> now_, next_;
};

// Counts votes for labels, row by row. C must be able to count to the number of neighbors.
template <class C>
class Tally {
public:
    // One more than twice the labels: see `add`.
    explicit Tally(std::size_t q) : count(q), touched(new std::int32_t[2 * q + 1]) {}

    // One vote for each label of a span.
    template <class I>
    void add(Span<I> span) {
        // Only a count that overflowed, in a matrix with a label many times in one row, can list a
        // label twice. A list of at most q, and a span of at most q, fit into `touched`.
        require(size <= count.size(), "Y must not repeat a label in one row");
        const std::size_t q = count.size();
        C* const counts = count.data();
        std::int32_t* const list = touched.get();
        std::size_t end = size;
        span.each(q, [&](std::size_t label) {
            // No branch: the label is always written, and kept if it is new.
            list[end] = static_cast<std::int32_t>(label);
            end += counts[label] == 0;
            ++counts[label];
        });
        size = end;
    }

    std::vector<C> count;                     // all zero between rows
    std::unique_ptr<std::int32_t[]> touched;  // labels with a count, in order of arrival
    std::size_t size = 0;                     // of `touched`
};

// A set of labels that returns them in order without sorting: one bit per label, and above these
// one bit for each nonempty word.
class OrderedSet {
public:
    explicit OrderedSet(std::size_t q) : words_(q / 64 + 1), summary_(q / 4096 + 1) {}

    void insert(std::size_t label) {
        words_[label >> 6] |= std::uint64_t{1} << (label & 63);
        summary_[label >> 12] |= std::uint64_t{1} << (label >> 6 & 63);
    }

    bool contains(std::size_t label) const { return words_[label >> 6] >> (label & 63) & 1; }

    // Removes a label and those next to it; for use when all are to be removed.
    void clear(std::size_t label) { words_[label >> 6] = summary_[label >> 12] = 0; }

    // Calls `take` with each label, lowest first, and leaves the set empty.
    template <class Take>
    void drain(Take take) {
        for (std::size_t above = 0; above < summary_.size(); ++above) {
            for (std::uint64_t full = summary_[above]; full != 0; full &= full - 1) {
                const std::size_t at = above * 64 + lowest_bit(full);
                for (std::uint64_t word = words_[at]; word != 0; word &= word - 1) {
                    take(at * 64 + lowest_bit(word));
                }
                words_[at] = 0;
            }
            summary_[above] = 0;
        }
    }

private:
    std::vector<std::uint64_t> words_, summary_;
};

// Memory that grows without a copy if the system can, and that NumPy takes over without a copy.
template <class T>
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data_); }

    T* data() { return data_; }

    void reserve(std::size_t size) {
        if (size > capacity_) resize(size + size / 2);
    }

    auto to_numpy(std::size_t size) {
        resize(size);
        nb::capsule owner(data_, [](void* memory) noexcept { std::free(memory); });
        T* const data = data_;
        data_ = nullptr;
        return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner);
    }

private:
    void resize(std::size_t size) {
        const std::size_t some = size > 0 ? size : 1;
        if (some > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
        void* const memory = std::realloc(data_, some * sizeof(T));
        if (memory == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(memory);
        capacity_ = some;
    }

    T* data_ = nullptr;
    std::size_t capacity_ = 0;
};

}  // namespace nearlabel
