#include "ostro/cuda/steps/fast_routines.h"

#include <algorithm>

#include "ostro/cuda/attention/tile_shapes.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/leaves.h"

namespace ostro::cuda {
namespace {

constexpr const char *kAttention = "attention/attention.cu", *kSliced = "attention/sliced.cu";
constexpr int64_t kLeastQueries = 16;           // of a tile: fewer leave most of it empty
constexpr int64_t kMostPositions = 65535 * 32;  // of tiles of at least 32, of which a launch has 65,535

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
    p.pos = stride_along(a, row);
    p.dim = stride_along(a, column);
    ASSIGN_OR_RETURN(p.batch,
                     call_.table(next_++, [&] { return compile::offsets_over(axes_.batch, *a.view); }));
    ASSIGN_OR_RETURN(p.head,
                     call_.table(next_++, [&] { return compile::offsets_over(axes_.heads, *a.view); }));
    return p;
  }
  size_t next() { return next_++; }

 private:
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

// Products of integers (N21): by tiles on tensor cores where a block has the shared memory for it, else one
// block a row.
class SlicedAttention {
 public:
  SlicedAttention(const StepCall& call, Places& places, args::AttentionArgs& a)
      : call_(call), places_(places), a_(a), wide_(a.head_dim <= 64 ? 64 : 128) {
    tiled_ = call.kernels.fast(Fast::kAttention) && a.head_dim <= wide_ && a.pos >= kLeastQueries && a.visible.at == 0 &&
             std::max(a.pos, a.key_pos) <= kMostPositions &&
             std::max(forward_bytes(), backward_bytes()) <= call.device().limits().block_shared_bytes;
    a_.wide = tiled_ ? wide_ : a.head_dim;
  }

  Status forward() {
    RETURN_IF_ERROR(slice(a_.q, kQueries, kRows, a_.sliced_q));
    RETURN_IF_ERROR(slice(a_.k, kKeys, kRows, a_.sliced_k));
    RETURN_IF_ERROR(slice(a_.v, kKeys, kTurned, a_.sliced_v));
    return launch("attention_sliced", heads(), a_.pos, forward_bytes());
  }
  Status backward() {
    RETURN_IF_ERROR(slice(a_.q, kQueries, kRows | kTurned, a_.sliced_q));
    RETURN_IF_ERROR(slice(a_.k, kKeys, kRows | kTurned, a_.sliced_k));
    RETURN_IF_ERROR(slice(a_.v, kKeys, kRows, a_.sliced_v));
    RETURN_IF_ERROR(slice(a_.dout, kQueries, kRows | kTurned, a_.sliced_do));
    RETURN_IF_ERROR(launch("attention_dq_sliced", heads(), a_.pos, backward_bytes()));
    // Sums over queries in leaves are made by rows.
    if (!tiled_ || a_.leaves > 1) return launch_row("attention_dkv_sliced", a_.kv_heads, a_.key_pos);
    RETURN_IF_ERROR(launch("attention_dk_sliced", a_.kv_heads, a_.key_pos, backward_bytes()));
    return launch("attention_dv_sliced", a_.kv_heads, a_.key_pos, backward_bytes());
  }

 private:
  static constexpr int kRows = 1, kTurned = 2;
  static constexpr bool kQueries = true, kKeys = false;
  // As in the device text.
  static constexpr int64_t kTileRows = 64, kColumns = 128, kTurnedRow = 2 * kColumns + 16;

  int64_t heads() const { return a_.kv_heads * a_.group; }
  int64_t row_bytes() const { return 2 * wide_ + 16; }
  int64_t forward_bytes() const {
    return (kTileRows + kColumns) * row_bytes() + wide_ * kTurnedRow +
           4 * (kTileRows * (kColumns + 1) + 2 * kColumns + kTileRows);
  }
  int64_t backward_bytes() const {
    constexpr int64_t kOfQuery = 16 + 5 * 4;  // SlicedQueries, for each
    return 2 * (kTileRows + kColumns) * row_bytes() + wide_ * kTurnedRow + kColumns * kOfQuery;
  }

  // Cuts the rows of an operand, with query heads or with those of keys, into the forms that are wanted.
  Status slice(const args::AttentionPlace& x, bool of_queries, int forms, args::SlicedPlace& to) {
    args::AttentionSlicesArgs s = {};
    s.x = x;
    s.heads = of_queries ? heads() : a_.kv_heads;
    s.rows = of_queries ? a_.pos : a_.key_pos;
    s.head_step = of_queries ? 1 : a_.group;
    s.head_dim = a_.head_dim;
    s.wide = a_.wide;
    s.blocks = (s.rows + kColumns - 1) / kColumns + (of_queries ? 1 : 0);
    if (of_queries) s.origin = a_.origin;
    const int64_t count = a_.batch * s.heads * s.rows, turned = a_.batch * s.heads * s.blocks * kColumns;
    if (!tiled_ || (forms & kRows) != 0) {
      ASSIGN_OR_RETURN(s.to.integers, call_.scratch(places_.next(), std::max<int64_t>(4, count * 2 * a_.wide)));
    }
    if (tiled_ && (forms & kTurned) != 0) {
      ASSIGN_OR_RETURN(s.to.turned, call_.scratch(places_.next(), std::max<int64_t>(4, turned * 2 * a_.wide)));
    }
    ASSIGN_OR_RETURN(s.to.scales, call_.scratch(places_.next(), std::max<int64_t>(4, count * 4)));
    to = s.to;
    if (count == 0) return Status();
    if (!tiled_)
      return call_.launch(kSliced, "attention_slices",
                          gpu::LaunchShape{.x = s.rows, .y = s.heads, .z = a_.batch, .threads = 128}, s);
    return call_.launch("attention/sliced_turned.cu", "attention_slices_turned",
                        gpu::LaunchShape{.x = s.blocks, .y = s.heads, .z = a_.batch, .threads = 256}, s);
  }
  Status launch_row(const char* kernel, int64_t heads, int64_t rows) {
    return call_.launch(kSliced, kernel,
                        gpu::LaunchShape{.x = rows, .y = heads, .z = a_.batch, .threads = 128}, a_);
  }
  Status launch(const char* kernel, int64_t heads, int64_t rows, int64_t bytes) {
    if (!tiled_) return launch_row(kernel, heads, rows);
    return call_.launch(fmt::format("attention/sliced_tiles_{}.cu", wide_).c_str(),
                        fmt::format("{}_{}", kernel, wide_).c_str(),
                        gpu::LaunchShape{.x = heads,
                                         .y = (rows + kTileRows - 1) / kTileRows,
                                         .z = a_.batch,
                                         .threads = 128,
                                         .shared_bytes = bytes},
                        a_);
  }

  const StepCall& call_;
  Places& places_;
  args::AttentionArgs& a_;
  const int64_t wide_;
  bool tiled_ = false;
};

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
