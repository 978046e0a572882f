// Pairs of a query and a row that bounds leave open, until a better bound decides.
//
// Masks have a bit for each pair that is open. Testing bit after bit would cost a wrongly predicted
// branch per word; so words are expanded to row numbers without branches where the processor can.
#pragma once

#include "distances.h"

#include <cstdint>
#include <vector>

namespace nearlabel {

constexpr std::int64_t WORD = 64;  // pairs of a mask in one word

class OpenPairs {
public:
    // Adds the rows from `first` on whose bits are set in some words, all of the same query.
    void add(std::int64_t query, std::int64_t first, const std::uint64_t* words,
             std::int64_t count);
    void clear();

    const std::vector<Run>& runs() const { return runs_; }
    const std::int32_t* rows() const { return rows_.data(); }
    std::int64_t size() const { return size_; }

private:
    std::int64_t size_ = 0;
    std::vector<std::int32_t> rows_;  // with room for more
    std::vector<Run> runs_;
};

// Sets the bits of the values that are within a limit, in (width + 63) / 64 words.
void mark_within(const float* values, std::int64_t width, float limit, std::uint64_t* words);

}  // namespace nearlabel
