// Kernels over labels: how counts change with neighbors and labels. Their twins are in
// src/nearlabel/labels/count_changes.py.
#include "label_rows.h"

#include <algorithm>

namespace nearlabel {

namespace {

constexpr std::size_t FARTHEST = 64;  // how far to search until two lists match again

// Neighbors that are in only one of two lists, or that were relabelled. If the order of the lists
// differs, a neighbor in both may be reported as removed and added: that does no harm.
class Walk {
public:
    explicit Walk(const Vector<const std::uint8_t>& relabelled)
        : relabelled_(relabelled.data()), size_(relabelled.size()) {}

    bool is_relabelled(std::int64_t row) const {
        return static_cast<std::uint64_t>(row) < size_ && relabelled_[row] != 0;
    }

    void compare(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after) {
        gone.clear();
        come.clear();
        auto old = before.begin(), now = after.begin();
        while (old != before.end() && now != after.end()) {
            if (*old != *now) {
                meet(old, before.end(), now, after.end());
                continue;
            }
            if (is_relabelled(*old)) {
                gone.push_back(*old);
                come.push_back(*now);
            }
            ++old;
            ++now;
        }
        gone.insert(gone.end(), old, before.end());
        come.insert(come.end(), now, after.end());
    }

    std::vector<std::int64_t> gone, come;

private:
    using Place = std::vector<std::int64_t>::const_iterator;

    // Skips entries of one list up to the next entry of the other.
    void meet(Place& old, Place old_end, Place& now, Place now_end) {
        const auto most = static_cast<std::size_t>(std::max(old_end - old, now_end - now));
        for (std::size_t i = 1; i < std::min(most, FARTHEST); ++i) {
            const auto step = static_cast<std::ptrdiff_t>(i);
            if (step < now_end - now && now[step] == *old) {
                come.insert(come.end(), now, now + step);
                now += step;
                return;
            }
            if (step < old_end - old && old[step] == *now) {
                gone.insert(gone.end(), old, old + step);
                old += step;
                return;
            }
        }
        gone.push_back(*old++);
        come.push_back(*now++);
    }

    const std::uint8_t* relabelled_;
    std::size_t size_;
};

// The places of a row of neighbors.
template <class G>
void read_row(const Strided<const G>& graph, std::size_t row, std::vector<std::int64_t>& places) {
    const G* at = graph.data() + static_cast<std::int64_t>(row) * graph.stride(0);
    for (std::int64_t& place : places) {
        place = *at;
        at += graph.stride(1);
    }
}

// The labels whose count among the neighbors of a row has changed, or which the row gained or lost.
class ChangedLabels {
public:
    explicit ChangedLabels(std::size_t q) : count(q), change(q), own(q), found_(q) {}

    // Neighbors with these labels that were added (1) or removed (-1).
    template <class I>
    void add(Span<I> labels, std::uint32_t change_of_each) {
        labels.each(count.size(), [&](std::size_t label) {
            found_.insert(label);
            change[label] += change_of_each;
        });
    }

    // Labels of the row: before (1), after (2).
    template <class I>
    void add_own(Span<I> labels, std::uint8_t when) {
        labels.each(count.size(), [&](std::size_t label) {
            found_.insert(label);
            own[label] |= when;
        });
    }

    // Lists the labels that did change; only these are counted from now on.
    void choose() {
        labels.clear();
        found_.drain([&](std::size_t l) {
            if (change[l] != 0 || own[l] == 1 || own[l] == 2) {
                labels.push_back(l);
            } else {
                own[l] = 0;
            }
        });
        for (const std::size_t l : labels) found_.insert(l);
    }

    // Counts the chosen labels of all neighbors. Branches on them would be unpredictable: they are
    // gathered without a branch.
    template <class I>
    void count_chosen(const std::vector<Span<I>>& neighbors) {
        std::size_t end = 0;
        for (const Span<I>& span : neighbors) {
            const std::size_t most = end + span.size();
            if (met_.size() < most) met_.resize(2 * most);
            span.each(count.size(), [&](std::size_t label) {
                met_[end] = static_cast<std::int32_t>(label);
                end += found_.contains(label);
            });
        }
        for (std::size_t i = 0; i < end; ++i) ++count[static_cast<std::size_t>(met_[i])];
    }

    template <class I>
    void mark_chosen_as_own(Span<I> own_labels) {
        own_labels.each(count.size(), [&](std::size_t label) {
            if (found_.contains(label)) own[label] = 3;
        });
    }

    void clear() {
        for (const std::size_t l : labels) {
            count[l] = change[l] = own[l] = 0;
            found_.clear(l);
        }
    }

