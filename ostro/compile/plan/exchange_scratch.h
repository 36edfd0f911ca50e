// ExchangeScratch: the working memory that a collective needs, from its op and shapes.
//
// It is planned like results of the step, after the real one, so that reports of memory count it. A pure
// function.
#pragma once

#include <cstdint>

#include "ostro/ir/program/program.h"
#include "ostro/ir/rules/collective_parts.h"

namespace ostro::compile {

// Elements.
struct ExchangeScratch {
  // The elements that come from other workers and cannot be received at their final place. For
  // exchange_leaves: this worker's part of every leaf of the round.
  int64_t received = 0;
  // A copy of x, part by part. 0: each part of x is one run of memory, because no axis of more than one index
  // comes before the one that is cut; the parts are sent from x.
  int64_t packed = 0;
};

inline ExchangeScratch exchange_scratch(const ir::Op& op, const ir::Shape& x, const ir::Shape& out) {
  int64_t before = 1;  // indices of the axes before the one that is cut
  if (const int64_t at = x.find(op.attrs.str("axis", "")); at > 0)
    for (int64_t i = 0; i < at; ++i) before *= x.axes[static_cast<size_t>(i)].size;
  switch (op.kind) {
    case ir::OpKind::shard_slice: return {};
    case ir::OpKind::all_gather: return {before == 1 ? 0 : out.count() - x.count(), 0};
    case ir::OpKind::reduce_scatter_tree: {
      const auto others = static_cast<int64_t>(op.attrs.ints("bounds").size()) - 2;
      return {others * out.count(), before == 1 ? 0 : x.count()};
    }
    case ir::OpKind::exchange_leaves: {
      const auto parts = static_cast<int64_t>(op.attrs.ints("counts").size());
      int64_t leaves = 0;
      for (const int64_t n : op.attrs.ints("counts")) leaves += n;
      return {out.count() / parts * leaves, before == 1 ? 0 : x.count()};
    }
    default: {
      const int64_t workers = op.attrs.i64("workers");
      const int64_t part = ir::reduces_in_parts(x, workers) ? x.count() / workers + 1 : x.count();
      return {(workers - 1) * part, 0};
    }
  }
}

}  // namespace ostro::compile
