// Builder: appends ops to a Block, inferring result shapes. Passes, grad and tracing all build with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::ir {

class Builder {
 public:
  // Does not own the block.
  explicit Builder(Block& block) : block_(&block) {}

  Block& block() { return *block_; }

  // Marks given to every op appended from now on.
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  void set_location(std::string location) { location_ = std::move(location); }
  const std::string& scope() const { return scope_; }

  // Appends; the error is the shape rule's.
  Result<std::vector<ValueId>> try_add(OpKind kind, std::vector<ValueId> operands, Attrs attrs = {},
                                       std::vector<Block> regions = {});
  // Appends ops that cannot fail; aborts with the shape rule's error otherwise.
  std::vector<ValueId> add_n(OpKind kind, std::vector<ValueId> operands, Attrs attrs = {},
                             std::vector<Block> regions = {});
  ValueId add(OpKind kind, std::vector<ValueId> operands, Attrs attrs = {}) {
    return add_n(kind, std::move(operands), std::move(attrs))[0];
  }

  const Shape& shape(ValueId v) const { return block_->shape(v); }

  // Short forms of what passes and grad write most.
  ValueId splat(double value, const Shape& shape);  // value must be exact in shape.dtype
  ValueId i64_scalar(int64_t value);
  ValueId cast(ValueId x, DType dtype);                                 // x itself when it has the dtype
  ValueId broadcast(ValueId x, const std::vector<Axis>& axes);          // x itself when it has the axes
  ValueId transpose(ValueId x, const std::vector<std::string>& order);  // x itself when it is in order
  ValueId sum(ValueId x, const std::vector<std::string>& axes, const std::string& order);
  ValueId dot(ValueId a, ValueId b, const std::vector<std::string>& over, DType dtype = DType::f32);
  ValueId rename(ValueId x, const std::vector<std::string>& from, const std::vector<std::string>& to);

 private:
  Block* block_;
  std::string scope_;
  std::string location_;
};

// axes and sizes attributes of a shape.
Attrs shape_attrs(const std::vector<Axis>& axes);

// Copies block's ops behind builder's, with block's parameters replaced by `args`; returns the values that
// stand for block's results. Marks are kept. `map`, when given, receives the new id of each of block's values
// (-1: none).
std::vector<ValueId> inline_block(Builder& builder, const Block& block, const std::vector<ValueId>& args,
                                  std::vector<ValueId>* map = nullptr);

}  // namespace ostro::ir
