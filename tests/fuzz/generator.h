// World, Frame: the generator behind random_case: one Frame per block (program body or region) with a pool of
// values.
#pragma once

#include <string>
#include <vector>

#include "combination.h"
#include "ostro/ir/program/builder.h"
#include "rng.h"

namespace ostro::fuzz {

using ir::Attrs;
using ir::Axis;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

// Choices shared by all blocks of one program.
struct World {
  explicit World(uint64_t seed);

  Rng rng;
  std::vector<Axis> axes;  // every axis has one size in the whole program
  numerics::LeafTable leaves;
  bool smooth = false;               // only what has a derivative, f32 and bf16
  std::vector<Combination> targets;  // what the program holds by construction

  const Axis& axis(const std::string& name) const;
  // One to three distinct axes, in random order.
  std::vector<Axis> some_axes();
  // Makes sure that the leaf table cuts the axis.
  void cut(const std::string& axis);
  // Any op that may stand here, a fused one or a loop more seldom.
  OpKind some_kind(bool allow_scan);
  // A dtype the op takes, mostly f32 or bf16.
  DType some_dtype(OpKind kind);
};

class Frame {
 public:
  Frame(World& world, Frame* outer) : world_(world), outer_(outer), builder_(block) {}

  ir::Block block;
  std::vector<ValueId> captured;         // values of the outer frame
  std::vector<ValueId> captured_params;  // what stands for them here
  std::vector<ValueId> outputs;          // worth returning
  std::vector<ValueId> kept;             // to be returned: they show what targets compute

  // A value of this shape: from the pool, broadcast and cast, or a new parameter.
  ValueId value(const Shape& shape);
  // A new parameter: an input of the program, or any fitting value of the outer frame.
  ValueId fresh(const Shape& shape);
  // A new input of the program, through all frames.
  ValueId input(const Shape& shape);
  void add_to_pool(ValueId v) { pool_.push_back(v); }
  // Adds `steps` random ops with their operands, and the targets, in random order; those that belong into a
  // scan in one, unless this is its body.
  void grow(int64_t steps, const std::vector<Combination>& targets);
  ir::Builder& builder() { return builder_; }
  // A value of the pool with a floating type, cast to f32.
  ValueId float_from_pool();
  // The value made finite and small, as operands of other ops are.
  ValueId tame(ValueId v);

 private:
  using Ids = std::vector<ValueId>;

  // The parameter that stands for a value of the outer frame.
  ValueId capture(ValueId of_outer);
  DType some_float() { return world_.rng.chance(0.5) ? DType::f32 : DType::bf16; }
  // A value of this shape that is made for one reader alone, mostly by a kernel of rows.
  ValueId part(const Shape& shape);
  // The dtype of a second operand beside one of `dtype`: f32 and bf16 mix.
  DType beside(DType dtype);
  Shape some_shape(DType dtype) { return {dtype, world_.some_axes()}; }
  ValueId splat(double v, const Shape& shape) { return builder_.splat(v, shape); }
  // Appends and puts the results into the pool (tamed) and sometimes into the outputs.
  Ids emit(OpKind kind, const Ids& operands, Attrs attrs = {}, std::vector<ir::Block> regions = {});
  void keep(const Ids& results);

  // These end with the op asked for, with that dtype (dtype_of), and return its results.
  Ids grow_op(OpKind kind, DType dtype);
  Ids grow_source(OpKind kind, DType dtype);
  Ids grow_unary(OpKind kind, DType dtype);
  Ids grow_binary(OpKind kind, DType dtype);
  Ids grow_conversion(OpKind kind, DType dtype);
  Ids grow_layout(OpKind kind, DType dtype);
  Ids grow_joining(OpKind kind, DType dtype);
  Ids grow_indexed(OpKind kind, DType dtype);
  Ids grow_ordered(OpKind kind, DType dtype);
  Ids grow_reduction(OpKind kind, DType dtype);
  Ids grow_dot(DType dtype);
  // The attributes of a product of this dtype, now and then with the rule of tensor cores (product_rule.h).
  Attrs with_some_rule(Attrs attrs, DType dtype);
  Ids grow_dequantize();
  Ids grow_integers(OpKind kind, DType dtype);
  // Rows that choose experts: their axes, and those that a product over `inner` has besides.
  struct Experts {
    Axis axis;
    std::vector<Axis> rows, inner, outer;
  };
  Experts some_experts();
  // An operand with some of the rows' axes and all of `rest`.
  Shape some_rows(const Experts& e, const std::vector<Axis>& rest, DType dtype);
  ValueId expert_origin();
  Ids grow_experts(OpKind kind, DType dtype);
  Ids grow_integer_experts(OpKind kind, DType dtype);
  // The value quantised by `attrs`, to nearest or dithered.
  Ids quantized(const Shape& shape, const Attrs& attrs);
  // Adds the origins of a value of this shape; returns the sizes of the whole array.
  std::vector<int64_t> add_origins(const Shape& shape, Ids& operands);
  Ids grow_attention(OpKind kind, DType dtype);
  Ids grow_paged(OpKind kind, DType dtype);
  Ids grow_cross_entropy(OpKind kind);
  Ids grow_state(OpKind kind, DType dtype);
  Ids grow_scan(DType dtype, const std::vector<Combination>& targets);
  // The next value of a loop's carry.
  ValueId step(ValueId carry);
  Ids grow_cond(DType dtype);
  Ids grow_custom();

  World& world_;
  Frame* outer_;
  ir::Builder builder_;
  std::vector<ValueId> pool_;
  size_t emitted_ = 0;  // index in block.ops of the op appended last by emit()
};

}  // namespace ostro::fuzz
