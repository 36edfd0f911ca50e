// A head whose products are of integers (N20), in tiles of tokens, gives the interpreter's bits on every
// instruction set; what cannot be tiled stays whole and says why.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "each_isa.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/ir/program/builder.h"
#include "programs.h"

namespace ostro {
namespace {

using ir::Attrs;
using ir::DType;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;
using Names = std::vector<std::string>;

struct IntegerHead {
  int64_t batch = 2, pos = 70, embed = 24, vocab = 83, block = 32;
  bool tied = false;                // the weights lie [vocab, embed]
  int64_t first_token = 0;          // the origin of pos in the draws
  int64_t all_pos = 0;              // the size of pos in the draws; 0: pos
  bool want_rows = false;           // what is quantised along the tokens is a result, too
  bool round_weights = false;       // their gradient in bf16
  bool draws_move = false;          // the origin of pos is an input
  numerics::LeafTable leaves = {};  // they cut the loss, and no product
};

std::pair<ValueId, ValueId> quantized(ir::Builder& b, const std::vector<ValueId>& in, const Names& over,
                                      const IntegerHead& h, const std::vector<int64_t>& sizes = {}) {
  Attrs attrs{{"over", over}, {"block", h.block}, {"groups", std::string("blocks")}};
  attrs.set("rounding", std::string(sizes.empty() ? "nearest" : "dithered"));
  if (!sizes.empty()) attrs.set("global_sizes", sizes);
  const auto made = b.add_n(OpKind::quantize, in, attrs);
  return {made[0], made[1]};
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

struct Tiling {
  std::vector<int64_t> tiles;  // whole ones, of each head
  std::string reason;
  int64_t arena_bytes;
};

Tiling tiling_of(const IntegerHead& h, int64_t tile_rows = 32) {
  const auto changed = compile::run_passes(program_of(h), {});
  REQUIRE(changed.ok());
  compile::Target target = cpu::cpu_target();
  target.tile_rows = tile_rows;
  const auto module = compile::lower(*changed, {.reasons = true, .target = target});
  REQUIRE(module.ok());
  Tiling t{{}, "", module->plan.arena_bytes};
  for (const compile::Step& step : module->plan.steps) {
    if (step.kind == compile::StepKind::kTiles) t.tiles.push_back(step.extent);
    if (step.kind == compile::StepKind::kOp && step.op == OpKind::cross_entropy && !step.not_fused.empty())
      t.reason = step.not_fused.back().reason;
  }
  return t;
}

TEST_CASE("heads of integers in tiles of tokens give the interpreter's bits") {
  testing::EachIsa engines({.threads = 2, .head_tile = 32});
  struct Case {
    IntegerHead head;
    int64_t tiles;
  };
  // The last has tiles of 96 tokens, a multiple of 32 and of a block; its draws begin inside the array.
  for (const Case& c : {Case{{}, 4}, Case{{.batch = 3, .pos = 64, .embed = 33, .tied = true}, 6},
                        Case{{.batch = 1, .pos = 203, .vocab = 130, .block = 48, .first_token = 5}, 2},
                        Case{{.leaves = {{{"vocab", 3}, {"pos", 2}}}}, 4}}) {
    const Tiling t = tiling_of(c.head);
    CHECK_MESSAGE(t.tiles == std::vector<int64_t>{c.tiles}, t.reason);
    const ir::Program program = program_of(c.head);
    const std::string d = engines.difference(program, testing::make_inputs(program, 3, false));
    CHECK_MESSAGE(d.empty(), d);
  }
  CHECK(engines.telling() == engines.results());
}

TEST_CASE("draws of another token are told from these") {
  const auto results = [](int64_t first_token) {
    const ir::Program program = program_of({.first_token = first_token});
    auto engine = cpu::make_cpu_engine({.threads = 1, .head_tile = 32});
    REQUIRE(engine.ok());
    auto executable = (*engine)->compile(program);
    REQUIRE(executable.ok());
    return (*executable)->run(testing::make_inputs(program, 3, false)).value();
  };
  const auto a = results(0), b = results(1);
  CHECK(testing::difference({a[0]}, {b[0]}).empty());  // the loss
  CHECK(!testing::difference({a[1]}, {b[1]}).empty());
  CHECK(!testing::difference({a[2]}, {b[2]}).empty());
}

TEST_CASE("logits of all tokens, and what is quantised from their gradient, need no memory") {
  const IntegerHead h{.batch = 8, .pos = 64, .embed = 16, .vocab = 1024};
  CHECK(tiling_of(h, -1).arena_bytes > 8 * 64 * 1024 * 4);
  CHECK(tiling_of(h).arena_bytes < 8 * 64 * 1024 * 4 / 8);
}

TEST_CASE("a head of integers that cannot be tiled says why") {
  const auto reason = [](const IntegerHead& h) {
    const Tiling t = tiling_of(h);
    CHECK(t.tiles.empty());
    return t.reason;
  };
  CHECK(reason({.round_weights = true}).find("rounded") != std::string::npos);
  CHECK(reason({.want_rows = true}).find("read elsewhere") != std::string::npos);
  CHECK(reason({.all_pos = 140}).find("not numbered token by token") != std::string::npos);
  CHECK(reason({.batch = 140, .pos = 1, .all_pos = 2}).find("not numbered token by token") !=
        std::string::npos);
  CHECK(reason({.draws_move = true}).find("not numbered token by token") != std::string::npos);
}

}  // namespace
}  // namespace ostro
