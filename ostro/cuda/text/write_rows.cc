// Nests with rows: one block of 64 threads for each row, whose threads are the lanes of N4.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/compile/text/expressions.h"
#include "ostro/cuda/text/device_text.h"
#include "ostro/cuda/text/nest_writer.h"

namespace ostro::cuda {

using compile::NestOp;
using compile::NestOperand;
using compile::NestPass;
using compile::register_type;
using ir::DType;
using ir::OpKind;

// A lane of a reduction: declared before the loop of its pass, added to in it; after it all threads have the
// result.
void NestWriter::reduce(int32_t i, std::string& before, std::string& text, std::string& after) {
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

// The arrays that a pass reads at every element, and that no register holds yet.
std::vector<size_t> NestWriter::read_in_pass(const NestPass& pass, size_t number) const {
  std::vector<size_t> out;
  const auto note = [&](const NestOp& o) {
    for (const NestOperand& x : o.operands) {
      const auto access = static_cast<size_t>(x.index);
      if (x.from == NestOperand::From::kAccess && loads_.count(access) == 0 &&
          std::find(out.begin(), out.end(), access) == out.end())
        out.push_back(access);
    }
  };
  for (const int32_t i : pass.ops)
    if (op(i).saved < 0 || static_cast<size_t>(op(i).saved) >= number) note(op(i));
  for (const int32_t i : pass.reductions) note(op(i));
  return out;
}

std::string NestWriter::pass_text(size_t number) {
  const NestPass& pass = nest_.passes[number];
  const auto row_names = names_;
  const auto row_loads = loads_;
  const int64_t n = nest_.row_size(), each = (n + 63) / 64;
  // Elements of a thread that are read at a time: stores between loads would keep those from being on their
  // way together.
  const std::vector<size_t> read = read_in_pass(pass, number);
  const int64_t group = std::min<int64_t>(each, read.size() <= 2 ? 8 : 4);
  const bool grouped = fast_ && group > 1 && !read.empty() && n < (int64_t{1} << 30);
  std::string text, loads;
  if (grouped)
    for (const size_t k : read) {
      loads += fmt::format("    x{}[e] = {};\n", k, load(k));
      loads_[k] = fmt::format("x{}[e]", k);
    }
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
  if (!grouped)
    return before +
           fmt::format("    for (i64 j = THREAD, s = 0; j < {}; j += 64, ++s) {{\n    (void)s;\n{}    }}\n",
                       n, text) +
           after;
  std::string arrays;
  for (const size_t k : read)
    arrays += fmt::format("    {} x{}[{}];\n", register_type(nest_.accesses[k].dtype), k, group);
  return before +
         fmt::format(
             "#pragma unroll 1\n    for (int s0 = 0; s0 < {each}; s0 += {group}) {{\n{arrays}#pragma unroll\n"
             "    for (int e = 0; e < {group}; ++e) {{\n"
             "    const int at = (s0 + e) * 64 + THREAD, j = at < {n} ? at : {n} - 1;\n    (void)j;\n{loads} "
             "   }}\n"
             "#pragma unroll\n    for (int e = 0; e < {group}; ++e) {{\n"
             "    const int s = s0 + e, j = s * 64 + THREAD;\n    if (j >= {n}) break;\n{text}    }}\n    "
             "}}\n",
             fmt::arg("each", each), fmt::arg("group", group), fmt::arg("arrays", arrays), fmt::arg("n", n),
             fmt::arg("loads", loads), fmt::arg("text", text)) +
         after;
}

std::string NestWriter::rows() {
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

}  // namespace ostro::cuda
