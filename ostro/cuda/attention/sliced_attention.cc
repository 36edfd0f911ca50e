#include "ostro/cuda/attention/sliced_attention.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::cuda {
namespace {

constexpr const char* kByRows = "attention/sliced.cu";
constexpr int kRows = 1, kTurned = 2;  // forms of slices
constexpr bool kQueries = true, kKeys = false;
// As in the device text.
constexpr int64_t kTileRows = 64, kColumns = 128, kTurnedRow = 2 * kColumns + 16;

int64_t row_bytes(int64_t wide) { return 2 * wide + 16; }

}  // namespace

SlicedAttention::SlicedAttention(const StepCall& call, Places& places, args::AttentionArgs& args)
    : call_(call), places_(places), a_(args), wide_(args.head_dim <= 64 ? 64 : 128) {
  tiled_ = call.kernels.fast(Fast::kAttention) && a_.head_dim <= wide_ && a_.pos >= kLeastQueries &&
           a_.visible.at == 0 && std::max(a_.pos, a_.key_pos) <= kMostPositions &&
           std::max(forward_bytes(), backward_bytes(2)) <= call.device().limits().block_shared_bytes;
  a_.wide = tiled_ ? wide_ : a_.head_dim;
}

Status SlicedAttention::forward() {
  RETURN_IF_ERROR(slice(a_.q, kQueries, kRows, a_.sliced_q));
  RETURN_IF_ERROR(slice(a_.k, kKeys, kRows, a_.sliced_k));
  RETURN_IF_ERROR(slice(a_.v, kKeys, kTurned, a_.sliced_v));
  return launch("forward", "attention_sliced", heads(), a_.pos, forward_bytes());
}

Status SlicedAttention::backward() {
  RETURN_IF_ERROR(slice(a_.q, kQueries, kRows | kTurned, a_.sliced_q));
  RETURN_IF_ERROR(slice(a_.k, kKeys, kRows | kTurned, a_.sliced_k));
  RETURN_IF_ERROR(slice(a_.v, kKeys, kRows, a_.sliced_v));
  RETURN_IF_ERROR(slice(a_.dout, kQueries, kRows | kTurned, a_.sliced_do));
  RETURN_IF_ERROR(launch("backward", "attention_dq_sliced", heads(), a_.pos, backward_bytes(2)));
  // Sums over queries in leaves are made by rows.
  if (!tiled_ || a_.leaves > 1) return launch_rows("attention_dkv_sliced", a_.kv_heads, a_.key_pos);
  RETURN_IF_ERROR(launch("backward", "attention_dk_sliced", a_.kv_heads, a_.key_pos, backward_bytes(2)));
  return launch("backward", "attention_dv_sliced", a_.kv_heads, a_.key_pos, backward_bytes(1));
}

int64_t SlicedAttention::forward_bytes() const {
  return (kTileRows + kColumns) * row_bytes(wide_) + wide_ * kTurnedRow +
         4 * (kTileRows * (kColumns + 1) + 2 * kColumns + kTileRows);
}

int64_t SlicedAttention::backward_bytes(int64_t operands) const {
  constexpr int64_t kOfQuery = 28 + 2 * 4;  // Queries and two scales, for each
  return operands * (kTileRows + kColumns) * row_bytes(wide_) + wide_ * kTurnedRow + kColumns * kOfQuery;
}

Status SlicedAttention::slice(const args::AttentionPlace& x, bool of_queries, int forms,
                              args::SlicedPlace& to) {
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
    return call_.launch(kByRows, "attention_slices",
                        gpu::LaunchShape{.x = s.rows, .y = s.heads, .z = a_.batch, .threads = 128}, s);
  return call_.launch("attention/sliced_turned.cu", "attention_slices_turned",
                      gpu::LaunchShape{.x = s.blocks, .y = s.heads, .z = a_.batch, .threads = 256}, s);
}

Status SlicedAttention::launch_rows(const char* kernel, int64_t heads, int64_t rows) {
  return call_.launch(kByRows, kernel, gpu::LaunchShape{.x = rows, .y = heads, .z = a_.batch, .threads = 128},
                      a_);
}

Status SlicedAttention::launch(const char* text, const char* kernel, int64_t heads, int64_t rows,
                               int64_t bytes) {
  if (!tiled_) return launch_rows(kernel, heads, rows);
  return call_.launch(fmt::format("attention/sliced_{}_{}.cu", text, wide_).c_str(),
                      fmt::format("{}_{}", kernel, wide_).c_str(),
                      gpu::LaunchShape{.x = heads,
                                       .y = (rows + kTileRows - 1) / kTileRows,
                                       .z = a_.batch,
                                       .threads = 128,
                                       .shared_bytes = bytes},
                      a_);
}

}  // namespace ostro::cuda
