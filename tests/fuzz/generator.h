// The generator behind random_case: one Frame per block (program body or region) with a pool of values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/ir/builder.h"
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
  // A family of ops and a dtype that this program draws more often, so that rare ones meet; -1: none.
  int64_t focus_family = -1;
  int focus_dtype = -1;
  bool smooth = false;  // only what has a derivative, f32 and bf16

  const Axis& axis(const std::string& name) const;
  // One to three distinct axes, in random order.
  std::vector<Axis> some_axes();
};

class Frame {
 public:
  Frame(World& world, Frame* outer) : world_(world), outer_(outer), builder_(block) {}

  ir::Block block;
  std::vector<ValueId> captured;  // values of the outer frame behind the parameters made by fresh()
  std::vector<ValueId> captured_params;
  std::vector<ValueId> outputs;  // worth returning

  // A value of this shape: from the pool, broadcast and cast, or a new parameter.
  ValueId value(const Shape& shape);
  // A new parameter: an input of the program, or a capture from the outer frame.
  ValueId fresh(const Shape& shape);
  void add_to_pool(ValueId v) { pool_.push_back(v); }
  // Adds one random op with its operands. Draws again when the draw was not legal.
  void grow(bool allow_scan);
  ir::Builder& builder() { return builder_; }
  // A value of the pool with a floating type, cast to f32.
  ValueId float_from_pool();

 private:
  using Ids = std::vector<ValueId>;

  DType some_float() { return world_.rng.chance(0.5) ? DType::f32 : DType::bf16; }
  DType some_number();
  Shape some_shape(DType dtype) { return {dtype, world_.some_axes()}; }
  ValueId splat(double v, const Shape& shape) { return builder_.splat(v, shape); }
  // Appends and puts the results into the pool (tamed) and sometimes into the outputs.
  void emit(OpKind kind, const Ids& operands, Attrs attrs = {}, std::vector<ir::Block> regions = {});
  // Finite and small: what goes on into other ops.
  ValueId tame(ValueId v);

  void grow_source();
  void grow_elementwise();
  void grow_integer();
  void grow_layout();
  void grow_indexed();
  void grow_reduction();
  void grow_dot();
  void grow_attention();
  void grow_cross_entropy();
  void grow_state();
  void grow_scan();
  void grow_branch();

  World& world_;
  Frame* outer_;
  ir::Builder builder_;
  std::vector<ValueId> pool_;
};

}  // namespace ostro::fuzz
