// Training steps of several processes of this machine, without the run around them: as train_bench, from the
// weights and batches in a file that bench/peers/start_file.py wrote, over the connections that `ostro
// launch` makes.
//
//   workers_bench --start FILE --workers N [--threads N] [--leaf_examples N] [--exchange step|layer]
//
// The first process is driven as the peers are (bench/peers/common.py): one JSON line for the first step, one
// for every line of input, one at the end. --threads is of each process. With one worker it is the step of
// `ostro train`.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>

#include "bench/arguments.h"
#include "bench/bench_model.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/dist/gloo_group.h"
#include "ostro/dist/key_value_for_test.h"
#include "ostro/fleet/threads/workers.h"
#include "ostro/fleet/workers/worker.h"

namespace {

using namespace ostro;
using runtime::Buffer;

struct Args {
  bench::ModelChoice model;
  int64_t workers = 2, rank = 0;
  bool layer = false;
  cpu::CpuOptions engine{.threads = 1};
  std::string folder;           // where the processes meet
  std::vector<int> others;      // rank 0: pipes to the other processes; a byte is a step
  int commands = STDIN_FILENO;  // others: their end of the pipe
};

double wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CPU seconds of this process, and its peak memory in MiB.
std::pair<double, int64_t> usage() {
  rusage r;
  ::getrusage(RUSAGE_SELF, &r);
  const auto time = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return {time(r.ru_utime) + time(r.ru_stime), r.ru_maxrss / 1024};
}

// One worker's step, or the step of a run without workers.
using Step = std::function<Result<train::StepResult>(const train::BatchArrays&, int64_t)>;

Status drive(const Args& args, const bench::Model& model, const Step& step, double began) {
  const int64_t seq = std::stoll(model.file.metadata().at("seq"));
  const ir::Shape ids{ir::DType::i32, {{"batch", model.config.trainer.train_batch_size.at(0)}, {"pos", seq}}};
  Buffer mask = Buffer::empty(ids.with_dtype(ir::DType::f32));
  std::ranges::fill(mask.mutable_as<float>(), 1.0f);
  const auto more = [&](int64_t i) {
    char byte = 0;
    if (args.rank > 0) return ::read(args.commands, &byte, 1) == 1;
    std::string line;
    if (i > 0 && !std::getline(std::cin, line)) return false;
    for (const int pipe : args.others)
      if (::write(pipe, &byte, 1) != 1) return false;
    return true;
  };
  for (int64_t i = 0; more(i); ++i) {
    const double start = wall(), cpu = usage().first;
    ASSIGN_OR_RETURN(Buffer tokens, model.read(fmt::format("tokens/{}", i), ids));
    ASSIGN_OR_RETURN(Buffer targets, model.read(fmt::format("targets/{}", i), ids));
    ASSIGN_OR_RETURN(const train::StepResult r, step({tokens, targets, mask}, i));
    if (!r.ok()) return invalid_argument("a loss or gradient is not finite");
    if (args.rank > 0) continue;
    fmt::print(R"({{"loss": {:.6f}, "s": {:.6f}, "cpu_s": {:.6f})", r.loss(), wall() - start,
               usage().first - cpu);
    if (i == 0)
      fmt::print(R"(, "peer": "ostro, {} x {} threads", "start_to_first_step_s": {:.3f}, "leaves": {})",
                 args.workers, args.engine.threads, wall() - began, r.leaves.size());
    fmt::print("}}\n");
    std::fflush(stdout);
  }
  return Status();
}

Status run(const Args& args) {
  const double began = wall();
  ASSIGN_OR_RETURN(bench::Model model, bench::open_model(args.model));
  ASSIGN_OR_RETURN(auto engine, cpu::make_cpu_engine(args.engine));
  ASSIGN_OR_RETURN(train::State state, model.state(*engine));
  const auto scalars = [&](int64_t i) {
    return optim::step_scalars(model.config.optimizer, i, model.config.trainer.num_train_steps);
  };
  if (args.workers == 1) {
    ASSIGN_OR_RETURN(auto runner, train::make_step_runner(model.programs, *engine, "none"));
    return drive(
        args, model, [&](const auto& batch, int64_t i) { return runner->run(state, batch, scalars(i)); },
        began);
  }
  model.config.trainer.sharding.mesh.exchange =
      args.layer ? train::ExchangeSchedule::kLayer : train::ExchangeSchedule::kStep;
  ASSIGN_OR_RETURN(fleet::WorkerOptions options, fleet::worker_options(model.config, args.workers));
  options.only = args.rank;
  ASSIGN_OR_RETURN(const fleet::WorkerPlan plan,
                   fleet::make_worker_plan(model.programs, *engine, "none", options));
  fleet::Worker worker(plan, args.rank);
  RETURN_IF_ERROR(worker.adopt(state));
  state = {};
  dist::FolderKeyValue store(args.folder);
  ASSIGN_OR_RETURN(const auto group, dist::connect_gloo(plan.mesh(), args.rank, store, "bench/", {}));
  return drive(
      args, model, [&](const auto& batch, int64_t i) { return worker.step(*group, batch, scalars(i)); },
      began);
}

// The others are children of the first process, made before it has threads.
int run_all(Args args) {
  args.folder = (std::filesystem::temp_directory_path() / "ostro_workers_XXXXXX").string();
  if (::mkdtemp(args.folder.data()) == nullptr) return 1;
  std::vector<pid_t> children;
  for (int64_t rank = 1; rank < args.workers; ++rank) {
    int ends[2];
    if (::pipe(ends) != 0) return 1;
    const pid_t child = ::fork();
    if (child == 0) {
      for (const int pipe : args.others) ::close(pipe);
      ::close(ends[1]);
      args.rank = rank, args.commands = ends[0], args.others.clear();
      const Status status = run(args);
      if (!status.ok()) fmt::print(stderr, "workers_bench: worker {}: {}\n", rank, status.error().message());
      ::_exit(status.ok() ? 0 : 1);
    }
    ::close(ends[0]);
    args.others.push_back(ends[1]);
    children.push_back(child);
  }
  const Status status = run(args);
  for (const int pipe : args.others) ::close(pipe);
  if (status.ok())
    fmt::print(R"({{"peak_rss_MiB": {}}})"
               "\n",
               usage().second);
  else
    fmt::print(stderr, "workers_bench: {}\n", status.error().message());
  int failed = status.ok() ? 0 : 1;
  for (const pid_t child : children) {
    int end = 0;
    ::waitpid(child, &end, 0);
    if (end != 0) failed = 1;
  }
  std::filesystem::remove_all(args.folder);
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  Args args;
  const std::vector<bench::Option> options = {
      bench::text_option("--start", "a file of bench/peers/start_file.py", args.model.start),
      bench::count_option("--workers", args.workers), bench::count_option("--threads", args.engine.threads),
      bench::count_option("--leaf_examples", args.model.leaf_examples),
      bench::either_option("--exchange", "layer", "step", args.layer)};
  if (const Status status = bench::read_options(argc, argv, options); !status.ok()) {
    fmt::print(stderr, "workers_bench: {}\n", status.error().message());
    return 2;
  }
  if (args.model.start.empty()) {
    fmt::print(stderr, "workers_bench: --start FILE is missing; bench/peers/start_file.py writes one\n");
    return 2;
  }
  return run_all(std::move(args));
}
