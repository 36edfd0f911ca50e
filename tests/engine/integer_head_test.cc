// A head whose products are of integers (N20), in tiles of tokens, gives the interpreter's bits on every
// instruction set; what cannot be tiled stays whole and says why.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "each_isa.h"
#include "heads.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cpu/routines/op_call.h"
#include "programs.h"

namespace ostro {
namespace {

using ir::OpKind;
using testing::IntegerHead;
using testing::program_of;

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
