#include "op_samples.h"

#include "ostro/ir/program/builder.h"

namespace ostro::tests {
namespace {

using namespace ir;
using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

const Shape kX{DType::f32, {{"a", 3}, {"b", 4}}};

class Samples {
 public:
  // Parameters of these shapes, then the op on all of them.
  void add(OpKind kind, const std::vector<Shape>& shapes, Attrs attrs, bool differentiable,
           std::vector<Block> regions = {}) {
    OpSample s{kind, {}, differentiable};
    s.program.name = op_name(kind);
    Builder b(s.program.body);
    std::vector<ValueId> in;
    for (const Shape& shape : shapes) in.push_back(s.program.body.add_param(shape));
    s.program.body.results = b.add_n(kind, in, std::move(attrs), std::move(regions));
    list.push_back(std::move(s));
  }
  std::vector<OpSample> list;
};

Block one_op(OpKind kind, const std::vector<Shape>& shapes, Attrs attrs = {}) {
  Block block;
  Builder b(block);
  std::vector<ValueId> in;
  for (const Shape& s : shapes) in.push_back(block.add_param(s));
  block.results = b.add_n(kind, in, std::move(attrs));
  return block;
}

void elementwise(Samples& s) {
  const Shape i32 = kX.with_dtype(DType::i32), boolean = kX.with_dtype(DType::boolean);
  for (int k = static_cast<int>(OpKind::neg); k <= static_cast<int>(OpKind::sigmoid); ++k)
    s.add(static_cast<OpKind>(k), {kX}, {}, true);
  s.add(OpKind::floor, {kX}, {}, false);
  s.add(OpKind::logical_not, {boolean}, {}, false);
  s.add(OpKind::is_finite, {kX}, {}, false);
  s.add(OpKind::cast, {kX}, {{"dtype", std::string("bf16")}}, true);
  s.add(OpKind::use, {kX}, {{"dtype", std::string("bf16")}}, true);
  for (OpKind k : {OpKind::add, OpKind::sub, OpKind::mul, OpKind::div, OpKind::min, OpKind::max})
    s.add(k, {kX, kX}, {}, true);
  for (OpKind k : {OpKind::rem, OpKind::bit_and, OpKind::bit_or, OpKind::bit_xor, OpKind::shl, OpKind::shr})
    s.add(k, {i32, i32}, {}, false);
  for (OpKind k : {OpKind::eq, OpKind::ne, OpKind::lt, OpKind::le, OpKind::gt, OpKind::ge})
    s.add(k, {kX, kX}, {}, false);
  // The condition comes first; the cotangent reaches the second operand, so swap by a program of its own.
  OpSample select{OpKind::select, {}, true};
  Builder b(select.program.body);
  const ValueId x = select.program.body.add_param(kX), cond = select.program.body.add_param(boolean);
  select.program.body.results = {b.add(OpKind::select, {cond, x, x})};
  s.list.push_back(std::move(select));
}

void layout(Samples& s) {
  s.add(OpKind::broadcast, {kX}, {{"axes", Names{"b", "c", "a"}}, {"sizes", Ints{4, 2, 3}}}, true);
  s.add(OpKind::transpose, {kX}, {{"axes", Names{"b", "a"}}}, true);
  s.add(OpKind::rename, {kX}, {{"from", Names{"a"}}, {"to", Names{"z"}}}, true);
  s.add(OpKind::split_axis, {kX},
        {{"axis", std::string("b")}, {"axes", Names{"p", "q"}}, {"sizes", Ints{2, 2}}}, true);
  s.add(OpKind::merge_axes, {kX}, {{"axes", Names{"a", "b"}}, {"axis", std::string("m")}}, true);
  s.add(OpKind::slice, {kX},
        {{"axis", std::string("b")}, {"start", int64_t{1}}, {"size", int64_t{2}}, {"stride", int64_t{2}}},
        true);
  s.add(OpKind::pad, {kX}, {{"axis", std::string("b")}, {"low", int64_t{1}}, {"high", int64_t{2}}}, true);
  s.add(OpKind::concat, {kX, kX}, {{"axis", std::string("b")}}, true);
  s.add(OpKind::split, {kX}, {{"axis", std::string("b")}, {"sizes", Ints{1, 3}}}, true);
  s.add(OpKind::stack, {kX, kX}, {{"axis", std::string("s")}, {"position", int64_t{1}}}, true);
  s.add(OpKind::unstack, {kX}, {{"axis", std::string("a")}}, true);
  s.add(OpKind::reverse, {kX}, {{"axis", std::string("b")}}, true);
}

void indexed(Samples& s) {
  const Shape start = scalar(DType::i32), origin = scalar(DType::i64), index{DType::i32, {{"i", 5}}};
  s.add(OpKind::dynamic_slice, {kX, start}, {{"axis", std::string("b")}, {"size", int64_t{2}}}, true);
  s.add(OpKind::dynamic_update_slice, {kX, {DType::f32, {{"a", 3}, {"b", 2}}}, start},
        {{"axis", std::string("b")}}, true);
  s.add(OpKind::paged_write,
        {{DType::f32, {{"page", 1}, {"slot", 128}, {"b", 4}}},
         {DType::f32, {{"row", 1}, {"b", 4}}},
         {DType::i32, {{"row", 1}}}},
        {{"page", std::string("page")}, {"slot", std::string("slot")}, {"row", std::string("row")}}, false);
  s.add(OpKind::gather, {kX, index, origin}, {{"axis", std::string("a")}}, true);
  s.add(OpKind::scatter_add, {{DType::f32, {{"i", 5}, {"b", 4}}}, index, origin},
        {{"axis", std::string("a")}, {"size", int64_t{3}}, {"position", int64_t{0}}}, true);
  s.add(OpKind::sort, {kX}, {{"axis", std::string("b")}, {"descending", int64_t{0}}}, true);
  s.add(OpKind::top_k, {kX}, {{"axis", std::string("b")}, {"k", int64_t{2}}}, true);
}

void reductions(Samples& s) {
  s.add(OpKind::sum, {kX}, {{"axes", Names{"b"}}}, true);
  s.add(OpKind::reduce_max, {kX}, {{"axes", Names{"b"}}}, true);
  s.add(OpKind::reduce_min, {kX}, {{"axes", Names{"b"}}}, true);
  s.add(OpKind::argmax, {kX}, {{"axis", std::string("b")}}, false);
  s.add(OpKind::tree_sum, {kX}, {{"axes", Names{"a", "b"}}}, true);
  s.add(OpKind::dot, {kX, {DType::f32, {{"b", 4}, {"c", 2}}}}, {{"over", Names{"b"}}}, true);
  s.add(OpKind::dequantize, {{DType::i8, {{"b", 4}, {"c", 2}}}, {DType::f32, {{"g", 2}, {"c", 2}}}},
        {{"over", Names{"b"}}, {"groups", std::string("g")}}, false);
  const Shape left{DType::i8, {{"a", 3}, {"b", 4}}}, scale{DType::f32, {{"a", 3}, {"g", 2}}};
  const Attrs blocks{{"over", Names{"b"}}, {"block", int64_t{2}}, {"groups", std::string("g")}};
  Attrs nearest = blocks;
  nearest.set("rounding", std::string("nearest"));
  s.add(OpKind::quantize, {kX}, nearest, false);
  s.add(OpKind::dot_int8,
        {left, scale, {DType::i8, {{"c", 2}, {"b", 4}}}, {DType::f32, {{"c", 2}, {"g", 2}}}}, blocks, false);
  const Shape expert{DType::i32, {{"a", 3}, {"slot", 2}}}, origin = scalar(DType::i64);
  const Shape w{DType::f32, {{"experts", 3}, {"b", 4}, {"c", 2}}};
  Attrs chosen = blocks;
  chosen.set("axis", std::string("experts"));
  s.add(OpKind::expert_dot_int8,
        {left,
         scale,
         {DType::i8, {{"experts", 3}, {"c", 2}, {"b", 4}}},
         {DType::f32, {{"experts", 3}, {"c", 2}, {"g", 2}}},
         expert,
         origin},
        chosen, false);
  s.add(OpKind::expert_outer_int8,
        {kX,
         {DType::f32, {{"a", 3}, {"slot", 2}, {"c", 2}}},
         expert,
         origin,
         {DType::u32, {{"word", 2}}},
         origin,
         origin,
         origin},
        {{"axis", std::string("experts")},
         {"size", int64_t{3}},
         {"block", int64_t{2}},
         {"global_sizes", Ints{3, 2, 2}}},
        false);
  s.add(OpKind::expert_dot, {kX, w, expert, origin}, {{"axis", std::string("experts")}, {"over", Names{"b"}}},
        true);
  s.add(OpKind::expert_outer, {kX, {DType::f32, {{"a", 3}, {"slot", 2}, {"c", 2}}}, expert, origin},
        {{"axis", std::string("experts")}, {"size", int64_t{3}}}, true);
}

void fused(Samples& s) {
  const Shape q{DType::f32, {{"pos", 3}, {"head_dim", 4}}}, k{DType::f32, {{"key_pos", 3}, {"head_dim", 4}}},
      row{DType::f32, {{"pos", 3}}}, origin = scalar(DType::i64);
  const Attrs attrs{{"query", std::string("pos")},
                    {"key", std::string("key_pos")},
                    {"head_dim", std::string("head_dim")},
                    {"scale", 0.5},
                    {"causal", int64_t{1}}};
  s.add(OpKind::attention, {q, k, k, origin}, attrs, true);
  s.add(OpKind::attention_grad, {q, k, k, q, row, row, q, origin}, attrs, false);
  const Shape pool{DType::f32, {{"page", 3}, {"slot", 128}, {"head_dim", 4}}};
  s.add(OpKind::paged_attention,
        {{DType::f32, {{"row", 3}, {"head_dim", 4}}},
         pool,
         pool,
         {DType::i32, {{"row", 3}, {"entry", 2}}},
         {DType::i32, {{"row", 3}}}},
        {{"row", std::string("row")},
         {"page", std::string("page")},
         {"slot", std::string("slot")},
         {"entry", std::string("entry")},
         {"head_dim", std::string("head_dim")},
         {"scale", 0.5}},
        false);
  const Shape logits{DType::f32, {{"pos", 3}, {"vocab", 5}}}, target = row.with_dtype(DType::i32);
  s.add(OpKind::cross_entropy, {logits, target, origin}, {{"axis", std::string("vocab")}, {"z", 0.25}}, true);
  s.add(OpKind::cross_entropy_sum, {logits, row}, {{"axis", std::string("vocab")}}, false);
  s.add(OpKind::cross_entropy_grad, {logits, target, row, row, row, row, origin},
        {{"axis", std::string("vocab")}, {"z", 0.25}}, false);
  s.add(OpKind::box_sumsq, {kX}, {{"axes", Names{"a"}}, {"cells", Ints{2}}}, false);
  s.add(OpKind::fingerprint, {kX, origin, origin}, {{"global_sizes", Ints{3, 4}}}, false);
}

void control_and_sources(Samples& s) {
  s.add(OpKind::constant, {},
        {{"dtype", std::string("f32")}, {"axes", Names{"a"}}, {"sizes", Ints{3}}, {"value", 0.1}}, false);
  s.add(OpKind::iota, {scalar(DType::i64)}, {{"axis", std::string("a")}, {"size", int64_t{3}}}, false);
  const Shape key{DType::u32, {{"word", 2}}};
  s.add(
      OpKind::random, {key, scalar(DType::i64)},
      {{"kind", std::string("normal")}, {"axes", Names{"a"}}, {"sizes", Ints{3}}, {"global_sizes", Ints{3}}},
      false);
  s.add(OpKind::fold_in, {key, scalar(DType::u32)}, {}, false);
  s.add(OpKind::scan, {kX, {DType::f32, {{"layers", 2}, {"a", 3}, {"b", 4}}}},
        {{"axis", std::string("layers")},
         {"length", int64_t{2}},
         {"consts", int64_t{0}},
         {"carries", int64_t{1}},
         {"reverse", int64_t{0}}},
        true, {one_op(OpKind::mul, {kX, kX})});
  OpSample cond{OpKind::cond, {}, true};
  Builder b(cond.program.body);
  const ValueId x = cond.program.body.add_param(kX),
                pred = cond.program.body.add_param(scalar(DType::boolean));
  cond.program.body.results =
      b.add_n(OpKind::cond, {pred, x}, {}, {one_op(OpKind::exp, {kX}), one_op(OpKind::neg, {kX})});
  s.list.push_back(std::move(cond));
  s.add(OpKind::custom, {kX}, {}, true,
        {one_op(OpKind::neg, {kX}), one_op(OpKind::neg, {kX}), one_op(OpKind::neg, {kX})});
}

}  // namespace

std::vector<OpSample> op_samples() {
  Samples s;
  elementwise(s);
  layout(s);
  indexed(s);
  reductions(s);
  fused(s);
  control_and_sources(s);
  return std::move(s.list);
}

}  // namespace ostro::tests
