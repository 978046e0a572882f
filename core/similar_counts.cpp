// Counts the training rows whose counts of all labels are near those of a query. The twin, and a
// description of the arrays, are in src/nearlabel/formulas/similar_counts.py.
#include "label_rows.h"

namespace nearlabel {

namespace {

// Adds without undefined behavior on overflow, whatever the tables contain.
inline void add(std::int32_t& number, std::uint32_t step) {
    number = static_cast<std::int32_t>(static_cast<std::uint32_t>(number) + step);
}

// The entry of a training row for one label: its count C_il, and whether it carries the label,
// y_il.
struct Entry {
    std::size_t label;
    std::int32_t count;
    bool carries;
};

// The training rows, their entries stored as 2 C_il + y_il.
template <class I>
class CountedRows {
public:
    CountedRows(const Vector<const I>& indptr, const Vector<const I>& indices,
                const Vector<const std::int32_t>& entries, std::size_t q)
        : rows_(indptr, indices.size(), "entries must have an indptr that fits their indices"),
          indices_(indices.data()),
          entries_(entries.data()),
          q_(q) {
        require(indices.size() == entries.size(), "entries must have one index each");
    }

    std::size_t size() const { return rows_.rows(); }

    std::size_t checked(I row) const {
        return checked_index(row, size(), "posting_rows must contain row numbers");
    }

    // Calls `use` with the entries of a row until it returns false. Returns whether it never did.
    template <class Use>
    bool all(std::size_t row, Use use) const {
        std::size_t begin, end;
        rows_.row(row, begin, end);
        for (std::size_t at = begin; at < end; ++at) {
            const std::size_t label =
                checked_index(indices_[at], q_, "indices must contain labels");
            if (!use(Entry{label, entries_[at] >> 1, (entries_[at] & 1) != 0})) return false;
        }
        return true;
    }

private:
    CsrRows<I> rows_;
    const I* indices_;
    const std::int32_t* entries_;
    std::size_t q_;
};

// The rows by label and count: a list for each cell, grouped by label.
template <class I>
class Postings {
public:
    Postings(const Cells& cells, std::size_t n_cells, const Vector<const I>& indptr,
             const Vector<const I>& rows)
        : cells_(cells), ends_(indptr.data()), rows_(rows.data()), size_(rows.size()) {
        require(indptr.size() == n_cells + 1, "postings must have one list per cell");
    }

    // The rows with a count of a label from `low` to `high`.
    Span<I> rows(std::size_t label, std::int64_t low, std::int64_t high) const {
        const I begin = ends_[cells_.at_most(label, low)];
        const I end = ends_[cells_.at_most(label, high + 1)];
        require(begin >= 0 && begin <= end && static_cast<std::uint64_t>(end) <= size_,
                "postings must have an indptr that fits their indices");
        return {rows_ + begin, rows_ + end};
    }

private:
    const Cells& cells_;
    const I* ends_;
    const I* rows_;
    std::size_t size_;
};

// The counts of one query, to be compared with those of training rows.
class Query {
public:
    Query(std::size_t q, std::int64_t tolerance) : count_(q), tolerance_(tolerance) {}

    // Clears the previous query.
    void read(const std::int64_t* labels, const std::int32_t* counts, std::size_t size) {
        for (const std::size_t label : labels_) count_[label] = 0;
        labels_.clear();
        heavy_ = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t label =
                checked_index(labels[i], count_.size(), "query_labels must contain labels");
            require(counts[i] > 0, "query_counts must be at least 1");
            require(count_[label] == 0, "query_labels must not repeat a label in one row");
            labels_.push_back(label);
            count_[label] = counts[i];
            heavy_ += counts[i] > tolerance_;
        }
    }

    const std::vector<std::size_t>& labels() const { return labels_; }
    std::int32_t count(std::size_t label) const { return count_[label]; }
    bool is_heavy(std::size_t label) const { return count_[label] > tolerance_; }
    std::size_t heavy() const { return heavy_; }  // the number of heavy counts

