// Program: a function in static single assignment form over values with named axes.
//
// A Block owns its values. A region (the body of scan, cond or custom) is a Block of its own. It cannot use
// values of the outer block: all its inputs are passed in through its parameters. These structs are values: a
// program that no thread changes may be read by many.
#pragma once

#include <string>
#include <vector>

#include "ostro/ir/program/attrs.h"
#include "ostro/ir/program/op.h"
#include "ostro/ir/program/shape.h"
#include "ostro/numerics/leaves.h"

namespace ostro::ir {

using ValueId = int32_t;  // index into Block::values

struct Block;

// One operation. Operands and results are values of the block that holds it.
struct Op {
  OpKind kind;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attrs attrs;
  std::vector<Block> regions;

  // Marks for people and for remat policies. They are not part of the canonical text, and no engine's
  // arithmetic depends on them.
  std::string scope;  // the model path that emitted it, "layers/attn/qkv"; "ckpt:" segments are remat regions
  std::string label;  // a name given to the first result for remat policies, "attn_out"
  std::string location;  // the user's call site, "llama.cc:91"
};

// A list of ops with parameters and results.
struct Block {
  std::vector<Shape> values;  // shape of each value, by ValueId
  std::vector<ValueId> params;
  std::vector<Op> ops;  // in an order where every operand comes before its use
  std::vector<ValueId> results;

  const Shape& shape(ValueId v) const { return values[static_cast<size_t>(v)]; }
  ValueId add_value(Shape shape) {
    values.push_back(std::move(shape));
    return static_cast<ValueId>(values.size()) - 1;
  }
  ValueId add_param(Shape shape) {
    params.push_back(add_value(std::move(shape)));
    return params.back();
  }
};

// A named body with its leaf table.
struct Program {
  std::string name;
  numerics::LeafTable leaves;  // feature leaves (numerics.md N8); part of the meaning
  Block body;
  // Names of the body's parameters and results ("model/head/weight"), for people and errors; may be empty.
  std::vector<std::string> param_names;
  std::vector<std::string> result_names;
};

}  // namespace ostro::ir
