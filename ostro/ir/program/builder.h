// Builder: appends ops to a Block and infers result shapes. Passes, grad and tracing all build with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::ir {

class Builder {
 public:
  // Does not own the block, which must outlive it. Not thread-safe.
  explicit Builder(Block& block) : block_(&block) {}

  Block& block() { return *block_; }

  // Sets the marks that every op gets that is appended from now on.
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  void set_location(std::string location) { location_ = std::move(location); }
  const std::string& scope() const { return scope_; }

  // Appends an op and returns its results. An error is that of the op's shape rule.
  Result<std::vector<ValueId>> try_add(OpKind kind, std::vector<ValueId> operands, Attrs attrs = {},
                                       std::vector<Block> regions = {});
  // Appends an op that must be valid; aborts with the shape rule's error when it is not.
  std::vector<ValueId> add_n(OpKind kind, std::vector<ValueId> operands, Attrs attrs = {},
                             std::vector<Block> regions = {});
  ValueId add(OpKind kind, std::vector<ValueId> operands, Attrs attrs = {}) {
    return add_n(kind, std::move(operands), std::move(attrs))[0];
  }

  const Shape& shape(ValueId v) const { return block_->shape(v); }

  // Short forms of the ops that passes and grad append most often.
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

// The attributes "axes" and "sizes" of a shape with these axes.
Attrs shape_attrs(const std::vector<Axis>& axes);

// Appends a copy of `op`, an op of the block `from`, to the block `to`. ids: for each value of `from` its id
// in `to`, or -1. The copy's results get new ids, which are entered where ids has -1.
void append_copy(Block& to, const Block& from, const Op& op, std::vector<ValueId>& ids);

// Appends a copy of block's ops to the builder's block, with block's parameters replaced by `args`, of which
// there must be one for each. Returns the ids that block's results have there. Marks (scope, label, location)
// are kept. `map`, when given, receives the new id of each of block's values (-1: none).
std::vector<ValueId> inline_block(Builder& builder, const Block& block, const std::vector<ValueId>& args,
                                  std::vector<ValueId>* map = nullptr);

}  // namespace ostro::ir
