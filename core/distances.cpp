#include "distances.h"

#include "cpu.h"

#include <algorithm>
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

// The sum of squared differences in float: no term is negative, so its error is at most width + 3
// units of itself.
NL_INLINE float rough_square(const float* a, const float* b, std::int64_t width) {
    constexpr int LANES = 32;  // four AVX2 registers
    float sums[LANES] = {};
    std::int64_t f = 0;
    for (; f + LANES <= width; f += LANES)
        for (int lane = 0; lane < LANES; ++lane) {
            const float apart = a[f + lane] - b[f + lane];
            sums[lane] += apart * apart;
        }
    for (; f < width; ++f) sums[0] += (a[f] - b[f]) * (a[f] - b[f]);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    return sums[0];
}

float rough_square_baseline(const float* a, const float* b, std::int64_t width) {
    return rough_square(a, b, width);
}

NL_TARGET_AVX2 float rough_square_avx2(const float* a, const float* b, std::int64_t width) {
    return rough_square(a, b, width);
}

}  // namespace

void check_csr(const Vector<const std::int64_t>& starts, const Vector<const std::int32_t>& columns,
               std::size_t values, std::int64_t width) {
    const std::int64_t* const start = starts.data();
    const std::size_t n = starts.shape(0);
    require(width >= 0, "width must not be negative");
    require(n > 0 && columns.shape(0) == values && start[0] == 0 &&
                start[n - 1] == static_cast<std::int64_t>(values) &&
                std::is_sorted(start, start + n),
            "starts must not decrease, and must go from 0 to the number of entries");
    for (std::size_t i = 0; i < values; ++i)
        require(columns.data()[i] >= 0 && columns.data()[i] < width,
                "columns must be from 0 to width - 1");
}

void Rows::drop_far(std::int64_t, double, std::vector<std::int32_t>&) const {}

Rows::Rows(Metric metric, std::int64_t size, std::int64_t width)
    : metric_(metric), size_(size), width_(width) {}

void Rows::set_lengths(Vector<const std::int32_t> exponents, Vector<const double> lengths) {
    const auto n = static_cast<std::size_t>(size_);
    require(metric_ != Metric::cosine || (exponents.shape(0) == n && lengths.shape(0) == n),
            "exponents and lengths must have one entry per row");
    exponents_ = std::move(exponents);
    lengths_ = std::move(lengths);
}

Rows::Unit Rows::unit(std::int64_t row) const {
    const int shift = -exponents_.data()[row];
    const double length = lengths_.data()[row];
    const bool empty = !(length > 0);
    return {std::ldexp(1.0, shift / 2), std::ldexp(1.0, shift - shift / 2), empty ? 1.0 : length,
            empty};
}

void Rows::to_unit(std::int64_t row, Query& query) const {
    if (metric_ != Metric::cosine) return;
    const Unit unit = this->unit(row);
    query.empty = unit.empty;
    for (double& value : query.values) value = unit.of(value);
}

double Rows::finished(double sum) const {
    return metric_ == Metric::euclidean ? std::sqrt(sum) : sum;
}

