// Selections among a few hundred values, by counting: without branches, which would be
// mispredicted.
#pragma once

#include <cstdint>

namespace nearlabel {

// A limit with at least k of the values within it and, usually, at most k + k / 16.
float limit_of(const float* values, std::int64_t size, std::int64_t k);

// Writes how many of the values are smaller than each.
void ranks_of(const double* values, std::int64_t size, std::int32_t* ranks);

}  // namespace nearlabel