    // Whether a row that was found by its count of one label is admissible. A heavy row is in the
    // lists of all its heavy labels; a light query takes it from the first one.
    template <class I>
    bool admits(const CountedRows<I>& rows, std::size_t row, std::size_t found_by) const {
        std::size_t near = 0;  // heavy counts of the query that the row is near
        bool is_first = heavy_ == 0;
        const bool is_within = rows.all(row, [&](const Entry& entry) {
            const std::int64_t own = count_[entry.label];
            if (is_first && entry.count > tolerance_) {
                if (entry.label != found_by) return false;
                is_first = false;
            }
            near += own > tolerance_ && entry.count >= own - tolerance_;
            return entry.count <= own + tolerance_;
        });
        return is_within && near == heavy_;
    }

private:
    std::vector<std::int32_t> count_;
    std::vector<std::size_t> labels_;
    std::int64_t tolerance_;
    std::size_t heavy_ = 0;
};

// The admissible rows of a query: all light rows or none, plus some rows, minus some of them.
template <class I>
class Found {
public:
    Found(const CountedRows<I>& rows, const Postings<I>& postings,
          const Vector<const std::uint8_t>& is_light, std::int64_t tolerance)
        : rows_(rows), postings_(postings), is_light_(is_light.data()), tolerance_(tolerance) {
        require(is_light.size() == rows.size(), "is_light must have one entry per training row");
    }

    void find(const Query& query) {
        added.clear();
        removed.clear();
        with_light_rows = query.heavy() == 0;
        if (!with_light_rows) return find_by_heavy(query);
        for (const std::size_t label : query.labels()) {
            const std::int64_t most = query.count(label) + tolerance_;
            add(query, label, postings_.rows(label, tolerance_ + 1, most));
        }
    }

    bool with_light_rows = false;
    std::vector<std::size_t> added, removed;

private:
    void add(const Query& query, std::size_t label, const Span<I>& list) {
        for (const I* at = list.begin; at != list.end; ++at) {
            const std::size_t row = rows_.checked(*at);
            if (query.admits(rows_, row, label)) added.push_back(row);
        }
    }

    // A row that is admissible for a query with heavy counts is in the lists of all of them.
    void find_by_heavy(const Query& query) {
        lists_.clear();
        std::size_t shortest = 0;
        for (const std::size_t label : query.labels()) {
            if (!query.is_heavy(label)) continue;
            const std::int64_t count = query.count(label);
            lists_.push_back(postings_.rows(label, count - tolerance_, count + tolerance_));
            if (lists_.back().size() < lists_[shortest].size()) shortest = lists_.size() - 1;
        }
        const std::size_t n = rows_.size();
        if (lists_[shortest].size() <= n / 2) return add(query, 0, lists_[shortest]);
        times_listed_.assign(n, 0);
        for (const Span<I>& list : lists_) {
            for (const I* at = list.begin; at != list.end; ++at) {
                ++times_listed_[rows_.checked(*at)];
            }
        }
        with_light_rows = true;
        for (std::size_t row = 0; row < n; ++row) {
            const bool in_all = times_listed_[row] == lists_.size();
            if (is_light_[row] && !in_all) {
                removed.push_back(row);
            } else if (!is_light_[row] && in_all && query.admits(rows_, row, 0)) {
                added.push_back(row);
            }
        }
    }

    const CountedRows<I>& rows_;
    const Postings<I>& postings_;
    const std::uint8_t* is_light_;
    std::int64_t tolerance_;
    std::vector<Span<I>> lists_;
    std::vector<std::uint32_t> times_listed_;
};

// The light rows by label and count, and by label if a query has no count.
class LightRows {
public:
    LightRows(const Cells& cells, const Vector<const std::int64_t>& with,
              const Vector<const std::int64_t>& without)
        : cells_(cells),
          with_(with.data()),
          without_(without.data()),
          none_with_(cells.labels()),
          none_without_(cells.labels()) {
        require(with.size() == without.size(),
                "light_with and light_without must have the same size");
        for (std::size_t label = 0; label < none_with_.size(); ++label) {
            const std::size_t cell =
                cells.of(label, 0, "start must give each label a cell for count 0");
            none_with_[label] = static_cast<std::int32_t>(with_[cell]);
            none_without_[label] = static_cast<std::int32_t>(without_[cell]);
        }
    }

