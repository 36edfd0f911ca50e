// The working memory of exchange_leaves. It is planned like a result of the step, behind the real one, so
// that reports of memory count it.
#pragma once

#include <cstdint>

#include "ostro/ir/program/attrs.h"
#include "ostro/ir/program/shape.h"

namespace ostro::compile {

// In elements.
struct ExchangeScratch {
  int64_t received = 0;  // this worker's part of every leaf of the round
  // x, part by part. 0: the parts of x lie together as they are, because no axis of more than one index comes
  // before the one that is cut; they are sent from there.
  int64_t packed = 0;
};

inline ExchangeScratch exchange_scratch(const ir::Attrs& attrs, const ir::Shape& x, const ir::Shape& out) {
  const auto parts = static_cast<int64_t>(attrs.ints("counts").size());
  int64_t leaves = 0, before = 1;
  for (const int64_t n : attrs.ints("counts")) leaves += n;
  if (const int64_t at = x.find(attrs.str("axis", "")); at > 0)
    for (int64_t i = 0; i < at; ++i) before *= x.axes[static_cast<size_t>(i)].size;
  return {out.count() / parts * leaves, before == 1 ? 0 : x.count()};
}

}  // namespace ostro::compile
