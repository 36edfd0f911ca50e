#include "combination.h"

#include <algorithm>

#include <fmt/format.h>

namespace ostro::fuzz {
namespace {

using ir::DType;
using ir::OpKind;

bool one_of(OpKind kind, std::initializer_list<OpKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

bool adds(OpKind k) {
  return one_of(k, {OpKind::sum, OpKind::dot, OpKind::expert_dot, OpKind::expert_outer, OpKind::scatter_add,
                    OpKind::attention_grad, OpKind::cross_entropy, OpKind::cross_entropy_sum});
}

bool legal(OpKind kind, DType dtype, Place place) {
  switch (place) {
    case Place::anywhere: return true;
    case Place::in_scan: return kind != OpKind::scan;  // not nested
    case Place::differentiated: return has_derivative(kind) && (dtype == DType::f32 || dtype == DType::bf16);
    case Place::leaf_cut: break;
  }
  return adds(kind) && ir::is_floating(dtype);
}

}  // namespace

std::string Combination::str() const {
  const char* where = place == Place::in_scan          ? " in scan"
                      : place == Place::differentiated ? " differentiated"
                      : place == Place::leaf_cut       ? " cut by leaves"
                                                       : "";
  return fmt::format("{} {}{}", ir::op_name(kind), ir::dtype_name(dtype), where);
}

const std::vector<Combination>& legal_combinations() {
  static const std::vector<Combination> all = [] {
    std::vector<Combination> list;
    for (int i = 0; i < ir::kOpCount; ++i) {
      const auto kind = static_cast<OpKind>(i);
      if (ir::is_collective(kind)) continue;
      for (DType dtype : legal_dtypes(kind))
        for (Place place : {Place::anywhere, Place::in_scan, Place::differentiated, Place::leaf_cut})
          if (legal(kind, dtype, place)) list.push_back({kind, dtype, place});
    }
    std::sort(list.begin(), list.end());
    return list;
  }();
  return all;
}

std::vector<DType> legal_dtypes(OpKind k) {
  const std::vector<DType> floats{DType::f32, DType::bf16}, integers{DType::i32, DType::i64, DType::u32};
  const std::vector<DType> numbers{DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u32};
  std::vector<DType> all = numbers;
  all.push_back(DType::boolean);
  if (one_of(k, {OpKind::sqrt, OpKind::is_finite})) return {DType::f32, DType::bf16, DType::f64};
  if (k >= OpKind::exp && k <= OpKind::floor) return floats;
  if (one_of(k, {OpKind::bit_and, OpKind::bit_or, OpKind::bit_xor}))
    return {DType::i32, DType::i64, DType::u32, DType::boolean};
  if (one_of(k, {OpKind::rem, OpKind::shl, OpKind::shr})) return integers;
  if (one_of(k, {OpKind::constant, OpKind::cast, OpKind::use, OpKind::eq, OpKind::ne, OpKind::select,
                 OpKind::broadcast, OpKind::pad, OpKind::dynamic_slice, OpKind::dynamic_update_slice,
                 OpKind::gather, OpKind::sort, OpKind::top_k, OpKind::fingerprint, OpKind::scan,
                 OpKind::cond}) ||
      ir::is_layout(k))
    return all;
  if (one_of(k, {OpKind::scatter_add, OpKind::dot, OpKind::expert_dot, OpKind::expert_outer,
                 OpKind::attention, OpKind::attention_grad, OpKind::paged_write, OpKind::paged_attention}))
    return floats;
  if (one_of(k, {OpKind::cross_entropy, OpKind::cross_entropy_sum, OpKind::cross_entropy_grad,
                 OpKind::box_sumsq, OpKind::custom}))
    return {DType::f32};
  if (one_of(k, {OpKind::random, OpKind::fold_in})) return {DType::u32};
  if (k == OpKind::iota) return {DType::i64};
  if (k == OpKind::quantize) return floats;
  if (one_of(k, {OpKind::dequantize, OpKind::dot_int8, OpKind::expert_dot_int8})) return {DType::i8};
  if (k == OpKind::expert_outer_int8) return floats;
  if (k == OpKind::logical_not) return {DType::boolean};
  if (k == OpKind::tree_sum) return {DType::f32, DType::f64};
  return numbers;
}

bool has_derivative(OpKind k) {
  return !one_of(k, {OpKind::constant,
                     OpKind::iota,
                     OpKind::random,
                     OpKind::fold_in,
                     OpKind::floor,
                     OpKind::logical_not,
                     OpKind::is_finite,
                     OpKind::rem,
                     OpKind::argmax,
                     OpKind::tree_sum,
                     OpKind::dequantize,
                     OpKind::quantize,
                     OpKind::dot_int8,
                     OpKind::expert_dot_int8,
                     OpKind::expert_outer_int8,
                     OpKind::cross_entropy_sum,
                     OpKind::paged_write,
                     OpKind::paged_attention,
                     OpKind::box_sumsq,
                     OpKind::fingerprint}) &&
         !(k >= OpKind::bit_and && k <= OpKind::ge) && !ir::is_collective(k);
}

DType dtype_of(const ir::Op& op, const ir::Block& block) {
  if (op.operands.empty()) return block.shape(op.results[0]).dtype;
  const bool predicate = one_of(op.kind, {OpKind::select, OpKind::cond});
  return block.shape(op.operands[predicate ? 1 : 0]).dtype;
}

std::vector<std::string> contracted_axes(const ir::Op& op, const ir::Block& block) {
  switch (op.kind) {
    case OpKind::sum: return op.attrs.strs("axes");
    case OpKind::dot:
    case OpKind::expert_dot: return op.attrs.strs("over");
    case OpKind::expert_outer: return block.shape(op.operands[2]).names();
    case OpKind::scatter_add: {
      std::vector<std::string> axes = block.shape(op.operands[1]).names();
      if (op.attrs.has("batch"))
        for (const std::string& batch : op.attrs.strs("batch")) std::erase(axes, batch);
      return axes;
    }
    case OpKind::attention_grad: return {op.attrs.str("query")};
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_sum: return {op.attrs.str("axis")};
    default: return {};
  }
}

}  // namespace ostro::fuzz
