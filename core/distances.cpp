#include "distances.h"

#include "cpu.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <nanobind/stl/string.h>
#include <string>
#include <type_traits>
#include <utility>

namespace nearlabel {

namespace {

Metric metric_named(const std::string& name) {
    if (name == "euclidean") return Metric::euclidean;
    if (name == "sqeuclidean") return Metric::sqeuclidean;
    if (name == "cosine") return Metric::cosine;
    if (name == "manhattan") return Metric::manhattan;
    throw std::invalid_argument(
        "metric must be 'euclidean', 'sqeuclidean', 'cosine' or 'manhattan'; got " + name);
}

struct Squares {
    static double term(double difference) { return difference * difference; }
};

struct Magnitudes {
    static double term(double difference) { return std::fabs(difference); }
};

// The sum of squared differences, in any order; apart(f) is the difference of one feature.
template <class Number, class Apart>
NL_INLINE Number sum_of_squares(std::int64_t width, Apart apart) {
    constexpr int LANES = 128 / sizeof(Number);  // four AVX2 registers
    Number sums[LANES] = {};
    std::int64_t f = 0;
    for (; f + LANES <= width; f += LANES)
        for (int lane = 0; lane < LANES; ++lane) {
            const Number difference = apart(f + lane);
            sums[lane] += difference * difference;
        }
    for (; f < width; ++f) sums[0] += apart(f) * apart(f);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    return sums[0];
}

constexpr int ROUGH_ROWS = 4;  // whose rough sums are computed together

// Up to ROUGH_ROWS sums of one query; the remaining pointers, too, are to rows.
using RoughSquares = void (*)(const float* query, const float* const* rows, int count,
                              std::int64_t width, float* sums);

NL_INLINE void rough_squares_of(const float* query, const float* const* rows, int count,
                                std::int64_t width, float* sums) {
    // In float: no term is negative, so the error of a sum is at most width + 3 units of itself.
    for (int i = 0; i < count; ++i)
        sums[i] = sum_of_squares<float>(
            width, [query, row = rows[i]](std::int64_t f) { return query[f] - row[f]; });
}

#ifdef NL_VNNI
// Adding up the 16 parts of a sum takes longer than the parts, but for four sums as long as for
// one.
NL_TARGET_VNNI void rough_squares_avx512(const float* query, const float* const* rows, int,
                                         std::int64_t width, float* sums) {
    __m512 s[ROUGH_ROWS] = {};
    const auto add = [&](std::int64_t f, __mmask16 some) NL_TARGET_VNNI {
        const __m512 mine = _mm512_maskz_loadu_ps(some, query + f);
        for (int i = 0; i < ROUGH_ROWS; ++i) {
            const __m512 apart = _mm512_sub_ps(mine, _mm512_maskz_loadu_ps(some, rows[i] + f));
            s[i] = _mm512_fmadd_ps(apart, apart, s[i]);
        }
    };
    std::int64_t f = 0;
    for (; f + 16 <= width; f += 16) add(f, 0xffff);
    if (f < width) add(f, static_cast<__mmask16>((1 << (width - f)) - 1));
    // In each quarter, two parts of rows 0 and 1 and of rows 2 and 3, then one part of all four.
    const __m512 a =
        _mm512_add_ps(_mm512_shuffle_ps(s[0], s[1], 0x44), _mm512_shuffle_ps(s[0], s[1], 0xee));
    const __m512 b =
        _mm512_add_ps(_mm512_shuffle_ps(s[2], s[3], 0x44), _mm512_shuffle_ps(s[2], s[3], 0xee));
    alignas(64) float parts[16];
    _mm512_store_ps(parts,
                    _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd)));
    for (int i = 0; i < ROUGH_ROWS; ++i)
        sums[i] = (parts[i] + parts[4 + i]) + (parts[8 + i] + parts[12 + i]);
}
#endif

