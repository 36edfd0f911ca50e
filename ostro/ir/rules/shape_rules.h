// elementwise, layout, dot, ...: the shape rules, one per family of ops, and what they share. Private to the
// room.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/ir/program/op_table.h"

namespace ostro::ir::rules {

using Shapes = Result<std::vector<Shape>>;
using In = std::span<const Shape>;

// The error "dot: text", with the name of the op.
Error fail(const Op& op, const std::string& text);
// The shape that the attributes axes and sizes give.
Result<Shape> shape_from_attrs(const Op& op, DType dtype);
// Returns an error unless all axis names are valid (is_axis_name) and different, no size is negative, and the
// size in bytes fits into 64 bits.
Status check_shape(const Shape& s);
// Position of the axis; an error when the shape does not have it.
Result<int64_t> need_axis(const Op& op, const Shape& s, const std::string& axis);

// The rules: the result shapes of an op, or the error of infer_shapes (op_table.h).
Shapes elementwise(const Op& op, In in);
Shapes broadcast(const Op& op, In in);
Shapes layout(const Op& op, In in);
Shapes reduction(const Op& op, In in);
Shapes dot(const Op& op, In in);
// An error unless the op's attribute `rule` (product_rule.h) is absent, or one for operands of this dtype.
Status check_rule(const Op& op, DType dtype);
Shapes dequantize(const Op& op, In in);
Shapes quantize(const Op& op, In in);  // quantize, dot_int8: shape_rules_int8.cc
Shapes dot_int8(const Op& op, In in);
Shapes expert_dot_int8(const Op& op, In in);
Shapes expert_outer_int8(const Op& op, In in);
Shapes experts(const Op& op, In in);  // expert_dot, expert_outer: shape_rules_experts.cc
// The axes of the two ops' results, for operands of any type.
Shapes expert_dot(const Op& op, In in);
Shapes expert_outer(const Op& op, In in);
// An error unless expert is i32 and origin an i64 scalar.
Status check_expert(const Op& op, const Shape& expert, const Shape& origin);
Shapes gather(const Op& op, In in);
Shapes scatter_add(const Op& op, In in);
Shapes attention(const Op& op, In in);
// An error unless scale, soft_cap, window and int8_slices are in range.
Status attention_attributes(const Op& op);
Shapes paged_write(const Op& op, In in);  // paged_write, paged_attention: shape_rules_paged.cc
Shapes paged_attention(const Op& op, In in);
Shapes cross_entropy(const Op& op, In in);
Shapes regions(const Op& op, In in);
Shapes collective(const Op& op, In in);  // shape_rules_exchange.cc

}  // namespace ostro::ir::rules
