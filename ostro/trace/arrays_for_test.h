// array, values, DefaultInterpreter: arrays from lists, lists from arrays, and the interpreter as default
// engine, for tests.
#pragma once

#include <cstring>
#include <vector>

#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/program.h"
#include "ostro/trace/array.h"

namespace ostro::test {

inline runtime::Engine& interpreter() {
  static const auto engine = interp::make_interpreter();
  return *engine;
}

// Makes the interpreter the default engine. Declare one at the beginning of a test case.
struct DefaultInterpreter {
  DefaultInterpreter() { set_default_engine(&interpreter()); }
};

template <typename T>
Array array(DType dtype, std::vector<Axis> axes, const std::vector<T>& values) {
  const Shape shape{dtype, std::move(axes)};
  OSTRO_CHECK(shape.count() == static_cast<int64_t>(values.size()), "{} from {} values", shape.str(),
              values.size());
  return Array(runtime::Buffer::copy_of(shape, values.data()));
}
inline Array f32(std::vector<Axis> axes, const std::vector<float>& v) {
  return array(DType::f32, std::move(axes), v);
}
inline Array f64(std::vector<Axis> axes, const std::vector<double>& v) {
  return array(DType::f64, std::move(axes), v);
}
inline Array i32(std::vector<Axis> axes, const std::vector<int32_t>& v) {
  return array(DType::i32, std::move(axes), v);
}

template <typename T>
std::vector<T> values(const Array& a) {
  const auto s = a.buffer().as<T>();
  return {s.begin(), s.end()};
}

inline bool same_bits(const Array& a, const Array& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.buffer().bytes().data(), b.buffer().bytes().data(), a.buffer().bytes().size()) == 0;
}

// Returns the number of ops of the kind in the block itself, without its regions.
inline int count_ops(const ir::Block& block, ir::OpKind kind) {
  int n = 0;
  for (const ir::Op& op : block.ops) n += op.kind == kind;
  return n;
}

inline const ir::Op* find_op(const ir::Block& block, ir::OpKind kind) {
  for (const ir::Op& op : block.ops)
    if (op.kind == kind) return &op;
  return nullptr;
}

}  // namespace ostro::test
