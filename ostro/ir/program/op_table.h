// infer_shapes, axis_role, op_cost: the op table: for every op its arity, attributes, shape rule, sharding
// rule and cost rule. Pure functions, for any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Returns the result shapes of an op from its attributes, regions and operand shapes. An error names the op,
// the axis and both sizes; the caller adds the place. Source: the table in docs/spec/ops.md.
Result<std::vector<Shape>> infer_shapes(const Op& op, std::span<const Shape> operands);

// The treatment of an axis of an op's operands or results when it is sharded (docs/spec/spmd.md).
enum class AxisRole {
  kParallel,  // each position along the axis is computed alone: it can be sharded, nothing else changes
  kOrigin,    // parallel, but the op reads the global index: the shard's origin goes into its origin operand
  kSum,       // contracted: partials per feature leaf, joined by the fixed tree over workers
  kMax,       // reduced by max (or min): joined by an exact max over workers
  kWhole,     // the op needs the axis whole: operands are gathered along it first
};
// The role of `axis` in the op with operands and results of these shapes.
AxisRole axis_role(const Op& op, std::span<const Shape> operands, std::span<const Shape> results,
                   std::string_view axis);

// Arithmetic and memory traffic of one execution of the op, regions included.
struct Cost {
  double flops = 0;  // multiply and add count one each
  double bytes = 0;  // operands read once, results written once
};
// The cost of an op with operands and results of these shapes.
Cost op_cost(const Op& op, std::span<const Shape> operands, std::span<const Shape> results);

// One row per op, for the documentation and for the test that no op is missing.
struct OpInfo {
  OpKind kind;
  const char* operands;  // "x, w"
  const char* attrs;     // "over, dtype"
  const char* summary;
};
// The row of an op. Lives as long as the process.
const OpInfo& op_info(OpKind kind);

}  // namespace ostro::ir