    std::vector<std::size_t> labels;           // in their order
    std::vector<std::uint32_t> count, change;  // unsigned: no undefined overflow
    std::vector<std::uint8_t> own;

private:
    OrderedSet found_;
    std::vector<std::int32_t> met_;
};

// For each row and each label that changed, the old and the new cell of the row: labels, counts and
// whether it carries the label; and the number of entries of each row. A graph without columns
// stands for rows that do not exist; `relabelled` may be empty if no row was.
template <class G, class I>
nb::tuple count_changes(Vector<const std::int64_t> rows, Strided<const G> before,
                        Strided<const G> after, Vector<const I> indptr_before,
                        Vector<const I> indices_before, Vector<const I> indptr_after,
                        Vector<const I> indices_after, Vector<const std::uint8_t> relabelled,
                        std::int64_t labels) {
    Buffer<std::int32_t> label, count;
    Buffer<std::int8_t> own;
    Buffer<std::int64_t> entries;
    const std::size_t n = rows.size();
    std::size_t stored = 0;
    {
        nb::gil_scoped_release released;
        const std::size_t q = label_size(labels);
        const bool was_there = before.shape(1) > 0, is_there = after.shape(1) > 0;
        require(before.shape(0) == n && after.shape(0) == n,
                "before and after must have one row per entry of rows");
        require(!was_there || !is_there || before.shape(1) == after.shape(1),
                "before and after must have the same number of neighbors");
        NeighborLabels<G, I> old_labels(before, indptr_before, indices_before, q);
        NeighborLabels<G, I> new_labels(after, indptr_after, indices_after, q);
        const auto checked = [](std::int64_t row, const NeighborLabels<G, I>& known) {
            return checked_index(row, known.base_rows(), "rows must be rows of Y");
        };
        Walk walk(relabelled);
        ChangedLabels changed(q);
        std::vector<std::int64_t> old_row(before.shape(1)), new_row(after.shape(1));
        entries.reserve(n);
        const std::size_t usual = n * 64;  // entries; more are rarely needed, and then copied
        label.reserve(usual);
        count.reserve(usual);
        own.reserve(usual);
        for (std::size_t i = 0; i < n; ++i) {
            const std::vector<Span<I>>& neighbors = old_labels.row(i);
            const std::int64_t row = rows.data()[i];
            read_row(before, i, old_row);
            read_row(after, i, new_row);
            walk.compare(old_row, new_row);
            for (const std::int64_t place : walk.gone) {
                changed.add(old_labels.labels(checked(place, old_labels)), UINT32_MAX);
            }
            for (const std::int64_t place : walk.come) {
                changed.add(new_labels.labels(checked(place, new_labels)), 1);
            }
            const bool own_stays = was_there && is_there && !walk.is_relabelled(row);
            if (was_there && !own_stays) {
                changed.add_own(old_labels.labels(checked(row, old_labels)), 1);
            }
            if (is_there && !own_stays) {
                changed.add_own(new_labels.labels(checked(row, new_labels)), 2);
            }
            changed.choose();
            if (was_there && !changed.labels.empty()) {
                changed.count_chosen(neighbors);
                if (own_stays) {
                    changed.mark_chosen_as_own(old_labels.labels(checked(row, old_labels)));
                }
            }
            const std::size_t more = 2 * changed.labels.size();
            label.reserve(stored + more);
            count.reserve(stored + more);
            own.reserve(stored + more);
            for (const std::size_t l : changed.labels) {
                const std::uint32_t counts[] = {changed.count[l],
                                                changed.count[l] + changed.change[l]};
                for (int time = 0; time < 2; ++time) {
                    label.data()[stored] = static_cast<std::int32_t>(l);
                    count.data()[stored] = static_cast<std::int32_t>(counts[time]);
                    own.data()[stored++] = static_cast<std::int8_t>(changed.own[l] >> time & 1);
                }
            }
            entries.data()[i] = static_cast<std::int64_t>(more);
            changed.clear();
        }
    }
    return nb::make_tuple(label.to_numpy(stored), count.to_numpy(stored), own.to_numpy(stored),
                          entries.to_numpy(n));
}

}  // namespace

void bind_count_changes(nb::module_& module) {
    const auto bind = [&module](auto function) {
        module.def("count_changes", function, "rows"_array, "before"_array, "after"_array,
                   "indptr_before"_array, "indices_before"_array, "indptr_after"_array,
                   "indices_after"_array, "relabelled"_array, "labels"_a);
    };
    bind(&count_changes<std::int32_t, std::int32_t>);
    bind(&count_changes<std::int32_t, std::int64_t>);
    bind(&count_changes<std::int64_t, std::int32_t>);
    bind(&count_changes<std::int64_t, std::int64_t>);
}

}  // namespace nearlabel
