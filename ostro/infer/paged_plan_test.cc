// The plans of a decoding step of real models: no step of them copies a pool of pages, and no memory of them
// has the size of one. A pool is much larger than all else here.
#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/infer/layer_rows.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder_for_test.h"

namespace ostro::infer {
namespace {

using namespace models::test;
using models::Decoder;
using models::DecoderOptions;

// Keeps the programs that write into pages, with their options.
class PagedPrograms final : public runtime::Engine {
 public:
  const runtime::EngineInfo& info() const override { return inner_->info(); }
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& p,
                                                       const runtime::CompileOptions& options) override {
    if (!options.donate.empty()) kept.emplace_back(p, options);
    return inner_->compile(p, options);
  }
  std::vector<std::pair<ir::Program, runtime::CompileOptions>> kept;

 private:
  std::unique_ptr<runtime::Engine> inner_ =
      cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}).value();
};

// What of a plan is as large as `bytes`: steps that copy, memory of its own, results that are no parameter's
// memory.
int64_t copies_in(const compile::Plan& plan, int64_t bytes) {
  int64_t out = 0;
  for (const compile::PlanBuffer& b : plan.buffers)
    out += b.bytes >= bytes && (b.kind == compile::BufferKind::kTemp ||
                                (b.kind == compile::BufferKind::kResult && b.reuses_param < 0));
  for (const compile::Step& step : plan.steps) {
    const auto is_large = [&](const compile::View& view) { return view.touched_bytes() >= bytes; };
    out += step.kind == compile::StepKind::kCopy && std::ranges::any_of(step.out, is_large);
    for (const compile::Plan& region : step.regions) out += copies_in(region, bytes);
  }
  return out;
}

// Copies of a pool in the plan that the engine of the processor makes of a program.
int64_t copies_of_pools(const ir::Program& program, const runtime::CompileOptions& options, int64_t pool,
                        bool kernels) {
  compile::LowerOptions lowered;
  lowered.kernels = kernels;
  lowered.target = cpu::cpu_target();
  lowered.donate = options.donate;
  const auto passed = compile::run_passes(program, options);
  REQUIRE(passed.ok());
  const auto module = compile::lower(*passed, lowered);
  REQUIRE(module.ok());
  return copies_in(module->plan, pool);
}

TEST_CASE("the plan of a step in pages has no copy of the pool") {
  for (const DecoderOptions& o :
       {small("decoder"), small("gemma2"), odd_decoder(), odd_mixture(), odd_latent()}) {
    for (const nn::Precision& compute :
         {nn::Precision(DType::f32), nn::Precision(DType::bf16), nn::Precision(DType::bf16, 8)}) {
      CAPTURE(o.type());
      const auto functions = models::model_functions<Decoder>(o, kVocab, compute);
      const auto layers = models::decoder_by_layer(o, kVocab, compute, {}, functions.paths);
      std::vector<runtime::Buffer> params;
      for (const Array& a : tree_leaves(model_of(o, compute, 3))) params.push_back(a.buffer());
      PagedPrograms engine;
      // 512 pages are some megabytes; rows of a step, weights and scores are some kilobytes.
      const auto runner =
          LayerRows::create({functions, layers}, std::move(params), engine, {o.seq_len, 2, 2, 512}).value();
      check_ok(runner->prepare());
      REQUIRE(engine.kept.size() >= 2);  // of one row, and of two
      for (const auto& [program, options] : engine.kept) {
        int64_t pool = INT64_MAX, others = 0;
        for (int64_t i = 0; i < std::ssize(program.body.params); ++i) {
          const int64_t bytes = program.body.shape(program.body.params[static_cast<size_t>(i)]).bytes();
          if (std::ranges::find(options.donate, i) != options.donate.end())
            pool = std::min(pool, bytes);
          else
            others = std::max(others, bytes);
        }
        CHECK(pool > 4 * others);
        for (const bool kernels : {true, false}) {
          CHECK(copies_of_pools(program, options, pool, kernels) == 0);
          // The control: a pool that the caller keeps is copied.
          CHECK(copies_of_pools(program, {}, pool, kernels) >= 2);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ostro::infer
