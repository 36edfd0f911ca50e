// OpKind: the operations of a Program.
//
// docs/spec/numerics.md defines the result of each to the bit; its operands, attributes and shape rule are in
// docs/spec/ops.md and op_table.cc. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ostro::ir {

enum class OpFamily {
  source,       // makes a value from attributes, indices and keys
  elementwise,  // each output element depends only on the element at the same place of each operand
  layout,       // moves or renames elements
  spread,       // moves elements, and repeats them or puts new ones between
  indexed,      // moves elements to where other values say
  reduction,
  contraction,
  fused,       // several of the others at once
  state,       // reduces whole arrays of a training state
  control,     // has regions
  collective,  // put in by partitioning only
};

// X(enum name, family): the text form uses the same word as the name.
// clang-format off
#define OSTRO_OPS(X)                 \
  X(constant, source)                \
  X(iota, source)                    \
  X(random, source)                  \
  X(fold_in, source)                 \
  X(neg, elementwise)                \
  X(abs, elementwise)                \
  X(exp, elementwise)                \
  X(log, elementwise)                \
  X(log2, elementwise)               \
  X(log1p, elementwise)              \
  X(tanh, elementwise)               \
  X(sin, elementwise)                \
  X(cos, elementwise)                \
  X(erf, elementwise)                \
  X(erfinv, elementwise)             \
  X(sqrt, elementwise)               \
  X(rsqrt, elementwise)              \
  X(sigmoid, elementwise)            \
  X(floor, elementwise)              \
  X(logical_not, elementwise)        \
  X(is_finite, elementwise)          \
  X(cast, elementwise)               \
  X(use, elementwise)                \
  X(add, elementwise)                \
  X(sub, elementwise)                \
  X(mul, elementwise)                \
  X(div, elementwise)                \
  X(rem, elementwise)                \
  X(min, elementwise)                \
  X(max, elementwise)                \
  X(bit_and, elementwise)            \
  X(bit_or, elementwise)             \
  X(bit_xor, elementwise)            \
  X(shl, elementwise)                \
  X(shr, elementwise)                \
  X(eq, elementwise)                 \
  X(ne, elementwise)                 \
  X(lt, elementwise)                 \
  X(le, elementwise)                 \
  X(gt, elementwise)                 \
  X(ge, elementwise)                 \
  X(select, elementwise)             \
  X(broadcast, spread)               \
  X(transpose, layout)               \
  X(rename, layout)                  \
  X(split_axis, layout)              \
  X(merge_axes, layout)              \
  X(slice, layout)                   \
  X(pad, spread)                     \
  X(concat, layout)                  \
  X(split, layout)                   \
  X(stack, layout)                   \
  X(unstack, layout)                 \
  X(reverse, layout)                 \
  X(dynamic_slice, indexed)          \
  X(dynamic_update_slice, indexed)   \
  X(paged_write, indexed)            \
  X(gather, indexed)                 \
  X(scatter_add, indexed)            \
  X(sort, indexed)                   \
  X(top_k, indexed)                  \
  X(sum, reduction)                  \
  X(reduce_max, reduction)           \
  X(reduce_min, reduction)           \
  X(argmax, reduction)               \
  X(tree_sum, reduction)             \
  X(dequantize, contraction)         \
  X(dot, contraction)                \
  X(quantize, contraction)           \
  X(dot_int8, contraction)           \
  X(expert_dot_int8, contraction)    \
  X(expert_outer_int8, contraction)  \
  X(expert_dot, contraction)         \
  X(expert_outer, contraction)       \
  X(attention, fused)                \
  X(attention_grad, fused)           \
  X(paged_attention, fused)          \
  X(cross_entropy, fused)            \
  X(cross_entropy_sum, fused)        \
  X(cross_entropy_grad, fused)       \
  X(box_sumsq, state)                \
  X(fingerprint, state)              \
  X(scan, control)                   \
  X(cond, control)                   \
  X(custom, control)                 \
  X(all_gather, collective)          \
  X(shard_slice, collective)         \
  X(all_reduce_tree, collective)     \
  X(reduce_scatter_tree, collective) \
  X(all_reduce_max, collective)      \
  X(all_reduce_int, collective)      \
  X(all_reduce_bits, collective)     \
  X(exchange_leaves, collective)
// clang-format on

enum class OpKind {
#define X(name, family) name,
  OSTRO_OPS(X)
#undef X
};

inline constexpr int kOpCount = 0
#define X(name, family) +1
    OSTRO_OPS(X)
#undef X
    ;

// The word of the text form.
const char* op_name(OpKind kind);
// The op of this name; nothing if there is none.
std::optional<OpKind> parse_op(std::string_view name);
OpFamily op_family(OpKind kind);

// True when each output element depends only on the element at the same place of each operand. All operands
// have the axes of the result.
bool is_elementwise(OpKind kind);
// True when the op moves or renames elements without arithmetic (numerics.md N1 needs it for the cotangents
// of `use`).
bool is_layout(OpKind kind);
// True when workers exchange data in the op.
bool is_collective(OpKind kind);

}  // namespace ostro::ir