RoughSquares rough_squares_variant() {
#ifdef NL_VNNI
    if (has_vnni()) return rough_squares_avx512;
#endif
    return up_to_avx2<rough_squares_of>();
}

// The sum of squared differences of two rows, each multiplied by a factor.
template <class A, class B>
NL_INLINE double rough_sum(const A* a, double a_factor, const B* b, double b_factor,
                           std::int64_t width) {
    return sum_of_squares<double>(
        width, [=](std::int64_t f) { return a[f] * a_factor - b[f] * b_factor; });
}

}  // namespace

void check_csr(const Vector<const std::int64_t>& starts, const Vector<const std::int32_t>& columns,
               std::size_t values, std::int64_t width) {
    require(width >= 0, "width must not be negative");
    require(has_shape(columns, values), "columns must have one entry per value");
    check_starts(starts, values,
                 "starts must not decrease, and must go from 0 to the number of entries");
    for (std::size_t i = 0; i < values; ++i)
        require(columns.data()[i] >= 0 && columns.data()[i] < width,
                "columns must be from 0 to width - 1");
}

Rows::Rows(Metric metric, std::int64_t size, std::int64_t width)
    : metric_(metric),
      size_(size),
      width_(width),
      rough_share_(std::ldexp(static_cast<double>(width + 4), -23)),
      // The unit rows of cosine are rounded relative to their length, and sums in float may
      // underflow.
      rough_tiny_(metric == Metric::cosine ? std::ldexp(static_cast<double>(width + 8), -48)
                                           : static_cast<double>(width) * FLT_MIN) {}

void Rows::set_lengths(Vector<const std::int32_t> exponents, Vector<const double> lengths) {
    const auto n = static_cast<std::size_t>(size_);
    require(metric_ != Metric::cosine || (exponents.shape(0) == n && lengths.shape(0) == n),
            "exponents and lengths must have one entry per row");
    exponents_ = std::move(exponents);
    lengths_ = std::move(lengths);
}

Rows::Unit Rows::unit_for_cosine(std::int64_t row) const {
    const int shift = -exponents_.data()[row];
    const bool empty = is_empty(row);
    return {std::ldexp(1.0, shift / 2), std::ldexp(1.0, shift - shift / 2),
            empty ? 1.0 : lengths_.data()[row], empty};
}

void Rows::to_unit(std::int64_t row, Query& query) const {
    if (metric_ != Metric::cosine) return;
    const Unit unit = this->unit(row);
    query.empty = unit.empty;
    for (double& value : query.values) value = unit.of(value);
}

double* Rows::load_dense(std::int64_t row, Query& query) const {
    load(row, query);
    if (!sparse()) return query.values.data();
    query.dense.assign(static_cast<std::size_t>(width_), 0.0);
    for (std::size_t i = 0; i < query.values.size(); ++i)
        query.dense[static_cast<std::size_t>(query.columns[i])] = query.values[i];
    return query.dense.data();
}

bool Rows::rough(const Rows&, const std::vector<Run>&, const std::int32_t*, double*) const {
    return false;
}

double Rows::finished_cosine(double sum, const Query& query, std::int64_t row) const {
    if (query.empty || is_empty(row)) return 1;
    const double near = std::ldexp(static_cast<double>(width_ + 8), -50);
    return std::fabs(sum / 2 - 1) <= near && !shares(query, row) ? 1 : sum / 2;
}

namespace {

template <class T>
class DenseRows final : public Rows {
public:
    using Values = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

    DenseRows(Metric metric, Values values, Vector<const std::int32_t> exponents,
              Vector<const double> lengths)
        : Rows(metric, static_cast<std::int64_t>(values.shape(0)),
               static_cast<std::int64_t>(values.shape(1))),
          values_(std::move(values)),
          stride_(values_.stride(0)) {
        require(width_ <= 1 || values_.stride(1) == 1, "values must have contiguous rows");
        set_lengths(std::move(exponents), std::move(lengths));
    }

