// OpKind: the operations of a Program.
//
// docs/spec/numerics.md defines the result of each to the bit; its operands, attributes and shape rule are in
// docs/spec/ops.md and op_table.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ostro::ir {

// X(enum name): the text form uses the same word.
#define OSTRO_OPS(X)                                                                                       \
  /* sources */ X(constant) X(iota) X(random) X(fold_in) /* elementwise, one operand */                    \
      X(neg) X(abs) X(exp) X(log) X(log2) X(log1p) X(tanh) X(sin) X(cos) X(erf) X(erfinv) X(sqrt) X(rsqrt) \
          X(sigmoid) X(floor) X(logical_not) X(is_finite) X(cast) X(use) /* elementwise, two operands */   \
      X(add) X(sub) X(mul) X(div) X(rem) X(min) X(max) X(bit_and) X(bit_or) X(bit_xor) X(shl) X(shr) X(eq) \
          X(ne) X(lt) X(le) X(gt) X(ge) /* elementwise, three operands */ X(select) /* layout */           \
      X(broadcast) X(transpose) X(rename) X(split_axis) X(merge_axes) X(slice) X(pad) X(concat) X(split)   \
          X(stack) X(unstack) X(reverse) /* indexed */ X(dynamic_slice) X(dynamic_update_slice) X(gather)  \
              X(scatter_add) X(sort) X(top_k) /* reductions and contractions */                            \
      X(sum) X(reduce_max) X(reduce_min) X(argmax) X(tree_sum) X(dequantize) X(dot) X(expert_dot)          \
          X(expert_outer) /* fused */ X(attention) X(attention_grad) X(cross_entropy) X(cross_entropy_sum) \
              X(cross_entropy_grad) /* state */ X(box_sumsq)                                               \
                  X(fingerprint) /* control: have regions */ X(scan) X(cond)                               \
                      X(custom) /* collectives, put in by partitioning only */                             \
      X(all_gather) X(shard_slice) X(all_reduce_tree) X(reduce_scatter_tree) X(all_reduce_max)             \
          X(all_reduce_int) X(all_reduce_bits) X(exchange_leaves)

enum class OpKind {
#define X(name) name,
  OSTRO_OPS(X)
#undef X
};

inline constexpr int kOpCount = 0
#define X(name) +1
    OSTRO_OPS(X)
#undef X
    ;

// The word of the text form.
const char* op_name(OpKind kind);
// The op of this name; nothing if there is none.
std::optional<OpKind> parse_op(std::string_view name);

// True when each output element depends only on the element at the same place of each operand. All operands
// have the axes of the result.
bool is_elementwise(OpKind kind);
// True when the op moves or renames elements without arithmetic (numerics.md N1 needs it for the cotangents
// of `use`).
bool is_layout(OpKind kind);
// True when workers exchange data in the op.
bool is_collective(OpKind kind);

}  // namespace ostro::ir
