// paged_write, paged_attention: a cache of keys and values in pages, with the kernels of paged.h.
#include <cstring>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/kernels/attention/paged/paged.h"
#include "ostro/runtime/pages.h"

namespace ostro::cpu {
namespace {

using ir::kPageSlots;

// The stride of an axis, 0 where the view has not this axis.
int64_t stride_of(const compile::View& view, const std::string& axis) {
  const int64_t i = view.shape.find(axis);
  return i < 0 ? 0 : view.strides[static_cast<size_t>(i)];
}

// Copies of rows to their places: T has the size of an element.
template <class T>
void write_rows(const OpCall& call) {
  const Array &rows = call.in[1], &out = call.out[0];
  const std::string& row = call.attrs.str("row");
  const int32_t* place = call.in[2].as<int32_t>();
  const int64_t page = stride_of(*out.view, call.attrs.str("page")),
                slot = stride_of(*out.view, call.attrs.str("slot")), step = stride_of(*rows.view, row);
  const std::vector<ir::Axis> of_row = axes_without(rows.shape(), {row});
  const std::vector<int64_t> from = offsets_over(of_row, *rows.view), to = offsets_over(of_row, *out.view);
  call.pool.parallel_for(
      rows.shape().size_of(row),
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          if (place[r] < 0) continue;
          const T* source = rows.as<const T>() + r * step;
          T* target = out.as<T>() + place[r] / kPageSlots * page + place[r] % kPageSlots * slot;
          for (size_t i = 0; i < to.size(); ++i) target[to[i]] = source[from[i]];
        }
      },
      8);
}

// q or the result, with one stride for rows, heads of keys and heads that share keys.
kernels::QueryStrides query_strides(const compile::View& view, const std::string& row,
                                    const runtime::PagedHeads& heads) {
  return {0, stride_of(view, row), stride_of(view, heads.kv.name), stride_of(view, heads.group.name)};
}

}  // namespace

// The pool is copied only where the plan has not given the result its memory.
Status run_paged_write(const OpCall& call) {
  const Array &pool = call.in[0], &place = call.in[2], &out = call.out[0];
  const int64_t places = pool.shape().size_of(call.attrs.str("page")) * kPageSlots;
  RETURN_IF_ERROR(
      runtime::check_places({place.as<const int32_t>(), static_cast<size_t>(place.count())}, places));
  if (pool.data != out.data) std::memcpy(out.data, pool.data, static_cast<size_t>(pool.shape().bytes()));
  if (ir::dtype_size(pool.dtype()) == 4)
    write_rows<uint32_t>(call);
  else
    write_rows<uint16_t>(call);
  return Status();
}

Status run_paged_attention(const OpCall& call) {
  const auto& attrs = call.attrs;
  const Array &q = call.in[0], &keys = call.in[1], &values = call.in[2];
  const std::string &row = attrs.str("row"), &dim = attrs.str("head_dim"), &page = attrs.str("page"),
                    &slot = attrs.str("slot");
  const runtime::PagedHeads heads = runtime::paged_heads(q.shape(), keys.shape(), row, dim);

  kernels::PagedAttention p;
  p.rows = q.shape().size_of(row);
  p.kv_heads = heads.kv.size;
  p.group = heads.group.size;
  p.key_dim = q.shape().size_of(dim);
  p.value_dim = values.shape().size_of(dim);
  p.pages = keys.shape().size_of(page);
  p.entries = call.in[3].shape().size_of(attrs.str("entry"));
  p.type = q.dtype() == ir::DType::bf16 ? machine::FloatType::kBf16 : machine::FloatType::kF32;
  p.integers = attrs.i64("int8_slices", 0) != 0;
  p.scale = static_cast<float>(attrs.f64("scale"));
  p.soft_cap = static_cast<float>(attrs.f64("soft_cap", 0.0));
  p.window = attrs.i64("window", 0);
  std::vector<ir::Axis> head_axes;
  for (const ir::Axis& axis : {heads.kv, heads.group})
    if (!axis.name.empty()) head_axes.push_back(axis);
  std::vector<float> sink;
  if (attrs.i64("sink", 0) != 0) {
    for (int64_t i : offsets_over(head_axes, *call.in[5].view)) sink.push_back(call.in[5].as<float>()[i]);
    p.sink = sink.data();
  }
  // Tables and positions are small; a view of them is copied.
  std::vector<int32_t> table, position;
  for (int64_t i : offsets_over(call.in[3].shape().axes, *call.in[3].view))
    table.push_back(call.in[3].as<int32_t>()[i]);
  for (int64_t i : offsets_over(call.in[4].shape().axes, *call.in[4].view))
    position.push_back(call.in[4].as<int32_t>()[i]);
  p.table = table.data();
  p.position = position.data();
  const auto pool_strides = [&](const compile::View& v) {
    return kernels::PoolStrides{stride_of(v, page), stride_of(v, slot), stride_of(v, heads.kv.name),
                                stride_of(v, dim)};
  };
  p.key_pool = keys.data;
  p.value_pool = values.data;
  p.key_strides = pool_strides(*keys.view);
  p.value_strides = pool_strides(*values.view);
  if (call.out[0].count() == 0) return Status();
  RETURN_IF_ERROR(runtime::check_pages({p.rows, p.entries, p.pages, p.window, p.table, p.position}));

  // head_dim of q must be contiguous.
  AlignedBytes copy;
  compile::View dense = compile::View::whole(-1, q.shape());
  const bool as_it_lies = stride_of(*q.view, dim) == 1 || p.key_dim == 1;
  if (!as_it_lies) {
    copy = allocate_aligned(static_cast<size_t>(q.shape().bytes()));
    copy_view(q, {&dense, reinterpret_cast<char*>(copy.get())}, call.pool);
  }
  p.q = as_it_lies ? q.data : reinterpret_cast<const char*>(copy.get());
  p.q_strides = query_strides(as_it_lies ? *q.view : dense, row, heads);
  p.out = call.out[0].data;
  p.out_strides = query_strides(*call.out[0].view, row, heads);
  kernels::paged_attention(p, call.isa, call.pool);
  return Status();
}

}  // namespace ostro::cpu
