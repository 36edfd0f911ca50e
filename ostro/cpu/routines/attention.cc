// attention and its gradient, with the kernels of attention.h. The kernels need [batch, pos, kv_heads, group,
// head_dim], with one stride for each of these. An operand that has not this form is copied before, a result
// is copied afterwards.
#include "ostro/kernels/attention/attention.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "ostro/base/aligned.h"
#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {
namespace {

using Axes = std::vector<ir::Axis>;

Axes joined(std::initializer_list<Axes> parts) {
  Axes all;
  for (const Axes& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}

// One stride for the row-major space over `axes`, if the view has one.
std::optional<int64_t> single_stride(const compile::View& view, const Axes& axes) {
  int64_t stride = 0, span = 0;
  bool first = true;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].size == 1) continue;
    const int64_t s = view.strides[static_cast<size_t>(view.shape.find(axes[i].name))];
    if (first) {
      stride = s;
      first = false;
    } else if (s != span) {
      return std::nullopt;
    }
    span = s * axes[i].size;
  }
  return stride;
}

// The same value with its axes in another order.
compile::View reordered(const compile::View& view, const Axes& axes) {
  compile::View v = view;
  v.shape.axes = axes;
  v.strides.clear();
  for (const ir::Axis& a : axes)
    v.strides.push_back(view.strides[static_cast<size_t>(view.shape.find(a.name))]);
  return v;
}

// What the axes of the operands mean, and temporary copies.
class Layout {
 public:
  Layout(const OpCall& call, size_t first_mask) : call_(call) {
    const ir::Shape &q = call.in[0].shape(), &k = call.in[1].shape();
    const std::string &query = call.attrs.str("query"), &key = call.attrs.str("key");
    head_dim_ = {q.axes.back()};
    bool before = true;
    for (const ir::Axis& a : q.axes) {
      if (a.name == query) {
        query_ = {a};
        before = false;
      } else if (a.name == head_dim_[0].name) {
        continue;
      } else if (!k.has(a.name)) {
        group_.push_back(a);
      } else {
        // An axis of a mask operand (origin, segments, limits) is a batch axis, wherever it stands.
        bool masked = false;
        for (size_t i = first_mask; i < call.in.size(); ++i)
          masked = masked || (!is_sink(i) && call.in[i].shape().has(a.name));
        (before || masked ? batch_ : kv_).push_back(a);
      }
    }
    key_ = {ir::Axis{key, k.size_of(key)}};
  }

  bool is_sink(size_t operand) const {
    return call_.attrs.i64("sink", 0) != 0 && operand + 1 == call_.in.size();
  }
  int64_t batch() const { return count_of(batch_); }
  const Axes& batch_axes() const { return batch_; }
  const Axes& query_axis() const { return query_; }
  const Axes& key_axis() const { return key_; }
  Axes head_axes() const { return joined({kv_, group_}); }

  void fill(kernels::AttentionShape& s) const {
    s.batch = batch();
    s.pos = query_[0].size;
    s.key_pos = key_[0].size;
    s.kv_heads = count_of(kv_);
    s.group = count_of(group_);
    s.head_dim = head_dim_[0].size;
  }

