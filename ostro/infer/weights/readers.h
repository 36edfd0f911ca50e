// Reader, readers_of, all_readers_of, plain_uses_of, is_product_with: what reads a value of a program, for
// those who give its weights another form.
#pragma once

#include <algorithm>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::infer {

// The ops that read a value, by their places.
inline std::vector<size_t> readers_of(const ir::Block& body, ir::ValueId value) {
  std::vector<size_t> out;
  for (size_t i = 0; i < body.ops.size(); ++i)
    if (std::ranges::count(body.ops[i].operands, value) > 0) out.push_back(i);
  return out;
}

// Whether the op is a `use` that casts nothing.
inline bool is_plain_use(const ir::Block& body, const ir::Op& op) {
  return op.kind == ir::OpKind::use && body.shape(op.results[0]) == body.shape(op.operands[0]);
}

// The results of the uses of a parameter that cast nothing.
inline std::vector<ir::ValueId> plain_uses_of(const ir::Block& body, ir::ValueId param) {
  std::vector<ir::ValueId> out;
  for (const size_t i : readers_of(body, param))
    if (is_plain_use(body, body.ops[i])) out.push_back(body.ops[i].results[0]);
  return out;
}

struct Reader {
  size_t op = 0;      // its place
  ir::ValueId value;  // what it reads: the parameter, or what a plain use of it gives
};

// What reads a parameter, also through plain uses. Both may be read by one op, which is then there twice.
inline std::vector<Reader> all_readers_of(const ir::Block& body, ir::ValueId param) {
  std::vector<Reader> out;
  for (const size_t i : readers_of(body, param))
    if (!is_plain_use(body, body.ops[i])) out.push_back({i, param});
  for (const ir::ValueId same : plain_uses_of(body, param))
    for (const size_t i : readers_of(body, same)) out.push_back({i, same});
  return out;
}

// Whether the op is one product, no batch of them, with `weight` as its second operand.
inline bool is_product_with(const ir::Block& body, const ir::Op& op, ir::ValueId weight) {
  if (op.kind != ir::OpKind::dot || op.operands[1] != weight || op.operands[0] == weight) return false;
  const std::vector<std::string>& over = op.attrs.strs("over");
  return std::ranges::none_of(body.shape(weight).axes, [&](const ir::Axis& axis) {
    return std::ranges::count(over, axis.name) == 0 && body.shape(op.operands[0]).has(axis.name);
  });
}

}  // namespace ostro::infer
