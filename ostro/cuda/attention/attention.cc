#include "ostro/cuda/steps/fast_routines.h"

#include <algorithm>

#include "ostro/cuda/attention/operands.h"
#include "ostro/cuda/attention/sliced_attention.h"
#include "ostro/cuda/attention/tile_shapes.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/leaves.h"

namespace ostro::cuda {
namespace {

constexpr const char* kAttention = "attention/attention.cu";

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

// The shapes of the kernels by tiles; null where the kernels by rows must do it all.
const TileShapes* tiles_for(const StepCall& call, const args::AttentionArgs& a, const std::string& head_dim) {
  if (!call.kernels.fast(Fast::kAttention) || a.pos < kLeastQueries || a.visible.at != 0 ||
      std::max(a.pos, a.key_pos) > kMostPositions)
    return nullptr;
  for (const auto& operands : {call.in, call.out})
    for (const DeviceArray& x : operands)
      if (x.shape().rank() > 0 && x.shape().axes.back().name == head_dim && !takes_tiles(x, head_dim))
        return nullptr;
  return tile_shapes(a.head_dim);
}

// One block a row of queries or keys.
Status launch_rows(const StepCall& call, const char* kernel, int64_t heads, int64_t rows,
                   const args::AttentionArgs& a) {
  return call.launch(kAttention, kernel,
                     gpu::LaunchShape{.x = rows, .y = heads, .z = a.batch, .threads = 128}, a);
}

// A kernel: its text and its name, both without what the shapes and the dtype add.
struct TiledKernel {
  const char* text;
  const char* name;
  const TileShape& shape;
  int64_t shared_bytes;
};

// Launches a kernel by tiles over that many heads, and rows of queries or keys; or, where a block has not
// enough shared memory for it, the kernel by rows.
Status launch_tiles(const StepCall& call, const TiledKernel& kernel, int64_t wide, int64_t heads,
                    int64_t rows, const args::AttentionArgs& a) {
  if (kernel.shared_bytes > call.device().limits().block_shared_bytes)
    return launch_rows(call, kernel.name, heads, rows, a);
  const char* const dtype = a.q.type == args::TYPE_BF16 ? "bf16" : "f32";
  return call.launch(fmt::format("attention/tiled_{}_{}.cu", kernel.text, wide).c_str(),
                     fmt::format("{}_{}_{}", kernel.name, wide, dtype).c_str(),
                     gpu::LaunchShape{.x = heads,
                                      .y = (rows + kernel.shape.rows - 1) / kernel.shape.rows,
                                      .z = a.batch,
                                      .threads = static_cast<int>(kernel.shape.threads),
                                      .shared_bytes = kernel.shared_bytes},
                     a);
}

bool of_integers(const StepCall& call) { return call.attrs().i64("int8_slices", 0) != 0; }

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
  const int64_t heads = a.kv_heads * a.group;
  if (of_integers(call)) return SlicedAttention(call, places, a).forward();
  const TileShapes* tiles = tiles_for(call, a, axes.head_dim);
  if (tiles == nullptr) return launch_rows(call, "attention", heads, a.pos, a);
  return launch_tiles(call, {"forward", "attention", tiles->forward, tiles->forward.forward_bytes()},
                      tiles->wide, heads, a.pos, a);
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
                              gpu::LaunchShape{.x = a.pos, .y = heads, .z = a.batch, .threads = 64}, a));
  const TileShapes* tiles = of_integers(call) ? nullptr : tiles_for(call, a, axes.head_dim);
  if (of_integers(call)) {
    RETURN_IF_ERROR(SlicedAttention(call, places, a).backward());
  } else {
    if (tiles == nullptr)
      RETURN_IF_ERROR(launch_rows(call, "attention_dq", heads, a.pos, a));
    else
      RETURN_IF_ERROR(launch_tiles(call, {"backward", "attention_dq", tiles->dq, tiles->dq.dq_bytes()},
                                   tiles->wide, heads, a.pos, a));
    if (tiles == nullptr || a.leaves > 1)
      RETURN_IF_ERROR(launch_rows(call, "attention_dkv", a.kv_heads, a.key_pos, a));
    else
      RETURN_IF_ERROR(launch_tiles(call, {"backward", "attention_dkv", tiles->dkv, tiles->dkv.dkv_bytes()},
                                   tiles->wide, a.kv_heads, a.key_pos, a));
  }
  if (a.sink.at == 0) return Status();
  ASSIGN_OR_RETURN(a.dsink, places.of(call.out[3], "", ""));
  return call.launch(kAttention, "attention_dsink", heads, a);
}

}  // namespace ostro::cuda