  // The value in the form that the kernel reads; a copy when its strides do not fit.
  const void* query_side(const Array& a, kernels::QueryStrides& strides) {
    if (query_strides(*a.view, strides)) return a.data;
    const Array copy = temporary(a, joined({batch_, query_, kv_, group_, head_dim_}));
    copy_in(a, copy);
    query_strides(*copy.view, strides);
    return copy.data;
  }
  const void* key_side(const Array& a, kernels::KeyStrides& strides) {
    if (key_strides(*a.view, strides)) return a.data;
    const Array copy = temporary(a, joined({batch_, key_, kv_, head_dim_}));
    copy_in(a, copy);
    key_strides(*copy.view, strides);
    return copy.data;
  }
  // Where the kernel writes a value; finish() copies it to its place.
  void* query_result(const Array& a, kernels::QueryStrides& strides) {
    if (query_strides(*a.view, strides)) return a.data;
    const Array copy = temporary(a, joined({batch_, query_, kv_, group_, head_dim_}));
    query_strides(*copy.view, strides);
    pending_.push_back({copy, a});
    return copy.data;
  }
  void* key_result(const Array& a, kernels::KeyStrides& strides) {
    if (key_strides(*a.view, strides)) return a.data;
    const Array copy = temporary(a, joined({batch_, key_, kv_, head_dim_}));
    key_strides(*copy.view, strides);
    pending_.push_back({copy, a});
    return copy.data;
  }
  // m and r are dense over [batch, pos, kv_heads, group].
  float* row_values(const Array& a, bool result) {
    const Axes axes = joined({batch_, query_, kv_, group_});
    if (reordered(*a.view, axes).dense()) return a.as<float>();
    const Array copy = temporary(a, axes);
    if (result)
      pending_.push_back({copy, a});
    else
      copy_in(a, copy);
    return copy.as<float>();
  }
  void finish() {
    for (const auto& [copy, place] : pending_) {
      const compile::View to = reordered(*place.view, copy.shape().axes);
      copy_view(copy, Array{&to, place.data}, call_.pool);
    }
  }

 private:
  bool query_strides(const compile::View& v, kernels::QueryStrides& s) const {
    const auto b = single_stride(v, batch_), kv = single_stride(v, kv_), g = single_stride(v, group_),
               p = single_stride(v, query_), d = single_stride(v, head_dim_);
    if (!b || !kv || !g || !p || (*d != 1 && head_dim_[0].size != 1)) return false;
    s = {*b, *p, *kv, *g};
    return true;
  }
  bool key_strides(const compile::View& v, kernels::KeyStrides& s) const {
    const auto b = single_stride(v, batch_), kv = single_stride(v, kv_), p = single_stride(v, key_),
               d = single_stride(v, head_dim_);
    if (!b || !kv || !p || (*d != 1 && head_dim_[0].size != 1)) return false;
    s = {*b, *p, *kv};
    return true;
  }
  Array temporary(const Array& like, const Axes& axes) {
    memory_.push_back(allocate_aligned(static_cast<size_t>(like.shape().bytes())));
    views_.push_back(compile::View::whole(-1, ir::Shape{like.dtype(), axes}));
    return {&views_.back(), reinterpret_cast<char*>(memory_.back().get())};
  }
  void copy_in(const Array& a, const Array& copy) {
    const compile::View from = reordered(*a.view, copy.shape().axes);
    copy_view(Array{&from, a.data}, copy, call_.pool);
  }

  const OpCall& call_;
  Axes batch_, query_, key_, kv_, group_, head_dim_;
  std::vector<AlignedBytes> memory_;
  std::deque<compile::View> views_;
  std::vector<std::pair<Array, Array>> pending_;
};

// Elements of a small integer operand over `axes`, as T.
template <typename T>
std::vector<T> expanded(const Array& a, const Axes& axes) {
  std::vector<T> out;
  for (int64_t at : offsets_over(axes, *a.view))
    out.push_back(a.dtype() == ir::DType::i64       ? static_cast<T>(a.as<int64_t>()[at])
                  : a.dtype() == ir::DType::boolean ? static_cast<T>(a.as<uint8_t>()[at])
                                                    : static_cast<T>(a.as<int32_t>()[at]));
  return out;
}

// The mask operands, whose axes the shape rule has checked, in the form the kernels want; owns the arrays
// that the shape points to.
struct Masks {
  std::vector<int64_t> origin;
  std::vector<int32_t> query_segments, key_segments, prefix, limit;
  std::vector<uint8_t> visible;
  std::vector<float> sink;

