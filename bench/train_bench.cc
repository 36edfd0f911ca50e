// Training speed without the run around it: the steps of a model from the weights and batches in a file that
// bench/peers/start_file.py wrote.
//
//   train_bench --start FILE [--dtype f32|bf16|int8|int8a] [--threads N] [--leaf_examples N]
//               [--remat none|keep|all|save:NAMES] [--head_tile N]
//               [--optimizer adam|muon|muon_bf16|...] [--family NAME] [--rank N] [--chain off] [--fuse off]
//               [--generated off] [--steps N]
//
// Driven as the peers are (bench/peers/common.py): one JSON line for the first step, one for every line of
// input, one at the end; with --steps that many steps without input. CPU time is that of all threads. --chain
// off leaves the parameters' fingerprints out of the update; --fuse, --generated and --head_tile are
// CpuOptions'. --family NAME: a decoder of that family and these sizes, with weights of its own; --rank N:
// LoRA on all its matrices. The first line has the operations of a step, as the model's definition counts
// them.
#include <fmt/core.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_model.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/choose_isa.h"
#include "ostro/train/step/batches.h"

namespace {

using namespace ostro;

struct Args {
  bench::ModelChoice model;
  std::string remat = "none";
  int64_t steps = 0;  // 0: as many as there are lines
  cpu::CpuOptions engine{.threads = 2};
};

struct Usage {
  double cpu;
  int64_t peak_mib;
};
Usage usage() {
  rusage r;
  getrusage(RUSAGE_SELF, &r);
  const auto time = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return {time(r.ru_utime) + time(r.ru_stime), r.ru_maxrss / 1024};
}

double wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since the kernel started this process.
double since_start() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text, word;
  std::getline(stat, text);
  text.erase(0, text.rfind(')') + 2);
  size_t at = 0;
  for (int field = 3; field < 22; ++field) at = text.find(' ', at) + 1;
  double up = 0;
  uptime >> up;
  return up - std::stod(text.substr(at)) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Operations a second of the type's best instruction on all threads, seen beside a step: what its share of
// the peak is of. The best of bursts of 16 us within 5 ms, which is what the machine gives when nobody
// interrupts.
class PeakMeter {
 public:
  PeakMeter(int threads, machine::Isa isa, bool bf16)
      : pool_(threads), isa_(isa), type_(bf16 ? kernels::GemmType::kBf16 : kernels::GemmType::kF32) {}

  double measure() {
    double best = 0;
    for (const double end = wall() + 5e-3; wall() < end;)
      best = std::max(best, kernels::burst_peak(pool_, isa_, type_));
    return best;
  }

 private:
  machine::ThreadPool pool_;
  machine::Isa isa_;
  kernels::GemmType type_;
};

Status run(const Args& args) {
  ASSIGN_OR_RETURN(bench::Model model, bench::open_model(args.model));
  const train::TrainConfig& config = model.config;
  ASSIGN_OR_RETURN(auto engine, cpu::make_cpu_engine(args.engine));
  ASSIGN_OR_RETURN(auto runner, train::make_step_runner(model.programs, *engine, args.remat));
  ASSIGN_OR_RETURN(train::State state, model.state(*engine));
  batches::Batch batch;
  batch.batch_size = config.trainer.train_batch_size.at(0);
  batch.seq_len = std::stoll(model.file.metadata().at("seq"));
  const ir::Shape ids{ir::DType::i32, {{"batch", batch.batch_size}, {"pos", batch.seq_len}}};
  batch.loss_mask.assign(static_cast<size_t>(ids.count()), 1.0f);
  const auto read_ids = [&](const std::string& name, std::vector<int32_t>& out) {
    out.resize(static_cast<size_t>(ids.count()));
    return model.file.read(name, std::as_writable_bytes(std::span(out)));
  };

  ASSIGN_OR_RETURN(const machine::Isa isa, kernels::choose_isa());
  PeakMeter meter(args.engine.threads, isa, args.model.dtype != "f32");

  std::string line;
  for (int64_t i = 0; args.steps > 0 ? i < args.steps : i == 0 || std::getline(std::cin, line); ++i) {
    const double peak_before = i == 0 ? 0 : meter.measure();  // the first step's start is timed
    const double began = wall(), cpu_began = usage().cpu;
    RETURN_IF_ERROR(read_ids(fmt::format("tokens/{}", i), batch.tokens));
    RETURN_IF_ERROR(read_ids(fmt::format("targets/{}", i), batch.targets));
    ASSIGN_OR_RETURN(
        const train::StepResult r,
        runner->run(state, train::leaf_arrays(config, batch, state.step),
                    optim::step_scalars(config.optimizer, state.step, config.trainer.num_train_steps)));
    if (!r.ok()) return invalid_argument("a loss or gradient is not finite");
    const double seconds = wall() - began, cpu_seconds = usage().cpu - cpu_began, start = since_start();
    const double peak = std::max(peak_before, meter.measure());
    fmt::print(R"({{"loss": {:.6f}, "s": {:.6f}, "cpu_s": {:.6f}, "peak_gflops": {:.1f})", r.loss(), seconds,
               cpu_seconds, peak / 1e9);
    if (i == 0) {
      ASSIGN_OR_RETURN(const runtime::ExecutableInfo defined,
                       engine->estimate(model.programs.leaf, train::leaf_options("keep")));
      fmt::print(R"(, "peer": "ostro {}", "start_to_first_step_s": {:.3f}, "leaves": {}, "gflop": {:.3f})",
                 engine->info().name, start, r.leaves.size(),
                 defined.flops * static_cast<double>(r.leaves.size()) * 1e-9);
    }
    fmt::print("}}\n");
    std::fflush(stdout);
  }
  const int64_t arena = runner->leaf_info().arena_bytes + runner->update_info().arena_bytes;
  fmt::print(R"({{"peak_rss_MiB": {}, "arena_MiB": {}}})"
             "\n",
             usage().peak_mib, arena >> 20);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Args args;
  const std::vector<bench::Option> options = {
      bench::text_option("--start", "a file of bench/peers/start_file.py", args.model.start),
      {"--dtype", "f32, bf16, int8 or int8a",
       [&](const std::string& value) {
         args.model.dtype = value;
         return value == "f32" || value == "bf16" || value == "int8" || value == "int8a";
       }},
      bench::count_option("--threads", args.engine.threads),
      bench::count_option("--leaf_examples", args.model.leaf_examples),
      bench::text_option("--remat", "none, keep, all or save:NAMES", args.remat),
      bench::whole_option<int64_t>("--head_tile", -1, args.engine.head_tile),
      bench::text_option("--optimizer", "adam, muon, muon_bf16 or another type", args.model.optimizer),
      bench::text_option("--family", "llama or another family of decoders", args.model.family),
      bench::count_option("--rank", args.model.rank),
      bench::either_option("--chain", "on", "off", args.model.prints),
      bench::either_option("--fuse", "on", "off", args.engine.fuse),
      bench::either_option("--generated", "on", "off", args.engine.generated_code),
      bench::count_option("--steps", args.steps)};
  if (const Status status = bench::read_options(argc, argv, options); !status.ok()) {
    fmt::print(stderr, "train_bench: {}\n", status.error().message());
    return 2;
  }
  if (args.model.start.empty()) {
    fmt::print(stderr, "train_bench: --start FILE is missing; bench/peers/start_file.py writes one\n");
    return 2;
  }
  const Status status = run(args);
  if (!status.ok()) fmt::print(stderr, "train_bench: {}\n", status.error().message());
  return status.ok() ? 0 : 1;
}
