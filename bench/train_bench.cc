// Training speed without the run around it: the steps of a Llama from the weights and batches in a file that
// bench/peers/start_file.py wrote. Prints the JSON line of the peer scripts.
//
//   train_bench --start FILE [--dtype f32|bf16] [--steps N] [--threads N] [--leaf_examples N]
//
// CPU time is that of all threads.
#include <fmt/core.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "ostro/cpu/engine.h"
#include "ostro/io/local_file_system.h"
#include "ostro/io/safetensors.h"
#include "ostro/models/llama.h"
#include "ostro/train/step.h"

namespace {

using namespace ostro;
using runtime::Buffer;

struct Args {
  std::string start, dtype = "f32";
  int64_t steps = 10, leaf_examples = 0;
  int threads = 2;
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

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 == 1 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

Result<Buffer> read(const io::SafetensorsReader& file, const std::string& name, const ir::Shape& shape) {
  Buffer b = Buffer::empty(shape);
  RETURN_IF_ERROR(file.read(name, b.mutable_bytes()));
  return b;
}

Status run(const Args& args) {
  ASSIGN_OR_RETURN(auto file, io::SafetensorsReader::open(io::local_file_system(), args.start));
  const auto number = [&](const char* key) { return std::stoll(file.metadata().at(key)); };
  train::TrainConfig c;
  auto& llama =
      dynamic_cast<models::ModelOptionsOf<models::LlamaOptions, models::Llama>&>(c.model_options()).options;
  llama.seq_len = number("seq");
  llama.hidden_dim = number("H");
  llama.intermediate_dim = number("ffn");
  llama.num_layers = number("L");
  llama.num_heads = number("heads");
  llama.num_kv_heads = number("kv");
  c.data.train_urls = {"none"};
  c.trainer.train_batch_size = number("batch");
  c.trainer.num_train_steps = 1000;
  c.trainer.mp = args.dtype == "bf16" ? "p=f32,c=bfloat16" : "f32";
  if (args.leaf_examples > 0) c.numerics.leaf_examples = args.leaf_examples;
  auto& adam = std::get<optim::AdamOptions>(c.optimizer);
  adam.learning_rate = 3e-4;
  adam.lr_schedule = optim::LrSchedule::kConstant;
  adam.warmup = 0;
  adam.weight_decay_modules = std::vector<std::string>{"*"};
  RETURN_IF_ERROR(c.resolve());

  const auto model = c.model_options().functions(number("V"), train::compute_dtype(c));
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(c, model));
  cpu::CpuOptions options;
  options.threads = args.threads;
  ASSIGN_OR_RETURN(auto engine, cpu::make_cpu_engine(options));
  ASSIGN_OR_RETURN(auto runner, train::make_step_runner(programs, *engine, "none"));
  train::State state;
  for (size_t i = 0; i < model.paths.size(); ++i) {
    ASSIGN_OR_RETURN(Buffer b, read(file, model.paths[i], model.shapes[i]));
    state.params.push_back(std::move(b));
    state.first_moment.push_back(Buffer::zeros(model.shapes[i]));
    state.second_moment.push_back(Buffer::zeros(model.shapes[i]));
  }
  const ir::Shape ids{ir::DType::i32, {{"batch", c.trainer.train_batch_size}, {"pos", llama.seq_len}}};
  Buffer mask = Buffer::empty(ids.with_dtype(ir::DType::f32));
  std::ranges::fill(mask.mutable_as<float>(), 1.0f);

  std::vector<double> times, cpu;
  double first = 0, to_first = 0;
  std::string losses;
  for (int64_t i = 0; i < args.steps; ++i) {
    const double began = wall(), cpu_began = usage().cpu;
    ASSIGN_OR_RETURN(Buffer tokens, read(file, fmt::format("tokens/{}", i), ids));
    ASSIGN_OR_RETURN(Buffer targets, read(file, fmt::format("targets/{}", i), ids));
    ASSIGN_OR_RETURN(const train::StepResult r,
                     runner->run(state, {tokens, targets, mask},
                                 optim::adam_scalars(adam, state.step, c.trainer.num_train_steps)));
    if (!r.ok) return invalid_argument("a loss or gradient is not finite");
    losses += fmt::format("{}{:.6f}", i == 0 ? "" : ", ", r.loss);
    if (i == 0) {
      first = wall() - began;
      to_first = since_start();
    } else {
      times.push_back(wall() - began);
      cpu.push_back(usage().cpu - cpu_began);
    }
  }
  // The step behind the first is warm-up too.
  if (times.size() > 1) times.erase(times.begin()), cpu.erase(cpu.begin());
  const double tokens = static_cast<double>(ids.count()), middle = median(times);
  const auto [fast, slow] = std::minmax_element(times.begin(), times.end());
  fmt::print(
      R"({{"peer": "ostro {}", "size": "{}", "dtype": "{}", "seq": {}, "batch": {}, "threads": {}, )"
      R"("tok_s": {:.1f}, "tok_s_min": {:.1f}, "tok_s_max": {:.1f}, "cpu_s_per_step": {:.4f}, "step_ms": {:.1f}, )"
      R"("first_step_s": {:.3f}, "start_to_first_step_s": {:.3f}, "peak_rss_MiB": {}, "arena_MiB": {}, )"
      R"("losses": [{}]}})"
      "\n",
      engine->name(), file.metadata().at("size"), args.dtype, llama.seq_len, c.trainer.train_batch_size,
      args.threads, tokens / middle, tokens / *slow, tokens / *fast, median(cpu), middle * 1e3, first,
      to_first, usage().peak_mib, (runner->leaf_info().arena_bytes + runner->update_info().arena_bytes) >> 20,
      losses);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Args args;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--start") args.start = value;
    if (key == "--dtype") args.dtype = value;
    if (key == "--steps") args.steps = std::max<int64_t>(2, std::stoll(value));
    if (key == "--threads") args.threads = std::stoi(value);
    if (key == "--leaf_examples") args.leaf_examples = std::stoll(value);
  }
  if (args.start.empty()) {
    fmt::print(stderr, "train_bench: --start FILE is missing; bench/peers/start_file.py writes one\n");
    return 2;
  }
  const Status status = run(args);
  if (!status.ok()) fmt::print(stderr, "train_bench: {}\n", status.error().message());
  return status.ok() ? 0 : 1;
}