    Storage storage() const override {
        return std::is_same_v<T, float> ? Storage::floats : Storage::doubles;
    }

    void load(std::int64_t row, Query& query) const override {
        query.values.resize(static_cast<std::size_t>(width_));
        const T* from = at(row);
        std::copy(from, from + width_, query.values.begin());
        to_unit(row, query);
    }

    void distances(const Query& query, const std::int32_t* rows, std::int64_t count,
                   double* result) const override {
        // Rows that are multiples of a page apart compete for the same few places in the cache,
        // where the next ones would displace those in use.
        const std::int64_t ahead = stride_ * std::int64_t{sizeof(T)} % 4096 == 0 ? 0 : AT_ONCE;
        for (std::int64_t done = 0; done < count; done += AT_ONCE) {
            const T *from[AT_ONCE], *next[AT_ONCE];
            std::int32_t some[AT_ONCE];
            for (int i = 0; i < AT_ONCE; ++i) {  // the last row is repeated
                some[i] = rows[std::min(done + i, count - 1)];
                from[i] = at(some[i]);
                next[i] = at(rows[std::min(done + ahead + i, count - 1)]);
            }
            if (done + AT_ONCE <= count) {
                several(query.values.data(), from, next, some, result + done);
            } else {
                double sums[AT_ONCE];
                several(query.values.data(), from, next, some, sums);
                std::copy(sums, sums + (count - done), result + done);
            }
        }
        for (std::int64_t i = 0; i < count; ++i) result[i] = finished(result[i], query, rows[i]);
    }

    bool rough(const Rows& queries, const std::vector<Run>& runs, const std::int32_t* rows,
               double* result) const override {
        if (metric_ == Metric::manhattan || queries.sparse()) return false;
        if (queries.storage() == Storage::floats)
            rough_from(static_cast<const DenseRows<float>&>(queries), runs, rows, result);
        else
            rough_from(static_cast<const DenseRows<double>&>(queries), runs, rows, result);
        return true;
    }

    bool shares(const Query& query, std::int64_t row) const override {
        const Unit unit = this->unit(row);
        for (std::int64_t f = 0; f < width_; ++f)
            if (query.values[f] != 0 && unit.of(at(row)[f]) != 0) return true;
        return false;
    }

private:
    static constexpr int AHEAD = 8;    // rows that are prefetched
    static constexpr int AT_ONCE = 8;  // rows whose distances are computed together

    template <class>
    friend class DenseRows;

    template <class Other>
    void rough_from(const DenseRows<Other>& queries, const std::vector<Run>& runs,
                    const std::int32_t* rows, double* result) const {
        const std::int64_t end = runs.empty() ? 0 : runs.back().stop;
        std::int64_t first = 0;
        if constexpr (std::is_same_v<T, float> && std::is_same_v<Other, float>)
            if (metric_ != Metric::cosine) {
                for (const auto [query, stop] : runs) {
                    rough_squares(queries.at(query), rows + first, stop - first, end - first,
                                  result + first);
                    first = stop;
                }
                return;
            }
        const auto sum = up_to_avx2<rough_sum<Other, T>>();
        const bool cosine = metric_ == Metric::cosine;
        for (const auto [query, stop] : runs) {
            const Unit mine = queries.unit(query);
            for (; first < stop; ++first) {
                if (first + AHEAD < end) prefetch(at(rows[first + AHEAD]));
                const std::int32_t row = rows[first];
                const Unit unit = this->unit(row);
                double& found = result[first];
                found = sum(queries.at(query), mine.factor(), at(row), unit.factor(), width_);
                if (cosine) found = mine.empty || unit.empty ? 1 : found / 2;
            }
        }
    }