  void fill(const OpCall& call, const Layout& layout, size_t next, kernels::AttentionShape& s) {
    const auto& attrs = call.attrs;
    s.type = call.in[0].dtype() == ir::DType::bf16 ? machine::FloatType::kBf16 : machine::FloatType::kF32;
    s.integers = attrs.i64("int8_slices", 0) != 0;
    s.scale = static_cast<float>(attrs.f64("scale"));
    s.soft_cap = static_cast<float>(attrs.f64("soft_cap", 0.0));
    s.mask.causal = attrs.i64("causal", 0) != 0;
    s.mask.window = attrs.i64("window", 0);
    const Axes& batch = layout.batch_axes();
    origin = expanded<int64_t>(call.in[next++], batch);
    s.query_origin = origin.data();
    if (attrs.i64("segments", 0) != 0) {
      query_segments = expanded<int32_t>(call.in[next++], joined({batch, layout.query_axis()}));
      key_segments = expanded<int32_t>(call.in[next++], joined({batch, layout.key_axis()}));
      s.mask.query_segments = query_segments.data();
      s.mask.key_segments = key_segments.data();
      s.mask.query_segment_stride = s.pos;
      s.mask.key_segment_stride = s.key_pos;
    }
    if (attrs.i64("prefix", 0) != 0) {
      prefix = expanded<int32_t>(call.in[next++], batch);
      s.mask.prefix_length = prefix.data();
    }
    if (attrs.i64("key_limit", 0) != 0) {
      limit = expanded<int32_t>(call.in[next++], batch);
      s.mask.key_length = limit.data();
    }
    if (attrs.i64("visible", 0) != 0) {
      const Axes axes = joined({batch, layout.query_axis(), layout.key_axis()});
      visible = expanded<uint8_t>(call.in[next++], axes);
      s.mask.visible = visible.data();
    }
    if (attrs.i64("sink", 0) != 0) {
      const Array& a = call.in[next];
      for (int64_t at : offsets_over(layout.head_axes(), *a.view)) sink.push_back(a.as<float>()[at]);
      s.sink = sink.data();
    }
  }
};

}  // namespace

Status run_attention(const OpCall& call) {
  Layout layout(call, 3);
  Masks masks;
  kernels::AttentionForward f;
  layout.fill(f.shape);
  masks.fill(call, layout, 3, f.shape);
  if (call.out[0].count() == 0) return Status();
  f.q = layout.query_side(call.in[0], f.q_strides);
  f.k = layout.key_side(call.in[1], f.k_strides);
  f.v = layout.key_side(call.in[2], f.v_strides);
  f.out = layout.query_result(call.out[0], f.out_strides);
  f.out_type = f.shape.type;
  f.m = layout.row_values(call.out[1], true);
  f.r = layout.row_values(call.out[2], true);
  kernels::attention_forward(f, call.isa, call.pool);
  layout.finish();
  return Status();
}

Status run_attention_grad(const OpCall& call) {
  Layout layout(call, 7);
  Masks masks;
  kernels::AttentionBackward b;
  layout.fill(b.shape);
  masks.fill(call, layout, 7, b.shape);
  b.q = layout.query_side(call.in[0], b.q_strides);
  b.k = layout.key_side(call.in[1], b.k_strides);
  b.v = layout.key_side(call.in[2], b.v_strides);
  b.out = layout.query_side(call.in[3], b.out_strides);
  b.out_type = b.shape.type;
  b.m = layout.row_values(call.in[4], false);
  b.r = layout.row_values(call.in[5], false);
  b.dout = layout.query_side(call.in[6], b.dout_strides);
  b.dq = layout.query_result(call.out[0], b.dq_strides);
  b.dk = layout.key_result(call.out[1], b.dk_strides);
  b.dv = layout.key_result(call.out[2], b.dv_strides);
  b.partial = call.attrs.i64("partial", 0) != 0;
  std::vector<float> dsink(masks.sink.size());
  if (!dsink.empty()) b.dsink = dsink.data();
  const ir::Axis& query = layout.query_axis()[0];
  const std::vector<int64_t> ends =
      numerics::leaf_ends(query.name, query.size, call.leaves.count(query.name));
  if (ends.size() > 1) b.query_leaf_ends = ends;
  kernels::attention_backward(b, call.isa, call.pool);
  layout.finish();
  if (!dsink.empty()) {
    const std::vector<int64_t> at = offsets_over(layout.head_axes(), *call.out[3].view);
    for (size_t i = 0; i < at.size(); ++i) call.out[3].as<float>()[at[i]] = dsink[i];
  }
  return Status();
}

}  // namespace ostro::cpu
