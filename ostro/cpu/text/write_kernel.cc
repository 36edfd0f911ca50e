#include "ostro/cpu/text/write_kernel.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ostro/compile/text/expressions.h"

namespace ostro::cpu {
namespace {

using compile::Dialect;
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

// What stands before a loop of n turns within one over rows (Dialect::loops). gcc writes out up to 16 turns.
const char* each_of(int64_t n) { return n > 1 && n <= 16 ? "EACH_OF_FEW" : "EACH"; }

std::string term(const std::string& index, int64_t stride) {
  if (stride == 1) return index;
  return fmt::format("{} * {}", index, stride);
}

// Writes one nest. names_ and loads_ say what is in registers.
class KernelWriter {
 public:
  KernelWriter(const Nest& nest, const Dialect& dialect) : nest_(nest), dialect_(dialect) {}

  // The function without its name, from the parameter list on.
  std::string write() {
    std::string statements;
    switch (nest_.kind) {
      case NestKind::kFlat: statements = flat(); break;
      case NestKind::kRows: statements = rows(); break;
      case NestKind::kSerial: statements = serial(); break;
    }
    std::string text = "(char* const* buf, i64 begin, i64 end) {\n" + literal_text_;
    for (size_t k = 0; k < nest_.accesses.size(); ++k) {
      const NestAccess& a = nest_.accesses[k];
      text += fmt::format("  {0}{1}* const p{2} = ({0}{1}*)buf[{2}];\n", a.store ? "" : "const ",
                          memory_type(a.dtype), k);
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

  // The register of an operand; what must be loaded first goes to `text`, or to `hoisted` when it is the same
  // for the whole inner loop.
  std::string operand(const NestOperand& x, std::string& text, std::string& hoisted) {
    if (x.from == NestOperand::From::kLiteral) return literal(x.index);
    if (x.from == NestOperand::From::kOp) return names_.at(x.index);
    const auto access = static_cast<size_t>(x.index);
    const auto [it, fresh] = loads_.try_emplace(access, fmt::format("x{}", access));
    if (!fresh) return it->second;
    const DType d = nest_.accesses[access].dtype;
    const int64_t stride = nest_.inner_stride(access);
    const std::string element =
        stride == 0 ? fmt::format("q{}[0]", access) : fmt::format("q{}[{}]", access, term("j", stride));
    (stride == 0 ? hoisted : text) +=
        fmt::format("    const {} {} = {};\n", register_type(d), it->second, compile::load_expr(d, element));
    return it->second;
  }

  void compute(int32_t i, std::string& text, std::string& hoisted) {
    const NestOp& o = op(i);
    std::vector<DType> from;
    std::vector<std::string> args;
    for (const NestOperand& x : o.operands) {
      from.push_back(nest_.dtype_of(x));
      args.push_back(operand(x, text, hoisted));
    }
    std::string name = fmt::format("v{}", names_.size());
    for (const auto& [other, used] : names_)
      if (used == name) name = fmt::format("v{}_{}", names_.size(), i);
    text += fmt::format("    const {} {} = {};\n", register_type(o.dtype), name,
                        compile::op_expr(o.kind, from, o.dtype, args, dialect_));
    names_[i] = name;
  }

  void store(int32_t i, const std::string& index, std::string& text) const {
    text += fmt::format("    q{}[{}] = {};\n", op(i).store, index,
                        compile::store_expr(op(i).dtype, names_.at(i)));
  }

  std::string stored_index(int32_t i) const {
    return nest_.inner ? term("j", nest_.inner_stride(static_cast<size_t>(op(i).store))) : "0";
  }

  // Computes the indices of the outer loops from the running number `from`, and from them the pointer of each
  // access, which is called `letter` and its number.
  std::string pointers(const char* from, char letter) const {
    const std::vector<int64_t>& outer = nest_.outer;
    std::string text;
    if (outer.size() > 1) text += fmt::format("    i64 rest = {};\n", from);
    for (size_t i = outer.size(); i-- > 0;) {
      if (outer.size() == 1) {
        text += fmt::format("    const i64 i0 = {};\n", from);
      } else if (i == 0) {
        text += "    const i64 i0 = rest;\n";
      } else {
        text += fmt::format("    const i64 i{} = rest % {};\n    rest /= {};\n", i, outer[i], outer[i]);
      }
    }
    for (size_t k = 0; k < nest_.accesses.size(); ++k) {
      const NestAccess& a = nest_.accesses[k];
      std::string at = fmt::format("p{}", k);
      for (size_t i = 0; i < outer.size(); ++i)
        if (a.strides[i] != 0) at += fmt::format(" + {}", term(fmt::format("i{}", i), a.strides[i]));
      text += fmt::format("    {}{}* const {}{} = {};\n", a.store ? "" : "const ", memory_type(a.dtype),
                          letter, k, at);
    }
    return text;
  }

  std::string flat() {
    std::string text, hoisted;
    for (const int32_t i : nest_.passes[0].ops) compute(i, text, hoisted);
    for (const int32_t i : nest_.passes[0].stores) store(i, stored_index(i), text);
    if (nest_.outer.empty())
      return pointers("", 'q') + hoisted + "    EACH\n    for (i64 j = begin; j < end; ++j) {\n" + text +
             "    }\n";
    const int64_t n = nest_.row_size();
    return "  for (i64 row = begin; row < end; ++row) {\n" + pointers("row", 'q') + hoisted +
           fmt::format("    {}\n    for (i64 j = 0; j < {}; ++j) {{\n", each_of(n), n) + text +
           "    }\n  }\n";
  }

  // What a reduction does before, in and after the loop of its pass.
  void reduce(int32_t i, std::string& before, std::string& text, std::string& hoisted, std::string& after) {
    const NestOp& o = op(i);
    const char* type = register_type(o.dtype);
    const char* bits = o.dtype == DType::f64 ? "64" : "32";
    const std::string x = operand(o.operands[0], text, hoisted);
    const std::string lanes = fmt::format("a{}", i);
    if (o.kind == OpKind::sum) {
      before += fmt::format("    {} {}[64] = {{0}};\n", type, lanes);
      text += fmt::format("    {0}[l] = {0}[l] + ({1}){2};\n", lanes, type, x);
      after += fmt::format("    const {} v{}r = sum_stripes{}({});\n", type, i, bits, lanes);
      return;
    }
    const bool max = o.kind == OpKind::reduce_max;
    before += fmt::format("    {} {}[64];\n    for (int l = 0; l < 64; ++l) {}[l] = {}{};\n", type, lanes,
                          lanes, max ? "-" : "", dialect_.infinity);
    text += fmt::format("    {0}[l] = {1}{2}({0}[l], {3});\n", lanes, max ? "max" : "min", bits, x);
    after += fmt::format(
        "    {0} v{1}r = {2}[0];\n    for (int l = 1; l < 64; ++l) v{1}r = {3}{4}(v{1}r, {2}[l]);\n", type, i,
        lanes, max ? "max" : "min", bits);
  }

  std::string pass_text(size_t number) {
    const NestPass& pass = nest_.passes[number];
    const auto row_names = names_;
    const auto row_loads = loads_;
    std::string text, hoisted;
    for (const int32_t i : pass.ops) {
      const int32_t saved = op(i).saved;
      if (saved >= 0 && static_cast<size_t>(saved) < number) {
        names_[i] = fmt::format("r{}", i);
        text += fmt::format("    const {} {} = kept{}[j];\n", register_type(op(i).dtype), names_[i], i);
        continue;
      }
      compute(i, text, hoisted);
      if (saved >= 0) text += fmt::format("    kept{}[j] = {};\n", i, names_.at(i));
      if (std::find(pass.stores.begin(), pass.stores.end(), i) != pass.stores.end())
        store(i, stored_index(i), text);
    }
    std::string before, after;
    for (const int32_t i : pass.reductions) reduce(i, before, text, hoisted, after);
    names_ = row_names;
    loads_ = row_loads;
    for (const int32_t i : pass.reductions) names_[i] = fmt::format("v{}r", i);
    if (text.empty()) return before + after;
    const int64_t n = nest_.row_size();
    std::string loops;
    if (pass.reductions.empty()) {
      loops = fmt::format("    {}\n    for (i64 j = 0; j < {}; ++j) {{\n{}    }}\n", each_of(n), n, text);
    } else {
      if (n >= 64)
        loops += fmt::format(
            "    for (i64 j0 = 0; j0 < {}; j0 += 64) {{\n    EACH\n    for (int l = 0; l < 64; ++l) {{\n"
            "    const i64 j = j0 + l;\n    (void)j;\n{}    }}\n    }}\n",
            n / 64 * 64, text);
      if (n % 64 != 0)
        loops += fmt::format(
            "    {}\n    for (int l = 0; l < {}; ++l) {{\n    const i64 j = {} + l;\n    (void)j;\n{}    "
            "}}\n",
            each_of(n % 64), n % 64, n / 64 * 64, text);
    }
    // The braces end the scope of the hoisted values; the reductions, declared before, stay visible.
    return before + "    {\n" + hoisted + loops + "    }\n" + after;
  }

  std::string rows() {
    std::string text = pointers("row", 'q');
    for (size_t p = 0; p < nest_.passes.size(); ++p) {
      for (const int32_t i : nest_.passes[p].row_ops) {
        std::string hoisted, statements;
        compute(i, statements, hoisted);
        text += hoisted + statements;
      }
      text += pass_text(p);
    }
    std::string body;
    for (int32_t i = 0; i < static_cast<int32_t>(nest_.ops.size()); ++i) {
      if (op(i).row && op(i).store >= 0) store(i, "0", text);
      if (op(i).saved >= 0)
        body += fmt::format("  {} kept{}[{}];\n", register_type(op(i).dtype), i,
                            std::max<int64_t>(1, nest_.row_size()));
    }
    return body + "  for (i64 row = begin; row < end; ++row) {\n" + text + "  }\n";
  }

  std::string serial() {
    const auto sum = static_cast<int32_t>(nest_.ops.size()) - 1;
    const int64_t n = nest_.row_size(), tile = nest_.tile, tiles = (n + tile - 1) / tile;
    std::string text, hoisted;
    for (const int32_t i : nest_.passes[0].ops) compute(i, text, hoisted);
    const char* type = register_type(op(sum).dtype);
    const std::string element = operand(op(sum).operands[0], text, hoisted);
    text += fmt::format("    acc[t] = acc[t] + ({}){};\n", type, element);

    std::string body = "  for (i64 piece = begin; piece < end; ++piece) {\n";
    body += fmt::format("    const i64 row = piece / {}, first = piece % {} * {};\n    (void)row;\n", tiles,
                        tiles, tile);
    body += fmt::format("    const i64 m = {} - first < {} ? {} - first : {};\n", n, tile, n, tile);
    // The pointers s stand still; inside the loops over the sum those called q move on.
    body += pointers("row", 's') + fmt::format("    {} acc[{}] = {{0}};\n", type, tile);
    if (std::find(nest_.summed.begin(), nest_.summed.end(), 0) == nest_.summed.end())
      body += summing_loops(hoisted, text);
    const auto out = static_cast<size_t>(op(sum).store);
    const int64_t stride = nest_.inner_stride(out);
    body += fmt::format("    for (i64 t = 0; t < m; ++t) s{}[{}] = acc[t];\n  }}\n", out,
                        stride == 0 ? "0" : term("(first + t)", stride));
    return body;
  }

  std::string summing_loops(const std::string& hoisted, const std::string& text) const {
    const std::vector<int64_t>& loops = nest_.summed;
    std::string body;
    for (size_t i = 0; i < loops.size(); ++i)
      body += fmt::format("    for (i64 r{0} = 0; r{0} < {1}; ++r{0})", i, loops[i]) +
              (i + 1 < loops.size() ? "\n" : " {\n");
    if (loops.empty()) body += "    {\n";
    for (size_t k = 0; k < nest_.accesses.size(); ++k) {
      if (nest_.accesses[k].store) continue;
      std::string q = fmt::format("s{}", k);
      for (size_t i = 0; i < loops.size(); ++i)
        if (const int64_t stride = nest_.summed_stride(k, i); stride != 0)
          q += fmt::format(" + {}", term(fmt::format("r{}", i), stride));
      body += fmt::format("    const {}* const q{} = {};\n", memory_type(nest_.accesses[k].dtype), k, q);
    }
    return body + hoisted +
           "    EACH\n    for (i64 t = 0; t < m; ++t) {\n    const i64 j = first + t;\n    (void)j;\n" +
           text + "    }\n    }\n";
  }

  const Nest& nest_;
  const Dialect& dialect_;
  std::map<int32_t, std::string> names_, literals_;  // by op, by literal
  std::map<size_t, std::string> loads_;              // by access
  std::string literal_text_;
};

}  // namespace

std::vector<Kernel> write_kernels(std::span<const Nest> nests, const Dialect& dialect) {
  std::vector<Kernel> kernels;
  for (const Nest& nest : nests) {
    const std::string name = fmt::format("k{}", kernels.size());
    kernels.push_back(
        {name, fmt::format("{} {}{}", dialect.kernel, name, KernelWriter(nest, dialect).write())});
  }
  return kernels;
}

}  // namespace ostro::cpu