    // Writes the squared distances of a query and the first rows. Rows up to `end` are prefetched:
    // they come next.
    void rough_squares(const float* query, const std::int32_t* rows, std::int64_t count,
                       std::int64_t end, double* result) const {
        const RoughSquares squares = rough_squares_variant();
        for (std::int64_t done = 0; done < count; done += ROUGH_ROWS) {
            const float* some[ROUGH_ROWS];
            for (int i = 0; i < ROUGH_ROWS; ++i) {
                some[i] = at(rows[std::min(done + i, count - 1)]);
                prefetch_lines(at(rows[std::min(done + AHEAD + i, end - 1)]));
            }
            const auto these = static_cast<int>(std::min<std::int64_t>(ROUGH_ROWS, count - done));
            float sums[ROUGH_ROWS];
            squares(query, some, these, width_, sums);
            std::copy(sums, sums + these, result + done);
        }
    }

    // Prefetches the start of a row; the processor goes on by itself.
    void prefetch_lines(const float* row) const {
        prefetch(row);
        prefetch(row + std::min<std::int64_t>(16, width_ - 1));
    }

    const T* at(std::int64_t row) const { return values_.data() + row * stride_; }

    // Sums of several rows at once: their additions are independent of each other. The rows that
    // are next may be prefetched.
    void several(const double* query, const T* const from[AT_ONCE], const T* const next[AT_ONCE],
                 const std::int32_t rows[AT_ONCE], double sums[AT_ONCE]) const {
#ifdef NL_X86
        if (has_avx2()) return several_avx2(query, from, next, rows, sums);
#endif
        if (metric_ == Metric::cosine) {
            Unit units[AT_ONCE];
            for (int i = 0; i < AT_ONCE; ++i) units[i] = unit(rows[i]);
            sum<Squares>(query, from, sums,
                         [&units](double value, int i) { return units[i].of(value); });
        } else if (metric_ == Metric::manhattan)
            sum<Magnitudes>(query, from, sums, [](double value, int) { return value; });
        else
            sum<Squares>(query, from, sums, [](double value, int) { return value; });
    }

    template <class Term, class Scale>
    void sum(const double* query, const T* const from[AT_ONCE], double sums[AT_ONCE],
             Scale scale) const {
        double s[AT_ONCE] = {};
        for (std::int64_t f = 0; f < width_; ++f)
            for (int i = 0; i < AT_ONCE; ++i) s[i] += Term::term(query[f] - scale(from[i][f], i));
        std::copy(s, s + AT_ONCE, sums);
    }

#ifdef NL_X86
    NL_TARGET_AVX2 static __m256d load4(const double* from) { return _mm256_loadu_pd(from); }
    NL_TARGET_AVX2 static __m256d load4(const float* from) {
        return _mm256_cvtps_pd(_mm_loadu_ps(from));
    }

