// attention_forward, attention_backward: fused attention (docs/spec/numerics.md, N9, N21). The whole matrix
// of scores is never in memory, and key blocks that are fully masked are skipped.
//
// Inputs must be finite (skipping a masked key gives the bits of p = +0 only then), and head_dim is
// contiguous in every array. Rows of k and v that no query may attend to are not read, except inside a block
// of 128 that some query reads. Shapes out of range abort.
//
// Every output has one fixed order of operations, so bits do not depend on instruction set, threads or tiles.
#pragma once

#include <cstdint>
#include <span>

#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/machine/vector/float_type.h"

namespace ostro::kernels {

// Strides in elements of [batch, pos, kv_heads, group, head_dim] (q, o, do, dq).
struct QueryStrides {
  int64_t batch = 0, pos = 0, kv_head = 0, group = 0;
};
// Strides in elements of [batch, key_pos, kv_heads, head_dim] (k, v, dk, dv).
struct KeyStrides {
  int64_t batch = 0, pos = 0, kv_head = 0;
};

// A query attends to the keys that pass every condition that is set. Query row i of example b has position p
// = origin[b] + i; key row j has position j.
struct AttentionMask {
  bool causal = false;                      // j <= p, or j < prefix_length[b]
  int64_t window = 0;                       // j > p - window; 0: no limit
  const int32_t* prefix_length = nullptr;   // [batch]; loosens only `causal`
  const int32_t* key_length = nullptr;      // [batch]; j < key_length[b] (cache slots in use)
  const int32_t* query_segments = nullptr;  // [batch, pos]; both or neither: attend where equal
  const int32_t* key_segments = nullptr;    // [batch, key_pos]
  int64_t query_segment_stride = 0;         // elements from one example to the next
  int64_t key_segment_stride = 0;
  const uint8_t* visible = nullptr;  // [batch, pos, key_pos], 0 or 1: attend where 1
};

struct AttentionShape {
  int64_t batch = 0, pos = 0, key_pos = 0, kv_heads = 0, group = 0, head_dim = 0;
  machine::FloatType type = machine::FloatType::kF32;  // of q, k, v and do
  bool integers = false;                               // products are of integers (N21)
  float scale = 1;                                     // > 0
  float soft_cap = 0;                                  // 0: none
  const float* sink = nullptr;                         // [kv_heads, group] in units of scaled logits, or none
  const int64_t* query_origin = nullptr;               // [batch], none means 0
  AttentionMask mask;
};

struct AttentionForward {
  AttentionShape shape;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  machine::FloatType out_type = machine::FloatType::kF32;
  float* m =
      nullptr;  // [batch, pos, kv_heads, group]: largest score, in units of q.k (of the cap with soft cap)
  float* r = nullptr;  // [batch, pos, kv_heads, group]: 1 / sum of exponentials; +0 for a row without keys
  QueryStrides q_strides, out_strides;
  KeyStrides k_strides, v_strides;
};

struct AttentionBackward {
  AttentionShape shape;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* out = nullptr;   // as the forward stored it
  const void* dout = nullptr;  // of shape.type
  machine::FloatType out_type = machine::FloatType::kF32;
  const float* m = nullptr;
  const float* r = nullptr;
  machine::FloatType grad_type =
      machine::FloatType::kF32;  // of dq, dk, dv: f32, or bf16 by one rounding of it
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  float* dsink = nullptr;  // [kv_heads, group]; needed with a sink
  bool partial = false;    // dk is a partial of a tree over workers, after which it is scaled
  QueryStrides q_strides, out_strides, dout_strides, dq_strides;
  KeyStrides k_strides, v_strides, dk_strides, dv_strides;
  // Leaves of the query axis: the end row of each, ascending; the last is pos. Empty means one leaf. Leaves
  // change the order in which dk, dv and dsink are added (N8): one partial per leaf, then the tree. Every end
  // before the last non-empty leaf's must be a multiple of 128.
  std::span<const int64_t> query_leaf_ends;
};

// Writes out, m and r of every query row.
void attention_forward(const AttentionForward& args, machine::Isa isa, machine::ThreadPool& pool);

// Writes dq, dk, dv and dsink. Rows without keys and keys without queries get +0.
void attention_backward(const AttentionBackward& args, machine::Isa isa, machine::ThreadPool& pool);

}  // namespace ostro::kernels
