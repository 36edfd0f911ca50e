#include "ostro/cuda/text/nest_writer.h"

#include <fmt/format.h>

#include "ostro/compile/text/expressions.h"
#include "ostro/cuda/text/device_text.h"

namespace ostro::cuda {

using compile::memory_type;
using compile::NestAccess;
using compile::NestKind;
using compile::NestOp;
using compile::NestOperand;
using compile::register_type;
using ir::DType;

std::string times(const std::string& index, int64_t stride) {
  return stride == 1 ? index : fmt::format("{} * {}ll", index, stride);
}

std::string NestWriter::write() {
  const bool stages = is_staged(nest_, fast_), waits = nest_.kind == NestKind::kRows || stages;
  std::string statements = nest_.kind == NestKind::kFlat   ? (fast_ ? flat_side_by_side() : flat())
                           : nest_.kind == NestKind::kRows ? rows()
                           : stages                        ? staged()
                                                           : serial();
  const std::string bounds = stages ? fmt::format(", {}, 1", 32 + kStagedMakers) : "";
  std::string text =
      fmt::format("struct {0}_args {{\n  u64 p[{1}];\n  i64 extent;\n}};\n{2}({0}, {0}_args{3}) {{\n", name_,
                  nest_.accesses.size(),
                  stages  ? "TILED_KERNEL"
                  : waits ? "BLOCK_KERNEL"
                          : "KERNEL",
                  bounds);
  text += literal_text_;
  for (size_t k = 0; k < nest_.accesses.size(); ++k) {
    const NestAccess& a = nest_.accesses[k];
    const std::string type = fmt::format("{}{}", a.store ? "" : "const ", memory_type(a.dtype));
    text += fmt::format("  {0}* const p{1} = AT({0}, a.p[{1}]);\n", type, k);
  }
  return text + statements + "}\n";
}

std::string NestWriter::literal(int32_t i) {
  const auto [it, fresh] = literals_.try_emplace(i, fmt::format("c{}", literals_.size()));
  const compile::NestLiteral& l = nest_.literals[static_cast<size_t>(i)];
  if (fresh)
    literal_text_ += fmt::format("  const {} {} = {};\n", register_type(l.dtype), it->second,
                                 compile::literal_expr(l.dtype, l.bits));
  return it->second;
}

std::string NestWriter::load(size_t access) const {
  const int64_t stride = nest_.inner_stride(access);
  return compile::load_expr(nest_.accesses[access].dtype,
                            fmt::format("q{}[{}]", access, stride == 0 ? "0" : times("j", stride)));
}

std::string NestWriter::operand(const NestOperand& x, std::string& text) {
  if (x.from == NestOperand::From::kLiteral) return literal(x.index);
  if (x.from == NestOperand::From::kOp) return names_.at(x.index);
  const auto access = static_cast<size_t>(x.index);
  const auto [it, fresh] = loads_.try_emplace(access, fmt::format("x{}", access));
  if (fresh)
    text += fmt::format("    const {} {} = {};\n", register_type(nest_.accesses[access].dtype), it->second,
                        load(access));
  return it->second;
}

void NestWriter::compute(int32_t i, std::string& text) {
  const NestOp& o = op(i);
  std::vector<DType> from;
  std::vector<std::string> args;
  for (const NestOperand& x : o.operands) {
    from.push_back(nest_.dtype_of(x));
    args.push_back(operand(x, text));
  }
  const std::string name = fmt::format("v{}_{}", i, number_++);
  text += fmt::format("    const {} {} = {};\n", register_type(o.dtype), name,
                      compile::op_expr(o.kind, from, o.dtype, args, cuda_dialect()));
  names_[i] = name;
}

std::string NestWriter::store(int32_t i, const std::string& index) const {
  return fmt::format("    q{}[{}] = {};\n", op(i).store, index,
                     compile::store_expr(op(i).dtype, names_.at(i)));
}

std::string NestWriter::stored_index(int32_t i) const {
  return nest_.inner ? times("j", nest_.inner_stride(static_cast<size_t>(op(i).store))) : "0";
}

std::string NestWriter::pointers(char letter) const {
  const std::vector<int64_t>& outer = nest_.outer;
  std::string text = outer.size() > 1 ? "    i64 rest = row;\n" : "";
  for (size_t i = outer.size(); i-- > 0;) {
    const std::string from = outer.size() > 1 ? "rest" : "row";
    if (i == 0)
      text += fmt::format("    const i64 i0 = {};\n", from);
    else
      text += fmt::format("    const i64 i{0} = rest % {1};\n    rest /= {1};\n", i, outer[i]);
  }
  for (size_t k = 0; k < nest_.accesses.size(); ++k) {
    const NestAccess& a = nest_.accesses[k];
    std::string at = fmt::format("p{}", k);
    for (size_t i = 0; i < outer.size(); ++i)
      if (a.strides[i] != 0) at += fmt::format(" + {}", times(fmt::format("i{}", i), a.strides[i]));
    text += fmt::format("    {}{}* const {}{} = {};\n", a.store ? "" : "const ", memory_type(a.dtype), letter,
                        k, at);
  }
  return text;
}

}  // namespace ostro::cuda
