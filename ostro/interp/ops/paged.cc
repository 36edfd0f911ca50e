// paged_write, paged_attention: the cache of keys and values in pages (numerics.md N9, "Pages"). Each row of
// paged_attention is an attention of one query over the keys of its pages, gathered in order of position.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/ir/program/attention_limits.h"

namespace ostro::interp {
namespace {

using ir::kPageSlots;

constexpr const char* kKeyAxis = "paged_key";

// Pads each row of head_dim, the last axis, with +0 to `width`.
Buffer widened(const Buffer& x, int64_t width) {
  Shape shape = x.shape();
  const int64_t narrow = shape.axes.back().size;
  shape.axes.back().size = width;
  std::vector<int64_t> from(static_cast<size_t>(shape.count()), -1);
  for (size_t i = 0; i < from.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at % width < narrow) from[i] = at / width * narrow + at % width;
  }
  return pick(x, shape, from);
}

// The keys or values of one row: those of its pages from position `first` to `last`, zeros below.
Result<Buffer> gathered(const Call& call, size_t pool, int64_t row, int64_t first, int64_t last) {
  const Shape& shape = call.shape(pool);
  const auto& attrs = call.op.attrs;
  const std::string &page = attrs.str("page"), &slot = attrs.str("slot"), &dim = attrs.str("head_dim");
  std::vector<Axis> of_key = axes_not_in(shape, {page, slot, dim});
  of_key.push_back({dim, shape.size_of(dim)});
  const std::vector<int64_t> within = offsets(of_key, shape);
  const std::vector<int64_t> table = integers(call.in[3]);
  const std::vector<int64_t> entries =
      offsets({{attrs.str("entry"), call.shape(3).size_of(attrs.str("entry"))}}, call.shape(3));
  const int64_t first_entry = row * stride_of(call.shape(3), attrs.str("row"));
  std::vector<int64_t> from;
  for (int64_t key = 0; key <= last; ++key) {
    const int64_t entry = key / kPageSlots;
    const bool seen = key >= first;
    const int64_t number = entry >= first / kPageSlots
                               ? table[static_cast<size_t>(first_entry + entries[static_cast<size_t>(entry)])]
                               : 0;
    if (number < 0 || number >= shape.size_of(page))
      return invalid_argument(
          fmt::format("paged_attention: entry {} of row {} names page {}, and the pool has pages 0 to {}",
                      entry, row, number, shape.size_of(page) - 1));
    for (const int64_t at : within)
      from.push_back(seen ? number * stride_of(shape, page) + key % kPageSlots * stride_of(shape, slot) + at
                          : -1);
  }
  of_key.insert(of_key.begin(), Axis{kKeyAxis, last + 1});
  return pick(call.in[pool], {shape.dtype, of_key}, from);
}

// Attention of one row: an op of its own over the gathered keys. The result is [1 row, heads, head_dim].
Result<Buffer> attend(const Call& call, int64_t row, int64_t position) {
  const auto& attrs = call.op.attrs;
  const std::string &row_axis = attrs.str("row"), &dim = attrs.str("head_dim");
  const int64_t window = attrs.i64("window", 0);
  const int64_t first = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
  ASSIGN_OR_RETURN(const Buffer k, gathered(call, 1, row, first, position));
  ASSIGN_OR_RETURN(const Buffer v, gathered(call, 2, row, first, position));
  Shape q_shape = call.shape(0);
  q_shape.axes[static_cast<size_t>(q_shape.find(row_axis))].size = 1;
  const Buffer q = pick(call.in[0], q_shape, part(call.shape(0), row_axis, row, 1));
  const int64_t narrow = v.shape().axes.back().size, width = std::max(narrow, q_shape.axes.back().size);

  ir::Op op{OpKind::attention, {}, {}, {}, {}, {}, {}, {}};
  op.attrs = {{"query", row_axis},
              {"key", std::string(kKeyAxis)},
              {"head_dim", dim},
              {"scale", attrs.f64("scale")},
              {"soft_cap", attrs.f64("soft_cap", 0.0)},
              {"causal", int64_t{1}},
              {"window", window},
              {"sink", attrs.i64("sink", 0)},
              {"int8_slices", attrs.i64("int8_slices", 0)}};
  Buffers in{widened(q, width), widened(k, width), widened(v, width),
             make_buffer<int64_t>(ir::scalar(DType::i64), {position})};
  if (attrs.i64("sink", 0) != 0) in.push_back(call.in[5]);
  Shape wide = q_shape;
  wide.axes.back().size = width;
  const Shape saved = wide.without(dim).with_dtype(DType::f32);
  const std::vector<Shape> shapes{wide, saved, saved};
  ASSIGN_OR_RETURN(const Buffers out, run_attention({op, in, shapes, call.leaves, call.context}));
  Shape result = q_shape;
  result.axes.back().size = narrow;
  return pick(out[0], result, part(wide, dim, 0, narrow));
}

}  // namespace

Result<Buffers> run_paged_write(const Call& call) {
  const Shape &pool = call.shape(0), &rows = call.shape(1);
  const auto& attrs = call.op.attrs;
  const std::string& row_axis = attrs.str("row");
  const int64_t places = pool.size_of(attrs.str("page")) * kPageSlots;
  const std::vector<int64_t> place_of = integers(call.in[2]);
  const std::vector<Axis> of_row = axes_not_in(rows, {row_axis});
  const std::vector<int64_t> to = offsets(of_row, pool), from = offsets(of_row, rows);
  std::set<int64_t> taken;
  Buffer out = Buffer::copy_of(pool, call.in[0].bytes().data());
  for (size_t r = 0; r < place_of.size(); ++r) {
    const int64_t p = place_of[r];
    if (p < 0) continue;
    if (p >= places)
      return invalid_argument(
          fmt::format("paged_write: row {} has place {}, and the pool has places 0 to {}", r, p, places - 1));
    if (!taken.insert(p).second)
      return invalid_argument(fmt::format("paged_write: row {} has place {}, as a row before it has", r, p));
    const int64_t start = p / kPageSlots * stride_of(pool, attrs.str("page")) +
                          p % kPageSlots * stride_of(pool, attrs.str("slot"));
    const int64_t size = ir::dtype_size(pool.dtype);
    for (size_t i = 0; i < to.size(); ++i)
      std::memcpy(
          out.mutable_bytes().data() + (start + to[i]) * size,
          call.in[1].bytes().data() + (static_cast<int64_t>(r) * stride_of(rows, row_axis) + from[i]) * size,
          static_cast<size_t>(size));
  }
  return Buffers{out};
}

Result<Buffers> run_paged_attention(const Call& call) {
  const auto& attrs = call.op.attrs;
  const std::string& row_axis = attrs.str("row");
  const std::vector<int64_t> positions = integers(call.in[4]);
  const int64_t held = call.shape(3).size_of(attrs.str("entry")) * kPageSlots;
  Buffer out = Buffer::zeros(call.out[0]);
  for (size_t r = 0; r < positions.size(); ++r) {
    const auto row = static_cast<int64_t>(r);
    if (positions[r] < 0) continue;  // padding
    if (positions[r] >= held)
      return invalid_argument(
          fmt::format("paged_attention: row {} has position {}, and its {} pages hold positions 0 to {}", r,
                      positions[r], held / kPageSlots, held - 1));
    ASSIGN_OR_RETURN(const Buffer one, attend(call, row, positions[r]));
    place(out, one, part(call.out[0], row_axis, row, 1));
  }
  return Buffers{out};
}

}  // namespace ostro::interp
