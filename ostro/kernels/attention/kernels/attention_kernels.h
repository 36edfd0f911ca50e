// AttentionKernels: the attention kernels of one instruction set, as a table of functions. Each call does one
// independent work item, so a driver may hand items to threads in any order. Callers set N0's floating-point
// environment.
#pragma once

#include <cstdint>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/kernels/attention/attention.h"

namespace ostro::kernels {

inline constexpr int kKeyBlock = 128;  // N9: part of the bits
inline constexpr int kMaxHeadDim = ir::kMaxHeadDim;
inline constexpr int kQueryTile = 64;  // not part of the bits; a multiple of 32 so that groups stay whole

// Half-open range of rows, keys or positions.
struct Range {
  int64_t begin, end;
};

// One independent piece of the backward pass of one (example, kv head). It computes dk and dv of a range of
// keys, from all query rows; or dq of a range of query rows, from all keys; or both, for all rows and keys.
struct BackwardJob {
  int64_t b, h;
  Range rows;  // whole unless only dq is asked for
  Range keys;  // begins at a key block; whole unless only dk and dv are asked for
  bool dq, dkv;
};

struct AttentionKernels {
  // packed_bytes: bytes of packed K and V that all forward items share. pack: work item that packs one key
  // block; items are counted over (example, kv head, block). No bytes and nullptr when items read K and V
  // directly.
  int64_t (*packed_bytes)(const AttentionForward& args);
  void (*pack)(const AttentionForward& args, int64_t item, void* packed, float* scratch);
  // Forward item: (example, kv head, tile of 64 of its pos * group query rows, pos-major).
  void (*forward)(const AttentionForward& args, const void* packed, int64_t item, float* scratch);
  // delta [batch, pos, kv_heads, group] of rows [begin, end) of batch * pos.
  void (*delta)(const AttentionBackward& args, int64_t begin, int64_t end, float* delta);
  void (*backward)(const AttentionBackward& args, const float* delta, const BackwardJob& job, float* scratch);
  // Floats of scratch that one item needs.
  int64_t (*forward_scratch)(const AttentionForward& args);
  int64_t (*backward_scratch)(const AttentionBackward& args, const BackwardJob& job);
};

int64_t forward_items(const AttentionShape& shape);
int64_t key_block_items(const AttentionShape& shape);
// The most subtrees of the tree over query leaves that are alive at once, the newest leaf included.
int64_t leaf_partials(const AttentionBackward& args);

const AttentionKernels& attention_generic();
const AttentionKernels& attention_avx2();
const AttentionKernels& attention_avx512();
// For bf16 alone.
const AttentionKernels& attention_avx512bf16();
const AttentionKernels& attention_amx();

}  // namespace ostro::kernels
