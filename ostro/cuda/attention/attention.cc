#include "ostro/cuda/attention/attention.h"

#include "ostro/numerics/functions.h"
#include "ostro/numerics/leaves.h"

namespace ostro::cuda {
namespace {

constexpr const char* kAttention = "attention/attention.cu";

using Axes = std::vector<ir::Axis>;

// What the axes of the operands mean. An axis of a mask is a batch axis, wherever it stands.
struct AttentionAxes {
  Axes batch, kv, group, heads;
  std::string query, key, head_dim;

  AttentionAxes(const StepCall& call, size_t first_mask) {
    const ir::Shape &q = call.in[0].shape(), &k = call.in[1].shape();
    query = call.attrs().str("query");
    key = call.attrs().str("key");
    head_dim = q.axes.back().name;
    const size_t masks = call.in.size() - (call.attrs().i64("sink", 0) != 0 ? 1 : 0);
    bool before = true;
    for (const ir::Axis& a : q.axes) {
      if (a.name == query) {
        before = false;
      } else if (a.name == head_dim) {
        continue;
      } else if (!k.has(a.name)) {
        group.push_back(a);
      } else {
        bool masked = false;
        for (size_t i = first_mask; i < masks; ++i) masked = masked || call.in[i].shape().has(a.name);
        (before || masked ? batch : kv).push_back(a);
      }
    }
    heads = kv;
    heads.insert(heads.end(), group.begin(), group.end());
  }
};

// Places operands; their tables are numbered in the order of the calls.
class Places {
 public:
  Places(const StepCall& call, const AttentionAxes& axes) : call_(call), axes_(axes) {}

  // `row` and `column`: the axes that `pos` and `dim` step along.
  Result<args::AttentionPlace> of(const DeviceArray& a, const std::string& row, const std::string& column) {
    args::AttentionPlace p = {};
    p.at = a.at.at;
    p.type = type_number(a.dtype());
    p.pos = stride(a, row);
    p.dim = stride(a, column);
    ASSIGN_OR_RETURN(p.batch,
                     call_.table(next_++, [&] { return compile::offsets_over(axes_.batch, *a.view); }));
    ASSIGN_OR_RETURN(p.head,
                     call_.table(next_++, [&] { return compile::offsets_over(axes_.heads, *a.view); }));
    return p;
  }
  size_t next() { return next_++; }

 private:
  static int64_t stride(const DeviceArray& a, const std::string& axis) {
    const int64_t at = axis.empty() ? -1 : a.shape().find(axis);
    return at < 0 ? 0 : a.view->strides[static_cast<size_t>(at)];
  }

