#include "ostro/compile/nest/nest.h"

#include <fmt/format.h>

namespace ostro::compile {
namespace {

const char* nest_kind_name(NestKind kind) {
  switch (kind) {
    case NestKind::kFlat: return "flat";
    case NestKind::kRows: return "rows";
    case NestKind::kSerial: return "serial";
  }
  return "?";
}

std::string size_text(int64_t size) { return size == kGivenSize ? "given" : fmt::format("{}", size); }

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + size_text(size);
  return '[' + text + ']';
}

std::string operand_text(const NestOperand& operand) {
  constexpr const char* kLetters[] = {"v", "x", "c"};
  return fmt::format(" {}{}", kLetters[static_cast<size_t>(operand.from)], operand.index);
}

}  // namespace

bool is_row_reduction(ir::OpKind kind) {
  return kind == ir::OpKind::sum || kind == ir::OpKind::reduce_max || kind == ir::OpKind::reduce_min;
}

ir::DType Nest::dtype_of(const NestOperand& operand) const {
  const auto i = static_cast<size_t>(operand.index);
  switch (operand.from) {
    case NestOperand::From::kAccess: return accesses[i].dtype;
    case NestOperand::From::kLiteral: return literals[i].dtype;
    case NestOperand::From::kOp: break;
  }
  return ops[i].dtype;
}

std::string Nest::str() const {
  std::string text =
      fmt::format("{} outer {} inner {} summed {} tile {}\n", nest_kind_name(kind), sizes_text(outer),
                  inner ? size_text(*inner) : "none", sizes_text(summed), tile);
  for (size_t i = 0; i < accesses.size(); ++i)
    text += fmt::format("{}{}: {} {} strides [{}]\n", accesses[i].store ? "y" : "x", i,
                        accesses[i].store ? "store" : "load", ir::dtype_name(accesses[i].dtype),
                        fmt::join(accesses[i].strides, ", "));
  for (size_t i = 0; i < literals.size(); ++i)
    text += fmt::format("c{}: {} 0x{:x}\n", i, ir::dtype_name(literals[i].dtype), literals[i].bits);
  for (size_t i = 0; i < ops.size(); ++i) {
    text += fmt::format("v{}: {} {}", i, ir::dtype_name(ops[i].dtype), ir::op_name(ops[i].kind));
    for (const NestOperand& operand : ops[i].operands) text += operand_text(operand);
    if (ops[i].row) text += " row";
    if (ops[i].store >= 0) text += fmt::format(" -> y{}", ops[i].store);
    if (ops[i].saved >= 0) text += fmt::format(" saved in pass {}", ops[i].saved);
    text += '\n';
  }
  for (const NestPass& pass : passes)
    text += fmt::format("pass: rows [{}] ops [{}] stores [{}] reductions [{}]\n",
                        fmt::join(pass.row_ops, ", "), fmt::join(pass.ops, ", "),
                        fmt::join(pass.stores, ", "), fmt::join(pass.reductions, ", "));
  return text;
}

}  // namespace ostro::compile
