// Bounds from distances that may be off by rounding errors only; see `Rows::rough`.
#pragma once

#include "cpu.h"
#include "distances.h"

#include <cmath>
#include <cstdint>

namespace nearlabel {

// On the scale of the products.
class Refinement {
public:
    Refinement(const Rows& base, double scale)
        : share_(base.rough_share()), tiny_(base.rough_tiny()), scale_(scale) {}

    // Writes lower bounds. A rough distance that has overflowed may be anything: its lower bound is
    // -LARGEST_REFINED, and its upper bound LARGEST_REFINED.
    void bound_from_below(const double* rough, std::int64_t count, float* lower) const {
        up_to_avx2<below>()(*this, rough, count, lower);
    }

    // Writes an upper bound for each lower bound.
    void bound_from_above(const float* lower, std::int64_t count, float* upper) const {
        up_to_avx2<above>()(*this, lower, count, upper);
    }

private:
    static constexpr double ROUNDING = 1.0 / (1 << 22);  // covers rounding to float, twice
    static constexpr float TINY = 1e-37f;                // covers underflow to zero
    static constexpr float LARGEST_REFINED = 1e37f;      // no distance is so large on this scale

    NL_INLINE static void below(const Refinement& self, const double* rough, std::int64_t count,
                                float* lower) {
        const double kept = 1 - self.share_, tiny = self.tiny_, scale = self.scale_;
        for (std::int64_t i = 0; i < count; ++i) {
            const double bound = (rough[i] * kept - tiny) * scale;
            const double magnitude = std::fabs(bound);
            const float rounded = static_cast<float>(bound - magnitude * ROUNDING) - TINY;
            lower[i] = magnitude < LARGEST_REFINED ? rounded : -LARGEST_REFINED;
        }
    }

    NL_INLINE static void above(const Refinement& self, const float* lower, std::int64_t count,
                                float* upper) {
        const double tiny = 2 * self.tiny_ * self.scale_ + 4 * double{TINY};
        const double factor = 1 + 4 * self.share_ + 4 * ROUNDING;
        for (std::int64_t i = 0; i < count; ++i) {
            const float rounded = static_cast<float>((lower[i] + tiny) * factor) + TINY;
            upper[i] = lower[i] == -LARGEST_REFINED ? LARGEST_REFINED : rounded;
        }
    }

    double share_, tiny_, scale_;
};

}  // namespace nearlabel
