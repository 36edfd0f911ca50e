// Nano trains on the emulated device with the chain of the CPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "ostro/base/test_size.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro {
namespace {

int64_t steps() { return sized(4, 12, 12); }

train::TrainConfig nano(const train::Settings& more) {
  train::Settings settings = {{"data.train_urls", "[web/*.txt, code/*.txt]"},
                              {"data.validation_fraction", "0.2"},
                              {"trainer.num_train_steps", std::to_string(steps())},
                              {"trainer.steps_per_eval", std::to_string(steps() / 2)},
                              {"trainer.checkpointer.keep", fmt::format("[{{every: {}}}]", steps() / 2)}};
  if (test_size() == TestSize::kSample)
    settings.insert(settings.end(), {{"model.seq_len", "36"}, {"trainer.train_batch_size", "4"}});
  settings.insert(settings.end(), more.begin(), more.end());
  auto config = train::load_train_config(OSTRO_SOURCE_DIR "/configs/nano_test.yaml", settings);
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  return *config;
}

// The run's hash. Sessions of at most `session` steps: all but the first resume from a checkpoint, on the
// engines in turn.
std::string trained(const std::vector<runtime::Engine*>& engines, const train::TrainConfig& config,
                    int64_t session = 100) {
  io::MemoryFileSystem fs;
  train::write_mixed_files(fs);
  for (size_t i = 0;; ++i) {
    int64_t steps = 0;
    auto run = run::Run::open(
        config, {fs, *engines[i % engines.size()], 1, [&] { return ++steps >= session; }, {}, {}});
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    run::Watcher watcher;
    const auto outcome = (*run)->train(watcher);
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    if (outcome->finished) return outcome->hash;
  }
}

std::unique_ptr<runtime::Engine> cpu_engine() {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  return std::move(*engine);
}

std::unique_ptr<runtime::Engine> device_engine() {
  auto device = gpu::emulated_device();
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return cuda::make_device_engine(**device);
}

TEST_CASE("nano trains on the emulated device with the chain of the CPU, in every precision") {
  const auto cpu = cpu_engine(), device = device_engine();
  std::set<std::string> hashes;
  for (const char* precision : {"p=f32,c=f32", "p=f32,c=bfloat16", "p=f32,c=int8", "p=f32,c=bf16_tc16"}) {
    CAPTURE(std::string(precision));
    const train::TrainConfig config = nano({{"trainer.mp", precision}});
    const std::string expected = trained({cpu.get()}, config);
    CHECK(hashes.insert(expected).second);
    // Stopped and resumed, on the device and on the CPU in turn.
    CHECK(trained({device.get(), cpu.get()}, config, sized(3, 5, 5)) == expected);
    if (test_size() != TestSize::kSample) CHECK(trained({device.get()}, config) == expected);
  }
}

}  // namespace
}  // namespace ostro