    // The rows with the counts of a query, or with count 0 if `is_counted` is false.
    void copy(const Query& query, bool is_counted, std::int32_t* with,
              std::int32_t* without) const {
        for (std::size_t label = 0; label < none_with_.size(); ++label) {
            with[label] = is_counted ? none_with_[label] : 0;
            without[label] = is_counted ? none_without_[label] : 0;
        }
        for (const std::size_t label : query.labels()) {
            const std::size_t cell = cells_.of(
                label, query.count(label), "query_counts must be within the cells of their labels");
            with[label] = is_counted ? static_cast<std::int32_t>(with_[cell]) : 0;
            without[label] = is_counted ? static_cast<std::int32_t>(without_[cell]) : 0;
        }
    }

private:
    const Cells& cells_;
    const std::int64_t* with_;
    const std::int64_t* without_;
    std::vector<std::int32_t> none_with_, none_without_;
};

// Adds some rows to those with a query's counts; `times` is 1, or -1 to remove them.
template <class I>
void count_rows(const Query& query, const CountedRows<I>& rows,
                const std::vector<std::size_t>& some, std::uint32_t times, std::size_t q,
                std::int32_t* with, std::int32_t* without) {
    // First as if they had no entries: count 0 for every label, and no labels.
    const std::uint32_t all = times * static_cast<std::uint32_t>(some.size());
    for (std::size_t label = 0; all != 0 && label < q; ++label) {
        add(without[label], query.count(label) == 0 ? all : 0);
    }
    for (const std::size_t row : some) {
        rows.all(row, [&](const Entry& entry) {
            // No branches, which would be mispredicted: adds ones where it counts, else zeros.
            const std::int32_t count = query.count(entry.label);
            const std::uint32_t is_same = entry.count == count, carries = entry.carries;
            const std::uint32_t was_counted = count == 0;
            add(with[entry.label], times * (is_same & carries));
            add(without[entry.label], times * ((is_same & ~carries) - was_counted));
            return true;
        });
    }
}

// For each query: how many rows are admissible, and how many of these have its count of a label,
// separately for rows with and without the label.
template <class I>
void tally_admissible(Vector<const std::int64_t> query_indptr,
                      Vector<const std::int64_t> query_labels,
                      Vector<const std::int32_t> query_counts, Vector<const I> indptr,
                      Vector<const I> indices, Vector<const std::int32_t> entries,
                      Vector<const std::int64_t> start, Vector<const std::int64_t> light_with,
                      Vector<const std::int64_t> light_without, Vector<const std::uint8_t> is_light,
                      Vector<const I> posting_indptr, Vector<const I> posting_rows,
                      std::int64_t tolerance, Vector<std::int64_t> admissible,
                      Matrix<std::int32_t> with_label, Matrix<std::int32_t> without_label) {
    require(tolerance >= 0 && tolerance <= INT32_MAX, "tolerance must be from 0 to 2^31 - 1");
    const Cells cells(start, light_with.size());
    const std::size_t q = cells.labels();
    const LightRows light(cells, light_with, light_without);
    const CountedRows<I> rows(indptr, indices, entries, q);
    const Postings<I> postings(cells, light_with.size(), posting_indptr, posting_rows);
    Found<I> found(rows, postings, is_light, tolerance);
    std::int64_t n_light = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) n_light += is_light.data()[row] != 0;

    const CsrRows<std::int64_t> queries(query_indptr, query_labels.size(),
                                        "query_indptr must fit query_labels");
    const std::size_t m = queries.rows();
    require(query_labels.size() == query_counts.size(),
            "query_labels and query_counts must have the same size");
    require(admissible.size() == m && has_shape(with_label, m, q) && has_shape(without_label, m, q),
            "admissible, with_label and without_label must have one row per query and one column "
            "per label");
    Query query(q, tolerance);
    for (std::size_t row = 0; row < m; ++row) {
        std::size_t begin, end;
        queries.row(row, begin, end);
        query.read(query_labels.data() + begin, query_counts.data() + begin, end - begin);
        found.find(query);
        admissible.data()[row] = (found.with_light_rows ? n_light : 0) +
                                 static_cast<std::int64_t>(found.added.size()) -
                                 static_cast<std::int64_t>(found.removed.size());
        std::int32_t* const with = with_label.data() + row * q;
        std::int32_t* const without = without_label.data() + row * q;
        light.copy(query, found.with_light_rows, with, without);
        count_rows(query, rows, found.added, 1, q, with, without);
        count_rows(query, rows, found.removed, UINT32_MAX, q, with, without);
    }
}

}  // namespace

void bind_similar_counts(nb::module_& module) {
    const auto bind = [&module](auto function) {
        module.def("tally_admissible", function, "query_indptr"_array, "query_labels"_array,
                   "query_counts"_array, "indptr"_array, "indices"_array, "entries"_array,
                   "start"_array, "light_with"_array, "light_without"_array, "is_light"_array,
                   "posting_indptr"_array, "posting_rows"_array, "tolerance"_a, "admissible"_array,
                   "with_label"_array, "without_label"_array, Released());
    };
    bind(&tally_admissible<std::int32_t>);
    bind(&tally_admissible<std::int64_t>);
}

}  // namespace nearlabel
