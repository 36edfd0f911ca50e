// RowsByExpert, sort_by_expert: the rows that chose each expert, for products that run expert by expert. Pure
// functions of checked operands; there are no errors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {

// Expert e has [begin[e], begin[e + 1]) of `rows`; after the last begin come the rows of no expert.
struct RowsByExpert {
  std::vector<int64_t> rows, begin;

  std::span<const int64_t> of(int64_t e) const {
    const auto i = static_cast<size_t>(e);
    return std::span(rows).subspan(static_cast<size_t>(begin[i]),
                                   static_cast<size_t>(begin[i + 1] - begin[i]));
  }
  std::span<const int64_t> of_none() const {
    return std::span(rows).subspan(static_cast<size_t>(begin.back()));
  }
};

// Sorts the elements of `expert`, i32, by their index from `origin` on, of `experts` indices; a row is the
// place of an element in row-major order. Rows come in the order of `order` (ascending when it is empty);
// equal ones keep it.
RowsByExpert sort_by_expert(const Array& expert, int64_t experts, int64_t origin,
                            const std::vector<int64_t>& order);

// The offsets at these rows.
std::vector<int64_t> picked(const std::vector<int64_t>& offsets, std::span<const int64_t> rows);

}  // namespace ostro::cpu
