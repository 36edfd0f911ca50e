#include "ostro/simulate/calibrate.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "ostro/dist/gloo_group.h"
#include "ostro/fleet/parts/update_parts.h"
#include "ostro/optim/optimizer.h"
#include "ostro/simulate/step/units.h"
#include "ostro/train/step/step.h"

namespace ostro::simulate {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::Buffer;

constexpr int kTurns = 5;
constexpr int64_t kMembers = 8;  // that send small messages
constexpr int kSmallExchanges = 300;
// Of a small message. As a part of an array it is longer than what a frame holds (dist/gloo_group.cc), so it
// is sent by itself.
constexpr size_t kSmallBytes = 4096;
constexpr size_t kLargeBytes = size_t{32} << 20U;
constexpr double kLeast = 1e-9;  // seconds: a measured time is not 0, which means "not measured"

// The median, in seconds, of some turns of each of `copies` threads, which work at the same time; each has
// one more turn before, which warms up. work(copy) is called by the thread of that copy.
Result<double> median_seconds(size_t copies, const std::function<Status(size_t copy)>& work) {
  std::vector<Status> ends(copies);
  std::vector<std::vector<double>> times(copies);
  std::vector<std::thread> threads;
  for (size_t copy = 0; copy < copies; ++copy)
    threads.emplace_back([&, copy] {
      for (int i = -1; i < kTurns && ends[copy].ok(); ++i) {
        const auto begin = Clock::now();
        ends[copy] = work(copy);
        if (i >= 0) times[copy].push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (size_t copy = 0; copy < copies; ++copy) {
    RETURN_IF_ERROR(ends[copy]);
    all.insert(all.end(), times[copy].begin(), times[copy].end());
  }
  std::sort(all.begin(), all.end());
  return std::max(kLeast, all[all.size() / 2]);
}

// A batch of one leaf: tokens are 0, weights 1.
train::BatchArrays leaf_of(const train::CanonicalPrograms& programs) {
  train::BatchArrays batch;
  for (const size_t at : train::signatures_of(programs).leaf_params.batch) {
    batch.push_back(Buffer::zeros(programs.leaf.body.shape(programs.leaf.body.params[at])));
    if (batch.back().shape().dtype == ir::DType::f32)
      for (float& weight : batch.back().mutable_as<float>()) weight = 1;
  }
  return batch;
}

Status run_only(runtime::Executable& program, const std::vector<Buffer>& inputs) {
  const auto results = program.run(inputs);
  return results.ok() ? Status() : results.error();
}

// The time of a program that runs on as many cores at once as the hosts of a machine share: they share its
// caches and memory as well.
Result<double> program_seconds(runtime::Engine& engine, const ir::Program& program,
                               const runtime::CompileOptions& options, size_t copies,
                               const std::vector<Buffer>& inputs) {
  std::vector<std::unique_ptr<runtime::Executable>> programs;
  for (size_t copy = 0; copy < copies; ++copy) {
    ASSIGN_OR_RETURN(programs.emplace_back(), engine.compile(program, options));
  }
  return median_seconds(copies, [&](size_t copy) { return run_only(*programs[copy], inputs); });
}

// Of the update program, whose fingerprints are a part of it. Gradients are 0.
Result<double> update_seconds(const RunModel& model, runtime::Engine& engine, size_t copies) {
  const train::Signatures at = train::signatures_of(model.programs);
  std::vector<train::State> states(copies);
  std::vector<std::unique_ptr<runtime::Executable>> programs;
  for (train::State& state : states) {
    ASSIGN_OR_RETURN(state, train::initial_state(model.programs, engine, 0));
    ASSIGN_OR_RETURN(programs.emplace_back(),
                     engine.compile(model.programs.update, train::update_options(model.programs)));
  }
  std::vector<Buffer> gradients;
  for (size_t k = 0; k < at.trained(); ++k)
    gradients.push_back(Buffer::zeros(states[0].params[k].shape().with_dtype(ir::DType::f32)));
  const int64_t steps = std::max<int64_t>(model.config.trainer.num_train_steps, kTurns + 2);
  return median_seconds(copies, [&](size_t copy) -> Status {
    train::State& state = states[copy];
    // Moved: what the program may overwrite has no other handle.
    train::UpdateParams<Buffer> in{std::move(state.params), std::move(state.optimizer), gradients};
    in.loss_sum = Buffer::scalar(ir::DType::f64, 0.0);
    in.weight = Buffer::scalar(ir::DType::f64, 1.0);
    for (const float s : optim::step_scalars(model.config.optimizer, state.step++, steps))
      in.scalars.push_back(Buffer::scalar(ir::DType::f32, s));
    ASSIGN_OR_RETURN(std::vector<Buffer> list, programs[copy]->run(train::as_list(std::move(in))));
    train::UpdateResults<Buffer> out = train::read_fields(at.update_results, std::move(list));
    state.params = std::move(out.params);
    state.optimizer = std::move(out.optimizer);
    return Status();
  });
}

Status measure_programs(const RunModel& model, runtime::Engine& engine, SimulateOptions& out) {
  const auto copies =
      static_cast<size_t>(std::max(1.0, std::min(out.cores, static_cast<double>(out.hosts_per_machine))));
  ASSIGN_OR_RETURN(const train::State state, train::initial_state(model.programs, engine, 0));
  const train::BatchArrays batch = leaf_of(model.programs);
  std::vector<Buffer> inputs = state.params;
  inputs.insert(inputs.end(), batch.begin(), batch.end());
  ASSIGN_OR_RETURN(out.leaf_seconds, program_seconds(engine, model.programs.leaf,
                                                     train::leaf_options(model.remat), copies, inputs));
  std::vector<ir::Shape> shapes;
  std::vector<Buffer> twice;  // the gradients of two leaves
  for (size_t k = 0; k < train::signatures_of(model.programs).trained(); ++k)
    shapes.push_back(state.params[k].shape().with_dtype(ir::DType::f32));
  for (int leaf = 0; leaf < 2; ++leaf)
    for (const ir::Shape& shape : shapes) twice.push_back(Buffer::zeros(shape));
  ASSIGN_OR_RETURN(out.add_seconds, program_seconds(engine, train::add_program(shapes),
                                                    train::add_options(shapes.size()), copies, twice));
  twice.clear();
  ASSIGN_OR_RETURN(
      out.print_seconds,
      program_seconds(engine, fleet::update_parts(model.programs).report.program, {}, copies, state.params));
  inputs.clear();
  ASSIGN_OR_RETURN(const double update, update_seconds(model, engine, copies));
  out.update_seconds = std::max(kLeast, update - out.print_seconds);
  return Status();
}

// For threads that find each other.
class Store final : public dist::KeyValue {
 public:
  Status set(const std::string& key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = std::string(value);
    changed_.notify_all();
    return Status();
  }
  Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
      return busy("no value of " + key);
    return values_.at(key);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// Seconds of an exchange in which each of `members` sends so many bytes to each other one.
Result<double> exchange_seconds(int64_t members, size_t bytes, int turns) {
  Store store;
  std::vector<Status> ends(static_cast<size_t>(members));
  double seconds = 0;
  const auto member = [&](int64_t rank) -> Status {
    ASSIGN_OR_RETURN(const auto group,
                     dist::connect_gloo({{{"data", members}}}, rank, store, "calibrate/", {}));
    std::vector<int64_t> peers;
    for (int64_t peer = 0; peer < members; ++peer)
      if (peer != rank) peers.push_back(peer);
    const std::vector<std::byte> out(bytes);
    std::vector<std::vector<std::byte>> in(peers.size(), std::vector<std::byte>(bytes));
    const std::vector<std::span<const std::byte>> send(peers.size(), std::span<const std::byte>(out));
    const std::vector<std::span<std::byte>> receive(in.begin(), in.end());
    RETURN_IF_ERROR(group->exchange(peers, send, receive));
    const auto begin = Clock::now();
    for (int i = 0; i < turns; ++i) RETURN_IF_ERROR(group->exchange(peers, send, receive));
    if (rank == 0) seconds = std::chrono::duration<double>(Clock::now() - begin).count() / turns;
    return Status();
  };
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < members; ++rank)
    threads.emplace_back([&, rank] { ends[static_cast<size_t>(rank)] = member(rank); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& end : ends) RETURN_IF_ERROR(end);
  return std::max(kLeast, seconds);
}

}  // namespace

Result<SimulateOptions> calibrate(const RunModel& model, runtime::Engine& engine, SimulateOptions options) {
  RETURN_IF_ERROR(measure_programs(model, engine, options));
  ASSIGN_OR_RETURN(const double large, exchange_seconds(2, kLargeBytes, kTurns));
  options.loopback_gbytes = static_cast<double>(kLargeBytes) / large / kGiga;
  ASSIGN_OR_RETURN(const double small, exchange_seconds(kMembers, kSmallBytes, kSmallExchanges));
  const double cores = std::min<double>(kMembers, std::max(1U, std::thread::hardware_concurrency()));
  const double message = small * cores / static_cast<double>(kMembers * (kMembers - 1));  // of a core
  const double bytes = static_cast<double>(kSmallBytes) / (options.loopback_gbytes * kGiga);
  options.message_us = std::max(kLeast, message - bytes) / kMicro;
  return options;
}

}  // namespace ostro::simulate
