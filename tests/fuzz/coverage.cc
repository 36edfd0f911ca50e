#include "coverage.h"

#include <algorithm>

#include <fmt/format.h>

#include "ostro/ir/op_table.h"

namespace ostro::fuzz {
namespace {

using ir::DType;
using ir::OpKind;

const char* const kAnywhere = "";
const char* const kInScan = " in scan";
const char* const kDifferentiated = " differentiated";
const char* const kLeafCut = " cut by leaves";

bool sums(OpKind k) {
  return k == OpKind::sum || k == OpKind::dot || k == OpKind::scatter_add || k == OpKind::attention_grad ||
         k == OpKind::cross_entropy;
}

// Does the op contract an axis of the leaf table?
bool leaf_cut(const ir::Op& op, const ir::Block& block, const numerics::LeafTable& leaves) {
  if (!sums(op.kind)) return false;
  auto cut = [&](const std::string& axis) { return leaves.count(axis) > 1; };
  auto any = [&](const std::vector<std::string>& axes) { return std::any_of(axes.begin(), axes.end(), cut); };
  switch (op.kind) {
    case OpKind::sum:
      return any(op.attrs.strs("axes"));
    case OpKind::dot:
      return any(op.attrs.strs("over"));
    case OpKind::scatter_add:
      return any(block.shape(op.operands[1]).names());
    case OpKind::attention_grad:
      return cut(op.attrs.str("query"));
    default:
      return cut(op.attrs.str("axis"));
  }
}

// The dtypes of operand 0 (of the result for ops without operands) an op takes.
std::vector<DType> legal_dtypes(OpKind k) {
  const std::vector<DType> floats{DType::f32, DType::bf16}, integers{DType::i32, DType::i64, DType::u32};
  std::vector<DType> numbers{DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u32};
  std::vector<DType> all = numbers;
  all.push_back(DType::boolean);
  if (k == OpKind::sqrt || k == OpKind::is_finite) return {DType::f32, DType::bf16, DType::f64};
  if (k >= OpKind::exp && k <= OpKind::floor) return floats;
  if (k == OpKind::bit_and || k == OpKind::bit_or || k == OpKind::bit_xor)
    return {DType::i32, DType::i64, DType::u32, DType::boolean};
  if (k == OpKind::rem || k == OpKind::shl || k == OpKind::shr) return integers;
  if (k == OpKind::eq || k == OpKind::ne || k == OpKind::cast || ir::is_layout(k) || k == OpKind::pad ||
      k == OpKind::broadcast || k == OpKind::fingerprint)
    return all;
  switch (k) {
    case OpKind::iota:
      return {DType::i64};
    case OpKind::random:
    case OpKind::fold_in:
      return {DType::u32};
    case OpKind::logical_not:
    case OpKind::select:
    case OpKind::cond:
      return {DType::boolean};
    case OpKind::use:
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_grad:
    case OpKind::box_sumsq:
    case OpKind::custom:
      return {DType::f32};
    case OpKind::tree_sum:
      return {DType::f32, DType::f64};
    case OpKind::dynamic_slice:
    case OpKind::dynamic_update_slice:
    case OpKind::gather:
    case OpKind::scatter_add:
    case OpKind::dot:
    case OpKind::attention:
    case OpKind::attention_grad:
    case OpKind::scan:
      return floats;
    default:
      return numbers;
  }
}

// Which values the block's results depend on.
std::vector<char> needed_values(const ir::Block& block) {
  std::vector<char> needed(block.values.size(), 0);
  for (ir::ValueId r : block.results) needed[r] = 1;
  for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op)
    if (std::any_of(op->results.begin(), op->results.end(), [&](ir::ValueId r) { return needed[r] != 0; }))
      for (ir::ValueId v : op->operands) needed[v] = 1;
  return needed;
}

bool has_derivative(OpKind k) {
  for (OpKind no : {OpKind::constant, OpKind::iota, OpKind::random, OpKind::fold_in, OpKind::floor,
                    OpKind::logical_not, OpKind::is_finite, OpKind::rem, OpKind::sort, OpKind::top_k,
                    OpKind::argmax, OpKind::tree_sum, OpKind::box_sumsq, OpKind::fingerprint, OpKind::cond})
    if (k == no) return false;
  return !(k >= OpKind::bit_and && k <= OpKind::ge) && !ir::is_collective(k);
}

}  // namespace

void Coverage::add_block(const ir::Block& block, const RandomCase& c, bool in_scan, Seen& seen,
                         int64_t& ops) {
  const std::vector<char> needed = needed_values(block);
  for (const ir::Op& op : block.ops) {
    if (std::none_of(op.results.begin(), op.results.end(), [&](ir::ValueId r) { return needed[r] != 0; }))
      continue;
    ++ops;
    const DType dtype = block.shape(op.operands.empty() ? op.results[0] : op.operands[0]).dtype;
    seen.insert({op.kind, dtype, kAnywhere});
    if (in_scan) seen.insert({op.kind, dtype, kInScan});
    if (c.differentiated) seen.insert({op.kind, dtype, kDifferentiated});
    if (leaf_cut(op, block, c.program.leaves)) seen.insert({op.kind, dtype, kLeafCut});
    for (const ir::Block& region : op.regions)
      add_block(region, c, in_scan || op.kind == OpKind::scan, seen, ops);
  }
}

bool Coverage::add(const RandomCase& c) {
  const size_t before = seen_.size();
  int64_t ops = 0;
  add_block(c.program.body, c, false, seen_, ops);
  op_counts_.push_back(ops);
  return seen_.size() > before;
}

bool Coverage::would_gain(const RandomCase& c) const {
  Seen seen;
  int64_t ops = 0;
  add_block(c.program.body, c, false, seen, ops);
  return !std::includes(seen_.begin(), seen_.end(), seen.begin(), seen.end());
}

double Coverage::median_ops() const {
  std::vector<int64_t> sorted = op_counts_;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : static_cast<double>(sorted[sorted.size() / 2]);
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> list;
  for (int i = 0; i < ir::kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (ir::is_collective(kind)) continue;
    for (DType dtype : legal_dtypes(kind))
      for (const char* place : {kAnywhere, kInScan, kLeafCut}) {
        if (place == kLeafCut && !sums(kind)) continue;
        if (place == kLeafCut && ir::is_integer(dtype)) continue;
        if (place == kInScan && kind == OpKind::scan) continue;  // not nested
        if (seen_.count({kind, dtype, place}) == 0)
          list.push_back(fmt::format("{} {}{}", ir::op_name(kind), ir::dtype_name(dtype), place));
      }
  }
  return list;
}

std::vector<std::string> Coverage::missing_differentiated() const {
  std::vector<std::string> list;
  for (int i = 0; i < ir::kOpCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (!has_derivative(kind)) continue;
    for (DType dtype : {DType::f32, DType::bf16}) {
      const auto legal = legal_dtypes(kind);
      if (std::find(legal.begin(), legal.end(), dtype) == legal.end()) continue;
      if (seen_.count({kind, dtype, kDifferentiated}) == 0)
        list.push_back(fmt::format("{} {}", ir::op_name(kind), ir::dtype_name(dtype)));
    }
  }
  return list;
}

}  // namespace ostro::fuzz
