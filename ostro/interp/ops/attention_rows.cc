#include "ostro/interp/ops/attention_rows.h"

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/numerics/functions.h"

namespace ostro::interp {
namespace {

// A value of an operand for every row: the operand's axes are among the rows' axes, others repeat it.
std::vector<int64_t> per_row(const Buffer& operand, const std::vector<Axis>& rows) {
  const std::vector<int64_t> values = integers(operand);
  std::vector<int64_t> result;
  for (int64_t at : offsets(rows, operand.shape())) result.push_back(values[at]);
  return result;
}

}  // namespace

AttentionRows::AttentionRows(const Call& call, size_t first_mask) {
  const auto& attrs = call.op.attrs;
  const Shape &q_shape = call.shape(0), &k_shape = call.shape(1);
  const std::string& query = attrs.str("query");
  const std::string& key = attrs.str("key");
  axes = axes_not_in(q_shape, {attrs.str("head_dim")});
  keys = k_shape.size_of(key);
  head_dim = q_shape.axes.back().size;
  key_stride = stride_of(k_shape, key);
  bf16 = q_shape.dtype == DType::bf16;
  scale = static_cast<float>(attrs.f64("scale"));
  soft_cap = static_cast<float>(attrs.f64("soft_cap", 0.0));
  kappa = soft_cap != 0.0f ? numerics::kLog2e : numerics::attention_kappa(scale);
  causal_ = attrs.i64("causal", 0) != 0;
  window_ = attrs.i64("window", 0);
  q_at = offsets(axes, q_shape);
  k_at = offsets(axes, k_shape);
  q = elements<float>(call.in[0]);
  k = elements<float>(call.in[1]);
  v = elements<float>(call.in[2]);
  sliced = attrs.i64("int8_slices", 0) != 0;
  if (sliced) {
    q_slices = slices_of(q);
    k_slices = slices_of(k);
    v_slices = slices_of(v);
  }

  size_t next = first_mask;
  position = per_row(call.in[next++], axes);
  const std::vector<int64_t> query_index =
      offsets(axes, Shape{DType::i32, {{query, q_shape.size_of(query)}}});
  for (size_t row = 0; row < position.size(); ++row) position[row] += query_index[row];
  if (attrs.i64("segments", 0) != 0) {
    q_segment_ = per_row(call.in[next++], axes);
    const Buffer& k_segments = call.in[next++];
    k_segment_ = integers(k_segments);
    k_segment_at_ = offsets(axes, k_segments.shape());
    k_segment_stride_ = stride_of(k_segments.shape(), key);
  }
  if (attrs.i64("prefix", 0) != 0) prefix_ = per_row(call.in[next++], axes);
  if (attrs.i64("key_limit", 0) != 0) key_limit_ = per_row(call.in[next++], axes);
  if (attrs.i64("visible", 0) != 0) {
    const Buffer& visible = call.in[next++];
    visible_ = integers(visible);
    visible_at_ = offsets(axes, visible.shape());
    visible_stride_ = stride_of(visible.shape(), key);
  }
  if (attrs.i64("sink", 0) != 0) {
    const std::vector<float> values = elements<float>(call.in[next]);
    for (int64_t at : offsets(axes, call.shape(next))) sink_.push_back(values[at]);
  }
}

std::vector<numerics::SlicedRow> AttentionRows::slices_of(const std::vector<float>& values) const {
  std::vector<numerics::SlicedRow> rows;
  for (size_t at = 0; at < values.size(); at += static_cast<size_t>(head_dim))
    rows.push_back(
        numerics::slice_row(head_dim, [&](int64_t d) { return values[at + static_cast<size_t>(d)]; }));
  return rows;
}

float AttentionRows::start_max(size_t row) const {
  if (!has_sink()) return kStartMax;
  return soft_cap != 0.0f ? sink_[row] : sink_[row] / scale;
}

bool AttentionRows::sees(size_t row, int64_t key) const {
  const bool in_prefix = !prefix_.empty() && key < prefix_[row];
  if (causal_ && key > position[row] && !in_prefix) return false;
  if (window_ != 0 && key <= position[row] - window_) return false;
  if (!key_limit_.empty() && key >= key_limit_[row]) return false;
  if (!visible_.empty() && visible_[visible_at_[row] + key * visible_stride_] == 0) return false;
  return k_segment_.empty() || k_segment_[k_segment_at_[row] + key * k_segment_stride_] == q_segment_[row];
}

float AttentionRows::score(size_t row, int64_t key, float* tanh_value) const {
  const float* q_row = q.data() + q_at[row];
  const float* k_row = k.data() + k_at[row] + key * key_stride;
  const float s =
      sliced ? numerics::dot_sliced(k_slices[key_index(row, key)], q_slices[query_index(row)])
             : contract(head_dim, [&](int64_t d) { return q_row[d]; }, [&](int64_t d) { return k_row[d]; });
  if (soft_cap == 0.0f) return s;
  const float t = numerics::tanh_f32((s * scale) / soft_cap);
  if (tanh_value != nullptr) *tanh_value = t;
  return soft_cap * t;
}

}  // namespace ostro::interp