    // Two registers of four rows each: an addition waits for the one before, and the other register
    // has its turn meanwhile. AVX-512, tried on Zen 4 only, was no faster.
    NL_TARGET_AVX2 void several_avx2(const double* query, const T* const from[AT_ONCE],
                                     const T* const next[AT_ONCE], const std::int32_t rows[AT_ONCE],
                                     double sums[AT_ONCE]) const {
        constexpr int HALVES = AT_ONCE / 4;
        constexpr std::int64_t LINE = 64 / sizeof(T);  // of the cache
        const bool absolute = metric_ == Metric::manhattan, scaled = metric_ == Metric::cosine;
        const __m256d no_sign = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7fffffffffffffff));
        __m256d total[HALVES] = {}, first[HALVES] = {}, second[HALVES] = {}, length[HALVES] = {};
        for (int half = 0; scaled && half < HALVES; ++half) {
            const std::int32_t* some = rows + 4 * half;
            const Unit a = unit(some[0]), b = unit(some[1]), c = unit(some[2]), d = unit(some[3]);
            first[half] = _mm256_setr_pd(a.first, b.first, c.first, d.first);
            second[half] = _mm256_setr_pd(a.second, b.second, c.second, d.second);
            length[half] = _mm256_setr_pd(a.length, b.length, c.length, d.length);
        }
        const auto add = [&](int half, double mine, __m256d theirs) NL_TARGET_AVX2 {
            if (scaled)
                theirs = _mm256_div_pd(
                    _mm256_mul_pd(_mm256_mul_pd(theirs, first[half]), second[half]), length[half]);
            const __m256d apart = _mm256_sub_pd(_mm256_set1_pd(mine), theirs);
            total[half] = _mm256_add_pd(total[half], absolute ? _mm256_and_pd(apart, no_sign)
                                                              : _mm256_mul_pd(apart, apart));
        };
        std::int64_t f = 0;
        for (; f + 4 <= width_; f += 4) {
            if (f % LINE == 0)
                for (int i = 0; i < AT_ONCE; ++i) prefetch(next[i] + f);
            __m256d feature[HALVES][4];
            for (int half = 0; half < HALVES; ++half) {
                const T* const* four = from + 4 * half;
                const __m256d a = load4(four[0] + f), b = load4(four[1] + f);
                const __m256d c = load4(four[2] + f), d = load4(four[3] + f);
                const __m256d ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b);
                const __m256d cd_even = _mm256_unpacklo_pd(c, d), cd_odd = _mm256_unpackhi_pd(c, d);
                feature[half][0] = _mm256_permute2f128_pd(ab_even, cd_even, 0x20);
                feature[half][1] = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20);
                feature[half][2] = _mm256_permute2f128_pd(ab_even, cd_even, 0x31);
                feature[half][3] = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31);
            }
            for (int i = 0; i < 4; ++i)
                for (int half = 0; half < HALVES; ++half) add(half, query[f + i], feature[half][i]);
        }
        for (; f < width_; ++f)
            for (int half = 0; half < HALVES; ++half) {
                const T* const* four = from + 4 * half;
                add(half, query[f], _mm256_setr_pd(four[0][f], four[1][f], four[2][f], four[3][f]));
            }
        for (int half = 0; half < HALVES; ++half) _mm256_storeu_pd(sums + 4 * half, total[half]);
    }
#endif

    Values values_;
    std::int64_t stride_;
};

// CSR rows with sorted columns, and values in double.
class SparseRows final : public Rows {
public:
    SparseRows(Metric metric, std::int64_t width, Vector<const std::int64_t> starts,
               Vector<const std::int32_t> columns, Vector<const double> values,
               Vector<const std::int32_t> exponents, Vector<const double> lengths)
        : Rows(metric, static_cast<std::int64_t>(starts.shape(0)) - 1, width),
          starts_(std::move(starts)),
          columns_(std::move(columns)),
          values_(std::move(values)) {
        check_csr(starts_, columns_, values_.shape(0), width);
        set_lengths(std::move(exponents), std::move(lengths));
    }

    Storage storage() const override { return Storage::sparse; }

    void load(std::int64_t row, Query& query) const override {
        const std::int64_t begin = starts_.data()[row], end = starts_.data()[row + 1];
        query.columns.assign(columns_.data() + begin, columns_.data() + end);
        query.values.assign(values_.data() + begin, values_.data() + end);
        to_unit(row, query);
    }

    void distances(const Query& query, const std::int32_t* rows, std::int64_t count,
                   double* result) const override {
        for (std::int64_t i = 0; i < count; ++i) {
            const double sum = metric_ == Metric::manhattan ? merged<Magnitudes>(query, rows[i])
                                                            : merged<Squares>(query, rows[i]);
            result[i] = finished(sum, query, rows[i]);
        }
    }