  const StepCall& call_;
  const AttentionAxes& axes_;
  size_t next_ = 0;
};

// Sizes, scalars and masks, whose operands begin at number `next`.
Status set_common(const StepCall& call, const AttentionAxes& axes, Places& places, size_t next,
                  args::AttentionArgs& a) {
  const auto& attrs = call.attrs();
  a.batch = count_of(axes.batch);
  a.kv_heads = count_of(axes.kv);
  a.group = count_of(axes.group);
  a.pos = call.in[0].shape().size_of(axes.query);
  a.key_pos = call.in[1].shape().size_of(axes.key);
  a.head_dim = call.in[0].shape().axes.back().size;
  a.causal = attrs.i64("causal", 0);
  a.window = attrs.i64("window", 0);
  a.partial = attrs.i64("partial", 0);
  a.scale = static_cast<float>(attrs.f64("scale"));
  a.soft_cap = static_cast<float>(attrs.f64("soft_cap", 0.0));
  a.kappa = a.soft_cap > 0 ? numerics::kLog2e : numerics::attention_kappa(a.scale);
  ASSIGN_OR_RETURN(a.origin, places.of(call.in[next++], "", ""));
  if (attrs.i64("segments", 0) != 0) {
    ASSIGN_OR_RETURN(a.query_segments, places.of(call.in[next++], axes.query, ""));
    ASSIGN_OR_RETURN(a.key_segments, places.of(call.in[next++], axes.key, ""));
  }
  if (attrs.i64("prefix", 0) != 0) {
    ASSIGN_OR_RETURN(a.prefix, places.of(call.in[next++], "", ""));
  }
  if (attrs.i64("key_limit", 0) != 0) {
    ASSIGN_OR_RETURN(a.key_limit, places.of(call.in[next++], "", ""));
  }
  if (attrs.i64("visible", 0) != 0) {
    ASSIGN_OR_RETURN(a.visible, places.of(call.in[next++], axes.query, axes.key));
  }
  if (attrs.i64("sink", 0) != 0) {
    ASSIGN_OR_RETURN(a.sink, places.of(call.in[next++], "", ""));
  }
  return set_leaf_ends(call, places.next(), {axes.query, a.pos}, a);
}

}  // namespace

Status run_attention(const StepCall& call) {
  if (call.out[0].count() == 0) return Status();
  const AttentionAxes axes(call, 3);
  Places places(call, axes);
  args::AttentionArgs a = {};
  ASSIGN_OR_RETURN(a.q, places.of(call.in[0], axes.query, axes.head_dim));
  ASSIGN_OR_RETURN(a.k, places.of(call.in[1], axes.key, axes.head_dim));
  ASSIGN_OR_RETURN(a.v, places.of(call.in[2], axes.key, axes.head_dim));
  ASSIGN_OR_RETURN(a.out, places.of(call.out[0], axes.query, axes.head_dim));
  ASSIGN_OR_RETURN(a.m, places.of(call.out[1], axes.query, ""));
  ASSIGN_OR_RETURN(a.r, places.of(call.out[2], axes.query, ""));
  RETURN_IF_ERROR(set_common(call, axes, places, 3, a));
  return call.launch(kAttention, "attention",
                     LaunchShape{.x = a.pos, .y = a.kv_heads * a.group, .z = a.batch, .threads = 128}, a);
}

Status run_attention_grad(const StepCall& call) {
  const AttentionAxes axes(call, 7);
  Places places(call, axes);
  args::AttentionArgs a = {};
  ASSIGN_OR_RETURN(a.q, places.of(call.in[0], axes.query, axes.head_dim));
  ASSIGN_OR_RETURN(a.k, places.of(call.in[1], axes.key, axes.head_dim));
  ASSIGN_OR_RETURN(a.v, places.of(call.in[2], axes.key, axes.head_dim));
  ASSIGN_OR_RETURN(a.out, places.of(call.in[3], axes.query, axes.head_dim));
  ASSIGN_OR_RETURN(a.m, places.of(call.in[4], axes.query, ""));
  ASSIGN_OR_RETURN(a.r, places.of(call.in[5], axes.query, ""));
  ASSIGN_OR_RETURN(a.dout, places.of(call.in[6], axes.query, axes.head_dim));
  ASSIGN_OR_RETURN(a.dq, places.of(call.out[0], axes.query, axes.head_dim));
  ASSIGN_OR_RETURN(a.dk, places.of(call.out[1], axes.key, axes.head_dim));
  ASSIGN_OR_RETURN(a.dv, places.of(call.out[2], axes.key, axes.head_dim));
  RETURN_IF_ERROR(set_common(call, axes, places, 7, a));
  const int64_t heads = a.kv_heads * a.group;
  ASSIGN_OR_RETURN(a.delta.at,
                   call.scratch(places.next(), std::max<int64_t>(4, a.batch * a.pos * heads * 4)));
  RETURN_IF_ERROR(call.launch(kAttention, "attention_delta",
                              LaunchShape{.x = a.pos, .y = heads, .z = a.batch, .threads = 64}, a));
  RETURN_IF_ERROR(call.launch(kAttention, "attention_dq",
                              LaunchShape{.x = a.pos, .y = heads, .z = a.batch, .threads = 128}, a));
  RETURN_IF_ERROR(call.launch(kAttention, "attention_dkv",
                              LaunchShape{.x = a.key_pos, .y = a.kv_heads, .z = a.batch, .threads = 128}, a));
  if (a.sink.at == 0) return Status();
  ASSIGN_OR_RETURN(a.dsink, places.of(call.out[3], "", ""));
  return call.launch(kAttention, "attention_dsink", heads, a);
}

}  // namespace ostro::cuda
