// eval: runs one op on concrete values, for tests.
#pragma once

#include <cstring>
#include <vector>

#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/builder.h"
#include "ostro/numerics/bf16.h"

namespace ostro::interp {

using ir::OpKind;
using runtime::Buffer;
using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

inline Result<std::vector<Buffer>> try_eval(OpKind kind, const std::vector<Buffer>& in, ir::Attrs attrs = {},
                                            numerics::LeafTable leaves = {},
                                            std::vector<ir::Block> regions = {}) {
  ir::Program p;
  p.name = "test";
  p.leaves = std::move(leaves);
  std::vector<ir::ValueId> operands;
  for (const Buffer& b : in) operands.push_back(p.body.add_param(b.shape()));
  ASSIGN_OR_RETURN(p.body.results,
                   ir::Builder(p.body).try_add(kind, operands, std::move(attrs), std::move(regions)));
  auto engine = make_interpreter();
  ASSIGN_OR_RETURN(auto executable, engine->compile(p));
  return executable->run(in);
}

inline std::vector<Buffer> eval_n(OpKind kind, const std::vector<Buffer>& in, ir::Attrs attrs = {},
                                  numerics::LeafTable leaves = {}, std::vector<ir::Block> regions = {}) {
  auto results = try_eval(kind, in, std::move(attrs), std::move(leaves), std::move(regions));
  OSTRO_CHECK(results.ok(), "{}", results.error().message());
  return std::move(results).value();
}

inline Buffer eval(OpKind kind, const std::vector<Buffer>& in, ir::Attrs attrs = {},
                   numerics::LeafTable leaves = {}) {
  return eval_n(kind, in, std::move(attrs), std::move(leaves))[0];
}

template <typename T>
Buffer make(ir::DType dtype, std::vector<ir::Axis> axes, const std::vector<T>& values) {
  const ir::Shape shape{dtype, std::move(axes)};
  OSTRO_CHECK(shape.count() == static_cast<int64_t>(values.size()) && ir::dtype_size(dtype) == sizeof(T),
              "{}", shape.str());
  return Buffer::copy_of(shape, values.data());
}
inline Buffer f32(std::vector<ir::Axis> axes, const std::vector<float>& values) {
  return make(ir::DType::f32, std::move(axes), values);
}
inline Buffer i32(std::vector<ir::Axis> axes, const std::vector<int32_t>& values) {
  return make(ir::DType::i32, std::move(axes), values);
}
inline Buffer bf16(std::vector<ir::Axis> axes, const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (float v : values) bits.push_back(numerics::to_bf16(v).bits);
  return make(ir::DType::bf16, std::move(axes), bits);
}
inline Buffer boolean(std::vector<ir::Axis> axes, const std::vector<uint8_t>& values) {
  return make(ir::DType::boolean, std::move(axes), values);
}
inline Buffer origin(int64_t value) { return Buffer::scalar(ir::DType::i64, value); }

template <typename T>
std::vector<T> list(const Buffer& b) {
  return {b.as<T>().begin(), b.as<T>().end()};
}
// Equal bits.
template <typename T>
bool same(const Buffer& b, const std::vector<T>& expected) {
  return list<T>(b).size() == expected.size() &&
         std::memcmp(b.bytes().data(), expected.data(), b.bytes().size()) == 0;
}

}  // namespace ostro::interp
