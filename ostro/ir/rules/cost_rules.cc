// Arithmetic and traffic of one op, for --dry_run, plans and MFU.
#include <algorithm>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/program/op_table.h"

namespace ostro::ir {
namespace {

Cost block_cost(const Block& block) {
  Cost total;
  for (const Op& op : block.ops) {
    std::vector<Shape> in, out;
    for (ValueId v : op.operands) in.push_back(block.shape(v));
    for (ValueId v : op.results) out.push_back(block.shape(v));
    const Cost c = op_cost(op, in, out);
    total.flops += c.flops;
    total.bytes += c.bytes;
  }
  return total;
}

// Query-key pairs an attention visits; causal counts half, a window the band below the diagonal.
double attention_pairs(const Op& op, std::span<const Shape> in) {
  const double keys = static_cast<double>(in[1].size_of(op.attrs.str("key")));
  const double rows = static_cast<double>(in[0].count() / in[0].axes.back().size);
  if (op.attrs.i64("causal", 0) == 0 || keys == 0) return rows * keys;
  const double window = static_cast<double>(op.attrs.i64("window", 0));
  const double band = window > 0 && window < keys ? window : keys;
  return rows * band * (1 - 0.5 * band / keys);
}

}  // namespace

Cost op_cost(const Op& op, std::span<const Shape> in, std::span<const Shape> out) {
  Cost c;
  double out_count = 0;
  for (const Shape& s : in) c.bytes += static_cast<double>(s.bytes());
  for (const Shape& s : out) {
    c.bytes += static_cast<double>(s.bytes());
    out_count += static_cast<double>(s.count());
  }
  switch (op.kind) {
    case OpKind::scan: {
      c = block_cost(op.regions[0]);
      c.flops *= static_cast<double>(op.attrs.i64("length"));
      c.bytes *= static_cast<double>(op.attrs.i64("length"));
      return c;
    }
    case OpKind::cond: {
      const Cost a = block_cost(op.regions[0]), b = block_cost(op.regions[1]);
      return a.flops > b.flops ? a : b;
    }
    case OpKind::custom: return block_cost(op.regions[0]);
    case OpKind::dot:
    case OpKind::dot_int8: {
      double k = 1;
      for (const auto& axis : op.attrs.strs("over")) k *= static_cast<double>(in[0].size_of(axis));
      c.flops = 2 * out_count * k;
      return c;
    }
    case OpKind::expert_dot_int8:
    case OpKind::expert_dot: {  // every row goes to one expert
      double k = 1;
      for (const auto& axis : op.attrs.strs("over")) k *= static_cast<double>(in[0].size_of(axis));
      c.flops = 2 * out_count * k;
      return c;
    }
    case OpKind::quantize: c.flops = 2 * static_cast<double>(in[0].count()); return c;
    case OpKind::dequantize: c.flops = out_count; return c;
    case OpKind::expert_outer_int8:
    case OpKind::expert_outer: {
      const double experts = static_cast<double>(op.attrs.i64("size"));
      c.flops = experts > 0 ? 2 * static_cast<double>(in[2].count()) * out_count / experts : 0;
      return c;
    }
    case OpKind::attention:
      c.flops = 4 * attention_pairs(op, in) * static_cast<double>(in[0].axes.back().size);
      return c;
    case OpKind::attention_grad:
      c.flops = 10 * attention_pairs(op, in) * static_cast<double>(in[0].axes.back().size);
      return c;
    case OpKind::paged_write:  // in place: of the pool only the rows are touched
      c.bytes += static_cast<double>(in[1].bytes()) - static_cast<double>(in[0].bytes() + out[0].bytes());
      return c;
    case OpKind::paged_attention: {  // as if every row saw all pages of its table
      const double page = static_cast<double>(in[0].count() / in[0].axes.back().size * kPageSlots) *
                          static_cast<double>(in[3].size_of(op.attrs.str("entry")));
      c.flops =
          2 * page * static_cast<double>(in[0].axes.back().size + in[2].size_of(op.attrs.str("head_dim")));
      for (size_t pool : {1, 2}) {
        const double of_page =
            static_cast<double>(in[pool].bytes()) /
            static_cast<double>(std::max<int64_t>(1, in[pool].size_of(op.attrs.str("page"))));
        c.bytes += of_page * static_cast<double>(in[3].count()) - static_cast<double>(in[pool].bytes());
      }
      return c;
    }
    case OpKind::sum:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::argmax:
    case OpKind::tree_sum:
    case OpKind::box_sumsq:
    case OpKind::fingerprint:
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_sum:
    case OpKind::cross_entropy_grad:
    case OpKind::scatter_add: c.flops = static_cast<double>(in[0].count()); return c;
    case OpKind::exchange_leaves: {  // what the peers send is written once and read once
      double leaves = 0;
      for (const int64_t n : op.attrs.ints("counts")) leaves += static_cast<double>(n);
      const double parts = static_cast<double>(op.attrs.ints("counts").size());
      c.flops = parts > 0 ? out_count / parts * (leaves - parts) : 0;
      c.bytes += parts > 0 ? 2 * static_cast<double>(out[0].bytes()) / parts * leaves : 0;
      return c;
    }
    case OpKind::gather:
    case OpKind::dynamic_slice:  // of the table only what is taken is read
      c.bytes += static_cast<double>(out[0].bytes()) - static_cast<double>(in[0].bytes());
      return c;
    default:
      if (is_elementwise(op.kind)) c.flops = out_count;
      return c;
  }
}

}  // namespace ostro::ir