    bool shares(const Query& query, std::int64_t row) const override {
        const Unit unit = this->unit(row);
        std::int64_t at = starts_.data()[row];
        const std::int64_t end = starts_.data()[row + 1];
        for (std::size_t mine = 0; mine < query.values.size() && at < end;) {
            const std::int64_t a = query.columns[mine], b = columns_.data()[at];
            if (a == b && query.values[mine] != 0 && unit.of(values_.data()[at]) != 0) return true;
            mine += a <= b;
            at += b <= a;
        }
        return false;
    }

private:
    // The sum over the features that either row stores, in their order.
    template <class Term>
    double merged(const Query& query, std::int64_t row) const {
        const bool scaled = metric_ == Metric::cosine;
        const Unit unit = this->unit(row);
        std::int64_t at = starts_.data()[row], mine = 0;
        const std::int64_t end = starts_.data()[row + 1];
        const auto size = static_cast<std::int64_t>(query.values.size());
        double sum = 0;
        while (mine < size || at < end) {
            const std::int64_t a = mine < size ? query.columns[mine] : width_;
            const std::int64_t b = at < end ? columns_.data()[at] : width_;
            double apart = 0;
            if (a <= b) apart = query.values[mine++];
            if (b <= a) {
                const double value = values_.data()[at++];
                apart -= scaled ? unit.of(value) : value;
            }
            sum += Term::term(apart);
        }
        return sum;
    }

    Vector<const std::int64_t> starts_;
    Vector<const std::int32_t> columns_;
    Vector<const double> values_;
};

template <class T>
Rows* dense_rows(typename DenseRows<T>::Values values, const std::string& metric,
                 Vector<const std::int32_t> exponents, Vector<const double> lengths) {
    return new DenseRows<T>(metric_named(metric), std::move(values), std::move(exponents),
                            std::move(lengths));
}

Rows* sparse_rows(Vector<const std::int64_t> starts, Vector<const std::int32_t> columns,
                  Vector<const double> values, std::int64_t width, const std::string& metric,
                  Vector<const std::int32_t> exponents, Vector<const double> lengths) {
    return new SparseRows(metric_named(metric), width, std::move(starts), std::move(columns),
                          std::move(values), std::move(exponents), std::move(lengths));
}

// Writes the canonical distances of pairs of a query and a base row. Pairs of one query that follow
// each other are measured together.
void measure(const Rows& base, const Rows& queries, Vector<const std::int32_t> asked,
             Vector<const std::int32_t> rows, Vector<double> distances) {
    const std::size_t n = asked.size();
    require_comparable(queries, base);
    require(rows.size() == n && distances.size() == n,
            "asked, rows and distances must have one entry per pair");
    Query query;
    for (std::size_t first = 0, last = 0; first < n; first = last) {
        const std::int32_t own = asked.data()[first];
        checked_index(own, static_cast<std::size_t>(queries.size()),
                      "asked must contain query numbers");
        for (; last < n && asked.data()[last] == own; ++last)
            checked_index(rows.data()[last], static_cast<std::size_t>(base.size()),
                          "rows must contain row numbers");
        queries.load(own, query);
        base.distances(query, rows.data() + first, static_cast<std::int64_t>(last - first),
                       distances.data() + first);
    }
}

}  // namespace

void bind_distances(nb::module_& module) {
    nb::class_<Rows>(module, "Rows", "Vectors and their canonical distances.")
        .def("__len__", &Rows::size)
        .def("pack", &pack_rows, Released(), "chosen"_array, "center"_array, "unit"_a, "slack"_a,
             "tiny"_a, "margins"_a, "factors"_array, "errors"_array)
        .def("measure", &measure, Released(), "queries"_a, "asked"_array, "rows"_array,
             "distances"_array);
    const auto dense = [&module](auto function) {
        module.def("dense_rows", function, "values"_array, "metric"_a, "exponents"_array,
                   "lengths"_array);
    };
    dense(&dense_rows<float>);
    dense(&dense_rows<double>);
    module.def("sparse_rows", &sparse_rows, Released(), "starts"_array, "columns"_array,
               "values"_array, "width"_a, "metric"_a, "exponents"_array, "lengths"_array);
}

}  // namespace nearlabel
