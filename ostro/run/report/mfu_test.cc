#include "ostro/train/programs/mfu.h"

#include <doctest/doctest.h>

#include <chrono>
#include <tuple>
#include <vector>

#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/product_rule.h"
#include "ostro/run/report/engine_peak.h"

namespace ostro::train {
namespace {

TEST_CASE("utilisation is FLOPs used over FLOPs there are; 0 when something is not known") {
  CHECK(model_flops_utilization(2e6, 1000, 4e9) == 0.5);
  CHECK(model_flops_utilization(0, 1000, 4e9) == 0);
  CHECK(model_flops_utilization(2e6, 0, 4e9) == 0);
  CHECK(model_flops_utilization(2e6, 1000, 0) == 0);
}

TEST_CASE("the peak is that of the best of several runs") {
  int runs = 0;
  // The third run claims the most operations; its rate is the highest unless the clock stood still.
  const double peak = measure_peak(
      [&] {
        const auto begin = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(100)) {
        }
        return ++runs == 3 ? 1e12 : 1.0;
      },
      0);
  CHECK(runs == 3);
  CHECK(peak > 1e12);  // 1e12 operations in less than a second
  CHECK(peak <= 1e16);
}

TEST_CASE("a compiled engine has a peak; the interpreter has none, and is not kept busy looking for it") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE_MESSAGE(engine.ok(), engine.error().message());
  CHECK(run::engine_peak(**engine, DType::f32) > 0);
  CHECK(run::engine_peak(*interp::make_interpreter(), DType::f32) == 0);
}

TEST_CASE("a peak that was measured too low rises: measured again, or by what training reaches") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  run::EnginePeak peak(**engine, DType::f32);
  const double first = peak.value();
  peak.measure_again();
  CHECK(peak.value() >= first);
  peak.reached(3 * peak.value());
  CHECK(peak.value() >= 3 * first);
  CHECK(model_flops_utilization(1, peak.value(), peak.value()) == 1);
  run::EnginePeak none(*interp::make_interpreter(), DType::f32);
  none.reached(1e9);
  none.measure_again();
  CHECK(none.value() == 0);
}

// Compiles nothing, and keeps the attributes of the product that it was to compile.
class ProductSeer final : public runtime::Engine {
 public:
  const runtime::EngineInfo& info() const override { return info_; }
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& program,
                                                       const runtime::CompileOptions&) override {
    const ir::Op& product = program.body.ops.back();
    seen = product.attrs;
    dtype = program.body.shape(product.operands[0]).dtype;
    return Error(ErrorCode::kUnsupported, "compiles nothing");
  }
  ir::Attrs seen;
  DType dtype = DType::f64;

 private:
  const runtime::EngineInfo info_{.name = "seer"};
};

TEST_CASE("the peak is that of the run's own product, with its rule") {
  TrainConfig config;
  for (const auto& [mp, dtype, rule] : {std::tuple("f32", DType::f32, false),
                                        {"p=f32,c=bfloat16", DType::bf16, false},
                                        {"p=f32,c=bf16_tc16", DType::bf16, true}}) {
    CAPTURE(mp);
    config.trainer.mp = mp;
    ProductSeer engine;
    CHECK(run::engine_peak(engine, precision(config)) == 0);
    CHECK(engine.dtype == dtype);
    CHECK(ir::is_tc16(engine.seen) == rule);
  }
}

TEST_CASE("memory is read and its peak is no less") {
  const ResidentMemory before = resident_memory();
  REQUIRE(before.now > 0);
  CHECK(before.peak >= before.now);
  constexpr size_t kBytes = size_t{32} << 20;
  const std::vector<char> block(kBytes, 1);
  CHECK(resident_memory().now >= before.now + static_cast<int64_t>(kBytes / 2));
  CHECK(block[kBytes - 1] == 1);
}

}  // namespace
}  // namespace ostro::train
