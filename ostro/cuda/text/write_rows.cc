// Nests with rows: one block of 64 threads for each row, whose threads are the lanes of N4.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/compile/text/expressions.h"
#include "ostro/cuda/text/device_text.h"
#include "ostro/cuda/text/nest_writer.h"

namespace ostro::cuda {

using compile::NestOp;
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

std::string NestWriter::pass_text(size_t number) {
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
