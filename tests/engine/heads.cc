#include "tests/engine/heads.h"

#include <string>
#include <utility>
#include <vector>

#include "ostro/ir/program/builder.h"

namespace ostro::testing {
namespace {

using ir::Attrs;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;
using Names = std::vector<std::string>;

std::pair<ValueId, ValueId> quantized(ir::Builder& b, const std::vector<ValueId>& in, const Names& over,
                                      const IntegerHead& h, const std::vector<int64_t>& sizes = {}) {
  Attrs attrs{{"over", over}, {"block", h.block}, {"groups", std::string("blocks")}};
  attrs.set("rounding", std::string(sizes.empty() ? "nearest" : "dithered"));
  if (!sizes.empty()) attrs.set("global_sizes", sizes);
  const auto made = b.add_n(OpKind::quantize, in, attrs);
  return {made[0], made[1]};
}

}  // namespace

ir::Program program_of(const Head& h) {
  ir::Program p;
  p.name = "head";
  p.leaves = h.leaves;
  ir::Builder b(p.body);
  const ir::Axis batch{"batch", h.batch}, pos{"pos", h.pos}, embed{"embed", h.embed}, vocab{"vocab", h.vocab};
  const ValueId x = p.body.add_param({h.dtype, {batch, pos, embed}});
  const ValueId w =
      p.body.add_param(h.tied ? Shape{h.dtype, {vocab, embed}} : Shape{h.dtype, {embed, vocab}});
  const ValueId targets = p.body.add_param({DType::i32, {batch, pos}});
  const ValueId mask = p.body.add_param({DType::f32, {batch, pos}});
  const ValueId zero = b.i64_scalar(0);
  const Attrs attrs{{"axis", std::string("vocab")}, {"z", h.z}};
  // Something is made before and something behind.
  const ValueId scaled = b.cast(b.add(OpKind::mul, {x, x}), h.dtype);
  const ValueId logits = b.dot(scaled, w, {"embed"});
  const auto loss = b.add_n(OpKind::cross_entropy, {logits, targets, zero}, attrs);
  p.body.results = {b.add(OpKind::mul, {loss[0], mask})};
  if (h.want_logits) p.body.results.push_back(logits);
  if (!h.gradient) return p;
  Attrs typed = attrs;
  typed.set("dtype", ir::dtype_name(h.dtype));
  const ValueId weight = b.add(OpKind::mul, {mask, mask});
  const ValueId g =
      b.add(OpKind::cross_entropy_grad, {logits, targets, loss[1], loss[2], loss[3], weight, zero}, typed);
  p.body.results.push_back(b.add(OpKind::neg, {b.dot(g, w, {"vocab"})}));
  const ValueId dw = h.tied ? b.dot(g, scaled, {"batch", "pos"}) : b.dot(scaled, g, {"batch", "pos"});
  p.body.results.push_back(h.round_weights ? b.cast(dw, DType::bf16) : dw);
  return p;
}

ir::Program program_of(const IntegerHead& h) {
  ir::Program p;
  p.name = "integer_head";
  p.leaves = h.leaves;
  ir::Builder b(p.body);
  const ir::Axis batch{"batch", h.batch}, pos{"pos", h.pos}, embed{"embed", h.embed}, vocab{"vocab", h.vocab};
  const ValueId x = p.body.add_param({DType::bf16, {batch, pos, embed}});
  const ValueId w =
      p.body.add_param(h.tied ? Shape{DType::f32, {vocab, embed}} : Shape{DType::f32, {embed, vocab}});
  const ValueId targets = p.body.add_param({DType::i32, {batch, pos}});
  const ValueId mask = p.body.add_param({DType::f32, {batch, pos}});
  const ValueId key = p.body.add_param({DType::u32, {{"word", 2}}});
  const ValueId example = p.body.add_param({DType::i64, {}});
  const ValueId zero = b.i64_scalar(0);
  const ValueId first = b.add(OpKind::mul, {example, example});  // not negative
  const ValueId token = h.draws_move ? first : b.i64_scalar(h.first_token);
  const auto product = [&](const std::pair<ValueId, ValueId>& left, const std::pair<ValueId, ValueId>& right,
                           const Names& over, DType type) {
    return b.add(OpKind::dot_int8, {left.first, left.second, right.first, right.second},
                 {{"over", over},
                  {"block", h.block},
                  {"groups", std::string("blocks")},
                  {"dtype", std::string(ir::dtype_name(type))}});
  };
  const ValueId scaled = b.cast(b.add(OpKind::mul, {x, x}), DType::bf16);
  const ValueId logits =
      product(quantized(b, {scaled}, {"embed"}, h), quantized(b, {w}, {"embed"}, h), {"embed"}, DType::f32);
  const auto of_outputs = quantized(b, {w}, {"vocab"}, h);
  const Attrs attrs{{"axis", std::string("vocab")}, {"z", 0.0}};
  const auto loss = b.add_n(OpKind::cross_entropy, {logits, targets, zero}, attrs);
  p.body.results = {b.add(OpKind::mul, {loss[0], mask})};
  Attrs typed = attrs;
  typed.set("dtype", std::string("bf16"));
  const ValueId g =
      b.add(OpKind::cross_entropy_grad, {logits, targets, loss[1], loss[2], loss[3], mask, zero}, typed);
  const auto dithered = [&](const Names& over) {
    return quantized(b, {g, key, first, token, zero}, over, h,
                     {1000, h.all_pos > 0 ? h.all_pos : h.pos, h.vocab});
  };
  p.body.results.push_back(product(dithered({"vocab"}), of_outputs, {"vocab"}, DType::bf16));
  const Names tokens{"batch", "pos"};
  const auto rows = quantized(b, {scaled}, tokens, h);
  if (h.want_rows) p.body.results.push_back(rows.first);
  const ValueId dw = product(rows, dithered(tokens), tokens, h.round_weights ? DType::bf16 : DType::f32);
  p.body.results.push_back(h.tied ? b.transpose(dw, {"vocab", "embed"}) : dw);
  return p;
}

}  // namespace ostro::testing
