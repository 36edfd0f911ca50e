// Collector: collects named programs; with it and short names for types the lists of programs are written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/ir/program/builder.h"
#include "programs.h"

namespace ostro::testing {

using ir::Attrs;
using ir::Axis;
using ir::Builder;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;
using Values = std::vector<ValueId>;
using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

inline Shape f32(std::vector<Axis> axes) { return {DType::f32, std::move(axes)}; }
inline Shape bf16(std::vector<Axis> axes) { return {DType::bf16, std::move(axes)}; }
inline Shape i32(std::vector<Axis> axes) { return {DType::i32, std::move(axes)}; }
inline Shape of(DType d, std::vector<Axis> axes) { return {d, std::move(axes)}; }

class Collector {
 public:
  // body(builder, parameters) -> results.
  template <typename F>
  void add(std::string name, std::vector<Shape> params, F body, numerics::LeafTable leaves = {}) {
    ir::Program p;
    p.name = name;
    p.leaves = std::move(leaves);
    Values in;
    for (Shape& s : params) in.push_back(p.body.add_param(std::move(s)));
    Builder b(p.body);
    p.body.results = body(b, in);
    const bool finite_only = name.starts_with("attention") || name.starts_with("cross_entropy");
    programs.push_back({std::move(name), std::move(p), finite_only});
  }
  std::vector<NamedProgram> programs;
};

// Ops that move elements; values that are made in their places of a stack or concat (programs_layout.cc).
void add_layout(Collector& c);
void add_joined(Collector& c);
// Attention of many sizes and masks (programs_attention.cc).
void add_attention(Collector& c);
// Integer products (programs_integers.cc).
void add_integers(Collector& c);
// Long sums and wide rows (programs_long.cc).
void add_long(Collector& c);

}  // namespace ostro::testing