double Rows::finished_cosine(double sum, const Query& query, std::int64_t row) const {
    if (query.empty || unit(row).empty) return 1;
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

    bool sparse() const override { return false; }

    void load(std::int64_t row, Query& query) const override {
        query.values.resize(static_cast<std::size_t>(width_));
        const T* from = at(row);
        std::copy(from, from + width_, query.values.begin());
        to_unit(row, query);
    }

    void distances(const Query& query, const std::int32_t* rows, std::int64_t count,
                   double* result) const override {
        std::int64_t done = 0;
        for (; done + 4 <= count; done += 4) {
            const T* from[4];
            for (int i = 0; i < 4; ++i) from[i] = at(rows[done + i]);
            four(query.values.data(), from, rows + done, result + done);
        }
        for (; done < count; ++done) {
            const T* from[4];
            std::int32_t same[4];
            double four_results[4];
            for (int i = 0; i < 4; ++i) from[i] = at(same[i] = rows[done]);
            four(query.values.data(), from, same, four_results);
            result[done] = four_results[0];
        }
        for (std::int64_t i = 0; i < count; ++i)
            result[i] = metric_ == Metric::cosine ? finished_cosine(result[i], query, rows[i])
                                                  : finished(result[i]);
    }

    bool shares(const Query& query, std::int64_t row) const override {
        const Unit unit = metric_ == Metric::cosine ? this->unit(row) : Unit();
        for (std::int64_t f = 0; f < width_; ++f)
            if (query.values[f] != 0 && unit.of(at(row)[f]) != 0) return true;
        return false;
    }

    void drop_far(std::int64_t row, double limit, std::vector<std::int32_t>& rows) const override {
        const bool squared = metric_ == Metric::sqeuclidean;
        if constexpr (std::is_same_v<T, float>) {
            if (!squared && metric_ != Metric::euclidean) return;
            const auto rough = has_avx2() ? rough_square_avx2 : rough_square_baseline;
            const double slack = 2 * static_cast<double>(width_ + 4) / (1 << 24);
            // Subnormal terms are rounded to a multiple of the smallest float.
            const double tiny = static_cast<double>(width_) * std::numeric_limits<float>::min();
            const double far = (squared ? limit : limit * limit) * (1 + slack) + tiny;
            std::size_t kept = 0;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (i + AHEAD < rows.size()) prefetch(at(rows[i + AHEAD]));
                const float sum = rough(at(row), at(rows[i]), width_);
                rows[kept] = rows[i];
                kept += !(std::isfinite(sum) && static_cast<double>(sum) > far);
            }
            rows.resize(kept);
        }
    }

private:
    static constexpr std::size_t AHEAD = 4;  // rows prefetched ahead

    const T* at(std::int64_t row) const { return values_.data() + row * stride_; }

    // Sums of four rows at once: their additions are independent of each other.
    void four(const double* query, const T* const from[4], const std::int32_t rows[4],
              double sums[4]) const {
        Unit units[4];
        if (metric_ == Metric::cosine)
            for (int i = 0; i < 4; ++i) units[i] = unit(rows[i]);
#ifdef NL_X86
        if (has_avx2()) return four_avx2(query, from, units, sums);
#endif
        if (metric_ == Metric::manhattan)
            sum<Magnitudes>(query, from, 0, sums, [](double value, int) { return value; });
        else if (metric_ == Metric::cosine)
            sum<Squares>(query, from, 0, sums,
                         [&units](double value, int i) { return units[i].of(value); });
        else
            sum<Squares>(query, from, 0, sums, [](double value, int) { return value; });
    }

    template <class Term, class Scale>
    void sum(const double* query, const T* const from[4], std::int64_t first, double sums[4],
             Scale scale) const {
        double s[4] = {};
        if (first > 0) std::copy(sums, sums + 4, s);
        for (std::int64_t f = first; f < width_; ++f)
            for (int i = 0; i < 4; ++i) s[i] += Term::term(query[f] - scale(from[i][f], i));
        std::copy(s, s + 4, sums);
    }

