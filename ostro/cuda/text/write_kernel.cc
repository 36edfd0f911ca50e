#include "ostro/cuda/text/write_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ostro/compile/text/expressions.h"
#include "ostro/cuda/text/device_text.h"

namespace ostro::cuda {
namespace {

using compile::memory_type;
using compile::Nest;
using compile::NestAccess;
using compile::NestKind;
using compile::NestOp;
using compile::NestOperand;
using compile::NestPass;
using compile::register_type;
using ir::DType;
using ir::OpKind;

std::string times(const std::string& index, int64_t stride) {
  return stride == 1 ? index : fmt::format("{} * {}ll", index, stride);
}

// Writes one nest. names_ and loads_ say what is in registers.
class NestWriter {
 public:
  NestWriter(const Nest& nest, std::string name) : nest_(nest), name_(std::move(name)) {}

  std::string write() {
    std::string statements = nest_.kind == NestKind::kFlat   ? flat()
                             : nest_.kind == NestKind::kRows ? rows()
                                                             : serial();
    std::string text =
        fmt::format("struct {0}_args {{\n  u64 p[{1}];\n  i64 extent;\n}};\n{2}({0}, {0}_args) {{\n", name_,
                    nest_.accesses.size(), nest_.kind == NestKind::kRows ? "BLOCK_KERNEL" : "KERNEL");
    text += literal_text_;
    for (size_t k = 0; k < nest_.accesses.size(); ++k) {
      const NestAccess& a = nest_.accesses[k];
      const std::string type = fmt::format("{}{}", a.store ? "" : "const ", memory_type(a.dtype));
      text += fmt::format("  {0}* const p{1} = AT({0}, a.p[{1}]);\n", type, k);
    }
    return text + statements + "}\n";
  }

 private:
  const NestOp& op(int32_t i) const { return nest_.ops[static_cast<size_t>(i)]; }

  std::string literal(int32_t i) {
    const auto [it, fresh] = literals_.try_emplace(i, fmt::format("c{}", literals_.size()));
    const compile::NestLiteral& l = nest_.literals[static_cast<size_t>(i)];
    if (fresh)
      literal_text_ += fmt::format("  const {} {} = {};\n", register_type(l.dtype), it->second,
                                   compile::literal_expr(l.dtype, l.bits));
    return it->second;
  }

  std::string operand(const NestOperand& x, std::string& text) {
    if (x.from == NestOperand::From::kLiteral) return literal(x.index);
    if (x.from == NestOperand::From::kOp) return names_.at(x.index);
    const auto access = static_cast<size_t>(x.index);
    const auto [it, fresh] = loads_.try_emplace(access, fmt::format("x{}", access));
    if (!fresh) return it->second;
    const DType d = nest_.accesses[access].dtype;
    const int64_t stride = nest_.inner_stride(access);
    text += fmt::format(
        "    const {} {} = {};\n", register_type(d), it->second,
        compile::load_expr(d, fmt::format("q{}[{}]", access, stride == 0 ? "0" : times("j", stride))));
    return it->second;
  }

  void compute(int32_t i, std::string& text) {
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

  std::string store(int32_t i, const std::string& index) const {
    return fmt::format("    q{}[{}] = {};\n", op(i).store, index,
                       compile::store_expr(op(i).dtype, names_.at(i)));
  }
  std::string stored_index(int32_t i) const {
    return nest_.inner ? times("j", nest_.inner_stride(static_cast<size_t>(op(i).store))) : "0";
  }

  // The indices of the outer loops from the number `row`, and with them the pointer of each access, called
  // `letter` and its number.
  std::string pointers(char letter) const {
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
      text += fmt::format("    {}{}* const {}{} = {};\n", a.store ? "" : "const ", memory_type(a.dtype),
                          letter, k, at);
    }
    return text;
  }

  std::string flat() {
    std::string text;
    for (const int32_t i : nest_.passes[0].ops) compute(i, text);
    for (const int32_t i : nest_.passes[0].stores) text += store(i, stored_index(i));
    if (nest_.outer.empty())
      return "  const i64 j = global_thread();\n  if (j >= a.extent) return;\n" + pointers('q') + text;
    const int64_t n = nest_.row_size();
    return fmt::format(
               "  const i64 t = global_thread();\n  if (t >= a.extent * {0}ll) return;\n  const i64 row = t "
               "/ {0}ll, j = t % "
               "{0}ll;\n",
               n) +
           pointers('q') + text;
  }

  // A lane of a reduction: declared before the loop of its pass, added to in it; after it all threads have
  // the result.
  void reduce(int32_t i, std::string& before, std::string& text, std::string& after) {
    const NestOp& o = op(i);
    const char* type = register_type(o.dtype);
    const char* bits = o.dtype == DType::f64 ? "64" : "32";
    const std::string x = operand(o.operands[0], text), lane = fmt::format("lane{}", i);
    const char* word = o.kind == OpKind::sum ? "sum" : o.kind == OpKind::reduce_max ? "max" : "min";
    if (o.kind == OpKind::sum) {
      before += fmt::format("    {} {} = 0;\n", type, lane);
      text += fmt::format("    {0} = {0} + ({1}){2};\n", lane, type, x);
    } else {
      before += fmt::format("    {} {} = {}{};\n", type, lane, o.kind == OpKind::reduce_max ? "-" : "",
                            cuda_dialect().infinity);
      text += fmt::format("    {0} = {1}{2}({0}, {3});\n", lane, word, bits, x);
    }
    after += fmt::format("    const {} v{}r = row_{}{}({});\n", type, i, word, bits, lane);
  }

