// Nano trains on the emulated device with the chain of the CPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ostro/chain/chain.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/cuda/emulated/emulated_device.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro {
namespace {

train::TrainConfig nano(const train::Settings& more) {
  train::Settings settings = {{"data.train_urls", "[web/*.txt, code/*.txt]"},
                              {"data.validation_fraction", "0.2"},
                              {"trainer.num_train_steps", "12"},
                              {"trainer.steps_per_eval", "6"},
                              {"trainer.checkpointer.keep", "[{every: 6}]"}};
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
  auto device = cuda::emulated_device();
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return cuda::make_device_engine(**device);
}

TEST_CASE("nano trains 12 steps on the emulated device with the chain of the CPU") {
  const auto cpu = cpu_engine(), device = device_engine();
  const train::TrainConfig wide = nano({{"trainer.mp", "p=f32,c=f32"}});
  CHECK(trained({device.get()}, wide) == trained({cpu.get()}, wide));
  const train::TrainConfig narrow = nano({});  // bf16
  const std::string expected = trained({cpu.get()}, narrow);
  CHECK(expected != trained({cpu.get()}, wide));
  CHECK(trained({device.get()}, narrow) == expected);
  // Stopped and resumed, on the device and on the CPU in turn.
  CHECK(trained({device.get(), cpu.get()}, narrow, 5) == expected);
}

}  // namespace
}  // namespace ostro