#ifdef NL_X86
    NL_TARGET_AVX2 static __m256d load4(const double* from) { return _mm256_loadu_pd(from); }
    NL_TARGET_AVX2 static __m256d load4(const float* from) {
        return _mm256_cvtps_pd(_mm_loadu_ps(from));
    }

    NL_TARGET_AVX2 void four_avx2(const double* query, const T* const from[4], const Unit units[4],
                                  double sums[4]) const {
        const bool absolute = metric_ == Metric::manhattan, scaled = metric_ == Metric::cosine;
        const __m256d no_sign = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7fffffffffffffff));
        const __m256d first =
            _mm256_setr_pd(units[0].first, units[1].first, units[2].first, units[3].first);
        const __m256d second =
            _mm256_setr_pd(units[0].second, units[1].second, units[2].second, units[3].second);
        const __m256d length =
            _mm256_setr_pd(units[0].length, units[1].length, units[2].length, units[3].length);
        __m256d total = _mm256_setzero_pd();
        std::int64_t f = 0;
        for (; f + 4 <= width_; f += 4) {
            const __m256d a = load4(from[0] + f), b = load4(from[1] + f);
            const __m256d c = load4(from[2] + f), d = load4(from[3] + f);
            const __m256d ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b);
            const __m256d cd_even = _mm256_unpacklo_pd(c, d), cd_odd = _mm256_unpackhi_pd(c, d);
            __m256d feature[4] = {_mm256_permute2f128_pd(ab_even, cd_even, 0x20),
                                  _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20),
                                  _mm256_permute2f128_pd(ab_even, cd_even, 0x31),
                                  _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31)};
            for (int i = 0; i < 4; ++i) {
                if (scaled)
                    feature[i] = _mm256_div_pd(
                        _mm256_mul_pd(_mm256_mul_pd(feature[i], first), second), length);
                const __m256d apart = _mm256_sub_pd(_mm256_set1_pd(query[f + i]), feature[i]);
                total = _mm256_add_pd(
                    total, absolute ? _mm256_and_pd(apart, no_sign) : _mm256_mul_pd(apart, apart));
            }
        }
        _mm256_storeu_pd(sums, total);
        for (; f < width_; ++f)
            for (int i = 0; i < 4; ++i) {
                const double value = scaled ? units[i].of(from[i][f]) : double(from[i][f]);
                const double apart = query[f] - value;
                sums[i] += absolute ? std::fabs(apart) : apart * apart;
            }
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

    bool sparse() const override { return true; }

    void load(std::int64_t row, Query& query) const override {
        const std::int64_t begin = starts_.data()[row], end = starts_.data()[row + 1];
        query.columns.assign(columns_.data() + begin, columns_.data() + end);
        query.values.assign(values_.data() + begin, values_.data() + end);
        to_unit(row, query);
    }

    void distances(const Query& query, const std::int32_t* rows, std::int64_t count,
                   double* result) const override {
        for (std::int64_t i = 0; i < count; ++i) {
            if (metric_ == Metric::cosine)
                result[i] =
                    finished_cosine(merged<Squares>(query, rows[i], unit(rows[i])), query, rows[i]);
            else if (metric_ == Metric::manhattan)
                result[i] = finished(merged<Magnitudes>(query, rows[i], Unit()));
            else
                result[i] = finished(merged<Squares>(query, rows[i], Unit()));
        }
    }

    bool shares(const Query& query, std::int64_t row) const override {
        const Unit unit = metric_ == Metric::cosine ? this->unit(row) : Unit();
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
    double merged(const Query& query, std::int64_t row, const Unit& unit) const {
        const bool scaled = metric_ == Metric::cosine;
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

}  // namespace

void bind_distances(nb::module_& module) {
    nb::class_<Rows>(module, "Rows", "Vectors and their canonical distances.")
        .def("__len__", &Rows::size)
        .def("pack", &pack_rows, Released(), "chosen"_a.noconvert(), "center"_a.noconvert(),
             "unit"_a, "slack"_a, "tiny"_a, "margins"_a, "factors"_a.noconvert(),
             "errors"_a.noconvert());
    const auto dense = [&module](auto function) {
        module.def("dense_rows", function, "values"_a.noconvert(), "metric"_a,
                   "exponents"_a.noconvert(), "lengths"_a.noconvert());
    };
    dense(&dense_rows<float>);
    dense(&dense_rows<double>);
    module.def("sparse_rows", &sparse_rows, Released(), "starts"_a.noconvert(),
               "columns"_a.noconvert(), "values"_a.noconvert(), "width"_a, "metric"_a,
               "exponents"_a.noconvert(), "lengths"_a.noconvert());
}

}  // namespace nearlabel