  std::string pass_text(size_t number) {
    const NestPass& pass = nest_.passes[number];
    const auto row_names = names_;
    const auto row_loads = loads_;
    std::string text;
    for (const int32_t i : pass.ops) {
      const int32_t saved = op(i).saved;
      if (saved >= 0 && static_cast<size_t>(saved) < number) {
        names_[i] = fmt::format("r{}", i);
        text += fmt::format("    const {} {} = kept{}[s];\n", register_type(op(i).dtype), names_[i], i);
        continue;
      }
      compute(i, text);
      if (saved >= 0) text += fmt::format("    kept{}[s] = {};\n", i, names_.at(i));
      if (std::find(pass.stores.begin(), pass.stores.end(), i) != pass.stores.end())
        text += store(i, stored_index(i));
    }
    std::string before, after;
    for (const int32_t i : pass.reductions) reduce(i, before, text, after);
    names_ = row_names;
    loads_ = row_loads;
    for (const int32_t i : pass.reductions) names_[i] = fmt::format("v{}r", i);
    if (text.empty()) return before + after;
    return before +
           fmt::format("    for (i64 j = THREAD, s = 0; j < {}; j += 64, ++s) {{\n    (void)s;\n{}    }}\n",
                       nest_.row_size(), text) +
           after;
  }

  std::string rows() {
    std::string text = "  const i64 row = BLOCK_X;\n" + pointers('q');
    for (int32_t i = 0; i < static_cast<int32_t>(nest_.ops.size()); ++i)
      if (op(i).saved >= 0)
        text += fmt::format("  {} kept{}[{}];\n", register_type(op(i).dtype), i,
                            std::max<int64_t>(1, (nest_.row_size() + 63) / 64));
    for (size_t p = 0; p < nest_.passes.size(); ++p) {
      for (const int32_t i : nest_.passes[p].row_ops) compute(i, text);
      text += pass_text(p);
    }
    for (int32_t i = 0; i < static_cast<int32_t>(nest_.ops.size()); ++i)
      if (op(i).row && op(i).store >= 0) text += "    if (THREAD == 0)\n  " + store(i, "0");
    return text;
  }

  std::string serial() {
    const auto sum = static_cast<int32_t>(nest_.ops.size()) - 1;
    const int64_t n = nest_.row_size();
    std::string text;
    for (const int32_t i : nest_.passes[0].ops) compute(i, text);
    const char* type = register_type(op(sum).dtype);
    const std::string element = operand(op(sum).operands[0], text);
    text += fmt::format("    acc = acc + ({}){};\n", type, element);
    std::string body = fmt::format(
        "  const i64 t = global_thread();\n  if (t >= a.extent * {0}ll) return;\n  const i64 row = t / "
        "{0}ll, j = t % "
        "{0}ll;\n  (void)row;\n  (void)j;\n",
        n);
    // The pointers s stand still; inside the loops over the sum those called q move on.
    body += pointers('s') + fmt::format("    {} acc = 0;\n", type);
    const std::vector<int64_t>& loops = nest_.summed;
    for (size_t i = 0; i < loops.size(); ++i)
      body += fmt::format("    for (i64 r{0} = 0; r{0} < {1}; ++r{0})\n", i, loops[i]);
    body += "    {\n";
    for (size_t k = 0; k < nest_.accesses.size(); ++k) {
      if (nest_.accesses[k].store) continue;
      std::string q = fmt::format("s{}", k);
      for (size_t i = 0; i < loops.size(); ++i)
        if (const int64_t stride = nest_.summed_stride(k, i); stride != 0)
          q += fmt::format(" + {}", times(fmt::format("r{}", i), stride));
      body += fmt::format("    const {}* const q{} = {};\n", memory_type(nest_.accesses[k].dtype), k, q);
    }
    const auto out = static_cast<size_t>(op(sum).store);
    const int64_t stride = nest_.inner_stride(out);
    return body + text +
           fmt::format("    }}\n    s{}[{}] = acc;\n", out, stride == 0 ? "0" : times("j", stride));
  }

  const Nest& nest_;
  const std::string name_;
  std::map<int32_t, std::string> names_, literals_;  // by op, by literal
  std::map<size_t, std::string> loads_;              // by access
  std::string literal_text_;
  int number_ = 0;
};

}  // namespace

std::string write_nests(std::span<const Nest> nests) {
  std::string text;
  for (size_t i = 0; i < nests.size(); ++i) text += NestWriter(nests[i], fmt::format("k{}", i)).write();
  return text;
}

NestLaunch launch_of(const Nest& nest, int64_t extent) {
  const int64_t n = nest.row_size();
  if (nest.kind == NestKind::kRows) return {.blocks = extent, .extent = extent};
  if (nest.kind == NestKind::kSerial) {
    const int64_t rows = extent / ((n + nest.tile - 1) / nest.tile);
    return {.threads = rows * n, .extent = rows};
  }
  return {.threads = nest.outer.empty() ? extent : extent * n, .extent = extent};
}

}  // namespace ostro::cuda
