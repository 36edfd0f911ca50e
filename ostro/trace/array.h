// Array: the value that model code computes with. A small handle, cheap to copy, immutable.
//
// An Array is either traced (a value of the program being built on this thread) or concrete (a Buffer).
// Outside any trace, ops on concrete arrays run at once on the default engine, and their results are brought
// to the host. Inside a trace, a concrete array becomes a constant of the program. A traced array may be used
// only on the thread that traces it.
#pragma once

#include <memory>
#include <optional>
#include <source_location>
#include <string_view>

#include "ostro/ir/program/program.h"
#include "ostro/runtime/buffer.h"
#include "ostro/runtime/engine.h"

namespace ostro {

using ir::Axis;
using ir::DType;
using ir::Shape;

class Frame;  // the program under construction (frame.h)

// Shares its node with copies. Concrete arrays may be read by several threads.
class Array {
 public:
  Array() = default;
  explicit Array(runtime::Buffer buffer);
  Array(Frame* frame, ir::ValueId id, Shape shape);

  bool valid() const { return node_ != nullptr; }
  const Shape& shape() const;
  DType dtype() const { return shape().dtype; }
  // TraceError when the axis is missing.
  int64_t size(std::string_view axis, std::source_location location = std::source_location::current()) const;
  bool has(std::string_view axis) const { return shape().has(axis); }
  bool traced() const;
  // The concrete value; TraceError when traced.
  const runtime::Buffer& buffer() const;

  // The compute dtype with which a parameter is tagged, if it is. The first op of a program that reads a
  // tagged parameter emits one `use` (a cast, and on a mesh also a gather). compute() in nn/policy.h sets the
  // tag.
  std::optional<DType> use_dtype() const;
  // This array with another tag, or with none.
  Array tagged(std::optional<DType> dtype) const;

  // Deleted on purpose: the value of a traced array is not known while tracing. Use select() or cond().
  explicit operator bool() const = delete;

  struct Node;
  const std::shared_ptr<const Node>& node() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

struct Array::Node {
  Shape shape;
  uint64_t frame_serial = 0;  // 0: concrete
  ir::ValueId id = -1;
  runtime::Buffer buffer;
  std::optional<DType> use_dtype;
};

// An operand of an operator or function: an Array or a literal, with the call site for errors.
// A literal takes the dtype of the other operand (f32 beside bf16).
class Operand {
 public:
  using Location = std::source_location;
  Operand(const Array& a, Location loc = Location::current()) : array_(&a), loc_(loc) {}  // NOLINT
  Operand(double v, Location loc = Location::current()) : literal_(v), loc_(loc) {}       // NOLINT
  Operand(float v, Location loc = Location::current()) : literal_(v), loc_(loc) {}        // NOLINT
  Operand(int v, Location loc = Location::current()) : literal_(v), loc_(loc) {}          // NOLINT
  Operand(int64_t v, Location loc = Location::current())
      : literal_(static_cast<double>(v)), loc_(loc) {}  // NOLINT

  const Array* array() const { return array_; }
  double literal() const { return literal_; }
  const Location& location() const { return loc_; }

 private:
  const Array* array_ = nullptr;
  double literal_ = 0;
  Location loc_;
};

// The engine that runs eager ops, jit and value_and_grad; set once in main (not owned).
void set_default_engine(runtime::Engine* engine);
runtime::Engine& default_engine();  // TraceError when none was set

namespace jit_internal {
// A number that changes with every set_default_engine(). The jit cache needs it, because an executable
// belongs to the engine that made it.
uint64_t engine_serial();
}  // namespace jit_internal

}  // namespace ostro
