#include <algorithm>
#include <vector>

#include "ostro/cuda/steps/fast_routines.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/numerics/functions.h"
#include "ostro/runtime/pages.h"

namespace ostro::cuda {
namespace {

using ir::kPageSlots;

constexpr const char* kPaged = "attention/paged.cu";

// The elements of a small i32 array on the host, in the order of its axes. Waits for what was begun before. A
// view may run through memory in any order.
Result<std::vector<int32_t>> on_host(const StepCall& call, const DeviceArray& a) {
  const std::vector<int64_t> at = compile::offsets_over(a.shape().axes, *a.view);
  if (at.empty()) return std::vector<int32_t>();
  const auto [low, high] = std::minmax_element(at.begin(), at.end());
  std::vector<int32_t> held(static_cast<size_t>(*high - *low + 1));
  RETURN_IF_ERROR(call.device().read(a.at + *low * static_cast<int64_t>(sizeof(int32_t)),
                                     std::as_writable_bytes(std::span(held))));
  if (held.size() == at.size() && std::is_sorted(at.begin(), at.end())) return held;
  std::vector<int32_t> out;
  for (const int64_t i : at) out.push_back(held[static_cast<size_t>(i - *low)]);
  return out;
}

}  // namespace

// The pool is copied only where the plan has not given the result its memory.
Status run_paged_write(const StepCall& call) {
  const DeviceArray &pool = call.in[0], &rows = call.in[1], &place = call.in[2], &out = call.out[0];
  const auto& attrs = call.attrs();
  const std::string &row = attrs.str("row"), &page = attrs.str("page"), &slot = attrs.str("slot");
  ASSIGN_OR_RETURN(const std::vector<int32_t> places, on_host(call, place));
  RETURN_IF_ERROR(runtime::check_places(places, pool.shape().size_of(page) * kPageSlots));
  if (pool.at != out.at) RETURN_IF_ERROR(call.device().copy(out.at, pool.at, pool.shape().bytes()));
  const std::vector<ir::Axis> rest = axes_without(rows.shape(), {row});
  args::PagedWriteArgs a = {};
  a.from = rows.at.at;
  a.to = out.at.at;
  a.place = place.at.at;
  a.element_bytes = ir::dtype_size(pool.dtype());
  a.rows = rows.shape().size_of(row);
  a.width = count_of(rest);
  a.row_stride = stride_along(rows, row);
  a.page_stride = stride_along(out, page);
  a.slot_stride = stride_along(out, slot);
  a.rest_in_rows = axes_over(rest, *rows.view);
  a.rest_in_pool = axes_over(rest, *out.view);
  return call.launch(kPaged, "paged_write", a.rows * a.width, a);
}

Status run_paged_attention(const StepCall& call) {
  const DeviceArray &q = call.in[0], &keys = call.in[1], &values = call.in[2], &out = call.out[0];
  const auto& attrs = call.attrs();
  const std::string &row = attrs.str("row"), &dim = attrs.str("head_dim"), &page = attrs.str("page"),
                    &slot = attrs.str("slot");
  if (out.count() == 0) return Status();
  const runtime::PagedHeads heads = runtime::paged_heads(q.shape(), keys.shape(), row, dim);
  runtime::RowPages pages;
  pages.rows = q.shape().size_of(row);
  pages.entries = call.in[3].shape().size_of(attrs.str("entry"));
  pages.pages = keys.shape().size_of(page);
  pages.window = attrs.i64("window", 0);
  ASSIGN_OR_RETURN(const std::vector<int32_t> table, on_host(call, call.in[3]));
  ASSIGN_OR_RETURN(const std::vector<int32_t> position, on_host(call, call.in[4]));
  pages.table = table.data();
  pages.position = position.data();
  RETURN_IF_ERROR(runtime::check_pages(pages));

  const auto row_place = [&](const DeviceArray& x) {
    return args::RowPlace{x.at.at, stride_along(x, row), stride_along(x, heads.kv.name),
                          stride_along(x, heads.group.name), stride_along(x, dim)};
  };
  const auto pool_place = [&](const DeviceArray& x) {
    return args::PoolPlace{x.at.at, stride_along(x, page), stride_along(x, slot),
                           stride_along(x, heads.kv.name), stride_along(x, dim)};
  };
  args::PagedArgs a = {};
  a.q = row_place(q);
  a.out = row_place(out);
  if (attrs.i64("sink", 0) != 0) a.sink = row_place(call.in[5]);
  a.keys = pool_place(keys);
  a.values = pool_place(values);
  a.table = call.in[3].at.at;
  a.position = call.in[4].at.at;
  a.table_row = stride_along(call.in[3], row);
  a.table_entry = stride_along(call.in[3], attrs.str("entry"));
  a.position_row = stride_along(call.in[4], row);
  a.type = type_number(q.dtype());
  a.group = heads.group.size;
  a.key_dim = q.shape().size_of(dim);
  a.value_dim = values.shape().size_of(dim);
  a.window = pages.window;
  a.scale = static_cast<float>(attrs.f64("scale"));
  a.soft_cap = static_cast<float>(attrs.f64("soft_cap", 0.0));
  a.kappa = a.soft_cap > 0 ? numerics::kLog2e : numerics::attention_kappa(a.scale);
  return call.launch(kPaged, attrs.i64("int8_slices", 0) != 0 ? "paged_attention_sliced" : "paged_attention",
                     gpu::LaunchShape{.x = pages.rows, .y = heads.kv.size * heads.group.size, .threads = 128},
                     a);
}

}  // namespace ostro::cuda
