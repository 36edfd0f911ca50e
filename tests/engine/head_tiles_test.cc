// A head with its cross-entropy in tiles of tokens gives the interpreter's bits; what cannot be tiled stays
// whole and says why.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "heads.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/builder.h"
#include "programs.h"

namespace ostro {
namespace {

using ir::Attrs;
using ir::DType;
using ir::OpKind;
using ir::ValueId;
using testing::Head;
using testing::program_of;

struct Tiling {
  bool tiled = false;
  std::string reason;
};

Tiling tiling_of(const ir::Program& program) {
  const auto changed = compile::run_passes(program, {});
  REQUIRE(changed.ok());
  compile::Target target = cpu::cpu_target();
  target.tile_rows = 32;
  const auto module = compile::lower(*changed, {.reasons = true, .target = target});
  REQUIRE(module.ok());
  Tiling t;
  for (const compile::Step& step : module->plan.steps) {
    t.tiled |= step.kind == compile::StepKind::kTiles;
    if (step.kind == compile::StepKind::kOp && step.op == OpKind::cross_entropy && !step.not_fused.empty())
      t.reason = step.not_fused.back().reason;
  }
  return t;
}

void check_equal(const ir::Program& program, const cpu::CpuOptions& options) {
  const auto inputs = testing::make_inputs(program, 3, false);
  auto engine = cpu::make_cpu_engine(options);
  REQUIRE(engine.ok());
  const auto results = [&](runtime::Engine& e) {
    auto executable = e.compile(program);
    REQUIRE(executable.ok());
    (void)(*executable)->run(inputs);  // the second run finds the first one's sums in the arena
    auto out = (*executable)->run(inputs);
    REQUIRE(out.ok());
    return *out;
  };
  const std::string d = testing::difference(results(*interp::make_interpreter()), results(**engine));
  CHECK_MESSAGE(d.empty(), d);
}

std::string text_of(const Head& h) {
  return fmt::format("{} {}x{} embed {} vocab {}{}{}{}", ir::dtype_name(h.dtype), h.batch, h.pos, h.embed,
                     h.vocab, h.tied ? " tied" : "", h.gradient ? "" : " forward",
                     h.leaves.axes.empty() ? "" : " leaves");
}

TEST_CASE("heads in tiles of tokens give the interpreter's bits") {
  for (DType d : {DType::f32, DType::bf16})
    for (bool tied : {false, true})
      for (bool gradient : {true, false}) {
        for (Head h : {Head{}, Head{.batch = 3, .pos = 32, .embed = 33, .vocab = 130, .z = 0.25},
                       Head{.batch = 1, .pos = 97, .leaves = {{{"vocab", 2}}}}}) {
          h.dtype = d, h.tied = tied, h.gradient = gradient;
          INFO(text_of(h));
          const ir::Program program = program_of(h);
          CHECK(tiling_of(program).tiled);
          check_equal(program, {.threads = 2, .head_tile = 32});
        }
      }
}

TEST_CASE("slow: heads in tiles of tokens: tile sizes, instruction sets, threads") {
  for (const char* isa : {"generic", "avx2", ""})
    for (int64_t tile : {32, 64, 100})
      for (DType d : {DType::f32, DType::bf16})
        check_equal(program_of({.dtype = d, .batch = 3, .pos = 61, .embed = 40, .vocab = 211, .z = 0.5}),
                    {.isa = isa, .threads = static_cast<int>(1 + tile % 3), .head_tile = tile});
}

TEST_CASE("a head that cannot be tiled says why") {
  const auto reason = [](const Head& h) {
    const Tiling t = tiling_of(program_of(h));
    CHECK(!t.tiled);
    return t.reason;
  };
  CHECK(reason({.want_logits = true}).find("a result") != std::string::npos);
  CHECK(reason({.leaves = {{{"pos", 2}}}}).find("leaves cut the sum") != std::string::npos);
  CHECK(reason({.dtype = DType::bf16, .round_weights = true}).find("rounded") != std::string::npos);
  CHECK(tiling_of(program_of({.gradient = false, .leaves = {{{"pos", 2}}}})).tiled);
}

TEST_CASE("a product of two heads' gradients waits for both") {
  ir::Program p;
  p.name = "heads";
  ir::Builder b(p.body);
  const ir::Axis batch{"batch", 2}, pos{"pos", 70}, embed{"embed", 24}, vocab{"vocab", 83};
  const ValueId x = p.body.add_param({DType::f32, {batch, pos, embed}});
  const ValueId targets = p.body.add_param({DType::i32, {batch, pos}});
  const ValueId weight = p.body.add_param({DType::f32, {batch, pos}});
  const ValueId zero = b.i64_scalar(0);
  const Attrs attrs{{"axis", std::string("vocab")}, {"z", 0.0}};
  std::vector<ValueId> logits, gradients;
  for (int i = 0; i < 2; ++i)
    logits.push_back(b.dot(x, p.body.add_param({DType::f32, {embed, vocab}}), {"embed"}));
  for (ValueId l : logits) {
    const auto loss = b.add_n(OpKind::cross_entropy, {l, targets, zero}, attrs);
    p.body.results.push_back(loss[0]);
    gradients.push_back(
        b.add(OpKind::cross_entropy_grad, {l, targets, loss[1], loss[2], loss[3], weight, zero}, attrs));
  }
  const ValueId second = b.rename(gradients[1], {"vocab"}, {"vocab_2"});
  p.body.results.push_back(b.dot(gradients[0], second, {"batch", "pos"}));
  check_equal(p, {.threads = 2, .head_tile = 32});
  CHECK(tiling_of(p).reason.find("made after the loss") != std::string::npos);
}

TEST_CASE("logits of all tokens need no memory") {
  const ir::Program program = program_of(Head{.batch = 8, .pos = 64, .embed = 16, .vocab = 1024});
  const auto arena = [&](int64_t tile) {
    auto engine = cpu::make_cpu_engine({.threads = 1, .compiler_required = true, .head_tile = tile});
    REQUIRE(engine.ok());
    auto executable = (*engine)->compile(program);
    REQUIRE(executable.ok());
    return (*executable)->info().arena_bytes;
  };
  CHECK(arena(-1) > 8 * 64 * 1024 * 4);
  CHECK(arena(32) < 8 * 64 * 1024 * 4 / 8);
}

}  // namespace
}  // namespace ostro
