// Call: the argument of every op function, for one execution of one op.
#pragma once

#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"
#include "ostro/runtime/buffer.h"
#include "ostro/runtime/engine.h"

namespace ostro::interp {

using ir::Axis;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using runtime::Buffer;
using Buffers = std::vector<Buffer>;

// Everything is borrowed for the duration of the call.
struct Call {
  const ir::Op& op;
  const Buffers& in;
  const std::vector<Shape>& out;  // shapes of the results
  const numerics::LeafTable& leaves;
  const runtime::RunContext& context;

  const Shape& shape(size_t operand) const { return in[operand].shape(); }
};

// Returns buffers of the shapes call.out. May throw ir::AttrError, which run() turns into an error.
using OpFunction = Result<Buffers> (*)(const Call& call);

// The op table; nullptr for an op without a function.
OpFunction op_function(ir::OpKind kind);

// Runs a block (the program's body or a region) on its parameters.
Result<Buffers> run_block(const ir::Block& block, Buffers args, const numerics::LeafTable& leaves,
                          const runtime::RunContext& context);

}  // namespace ostro::interp
