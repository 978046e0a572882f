// Rows of vectors, dense or CSR, and their canonical distances.
//
// The canonical distance is defined in src/nearlabel/search/exact/distances.py: in double, adding
// the terms of the features one by one in feature order, without fused operations. Here the same
// result, bit for bit, is computed for several rows at a time.
#pragma once

#include "bindings.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace nearlabel {

enum class Metric { euclidean, sqeuclidean, cosine, manhattan };

// One row in the form needed for the distances of other rows to it.
struct Query {
    std::vector<double> values;
    std::vector<std::int64_t> columns;  // of sparse rows
    std::vector<double> dense;          // of sparse rows that are loaded with every feature
    bool empty = false;                 // only zeros; used by cosine
};

// A query and the end of its rows in a list; they begin where those of the run before it end.
struct Run {
    std::int64_t query, stop;
};

// Checks that CSR rows are within their arrays and their width.
void check_csr(const Vector<const std::int64_t>& starts, const Vector<const std::int32_t>& columns,
               std::size_t values, std::int64_t width);

class Rows {
public:
    virtual ~Rows() = default;

    Metric metric() const { return metric_; }
    std::int64_t size() const { return size_; }
    std::int64_t width() const { return width_; }
    enum class Storage { floats, doubles, sparse };
    virtual Storage storage() const = 0;
    bool sparse() const { return storage() == Storage::sparse; }

    virtual void load(std::int64_t row, Query& query) const = 0;
    // Loads a row with a value for every feature, which are returned.
    double* load_dense(std::int64_t row, Query& query) const;

    virtual void distances(const Query& query, const std::int32_t* rows, std::int64_t count,
                           double* result) const = 0;

    // Distances of the listed rows to the queries of their runs, squared for euclidean, whose terms
    // are added in any order, which is faster. They differ from the canonical ones by at most
    // `rough_share` of themselves and `rough_tiny`. False if there is no faster way.
    virtual bool rough(const Rows& queries, const std::vector<Run>& runs, const std::int32_t* rows,
                       double* result) const;
    double rough_share() const { return rough_share_; }
    double rough_tiny() const { return rough_tiny_; }

    // Whether a row and a query have a feature in common: for cosine, by their unit rows.
    virtual bool shares(const Query& query, std::int64_t row) const = 0;

protected:
    Rows(Metric metric, std::int64_t size, std::int64_t width);

    // Unit rows for cosine, rounded as in `unit_rows` in Python: an exact power of two scales the
    // largest entry to about 1, then one division by the length.
    void set_lengths(Vector<const std::int32_t> exponents, Vector<const double> lengths);

    struct Unit {
        double first = 1, second = 1;  // their product, the power of two, may be out of range
        double length = 1;
        bool empty = false;

        double of(double value) const { return value * first * second / length; }
        double factor() const { return first / length * second; }  // the same but for rounding
    };
    Unit unit(std::int64_t row) const {  // that leaves values as they are unless for cosine
        return metric_ == Metric::cosine ? unit_for_cosine(row) : Unit();
    }
    bool is_empty(std::int64_t row) const { return !(lengths_.data()[row] > 0); }
    void to_unit(std::int64_t row, Query& query) const;  // for cosine only

    // The distance of two rows, from the sum.
    double finished(double sum, const Query& query, std::int64_t row) const {
        if (metric_ == Metric::euclidean) return std::sqrt(sum);
        return metric_ == Metric::cosine ? finished_cosine(sum, query, row) : sum;
    }

    Metric metric_;
    std::int64_t size_, width_;
    double rough_share_, rough_tiny_;

private:
    Unit unit_for_cosine(std::int64_t row) const;
    // Exactly 1 if two rows share no feature, where a sum of squares would have rounding errors.
    double finished_cosine(double sum, const Query& query, std::int64_t row) const;

    Vector<const std::int32_t> exponents_;
    Vector<const double> lengths_;
};

// Checks that distances between the rows of two sets are defined.
inline void require_comparable(const Rows& queries, const Rows& base) {
    require(queries.sparse() == base.sparse() && queries.width() == base.width() &&
                queries.metric() == base.metric(),
            "queries and base must have the same metric, width and storage (dense or sparse)");
}

// Packs the chosen rows for bounds on their distances: see packed_bounds.cpp.
void pack_rows(const Rows& rows, Vector<const std::int32_t> chosen, Vector<const double> center,
               double unit, double slack, double tiny, double margins, Matrix<float> factors,
               Vector<float> errors);

}  // namespace nearlabel
