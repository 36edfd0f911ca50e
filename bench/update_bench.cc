// The update (gradient norm, clipping, AdamW, fingerprints of the new parameters), compiled and called as a
// training step does, beside an in-place stream over as much memory that computes next to nothing: for every
// parameter reads p, g, m, v and writes p, m, v.
//
//   update_bench --start FILE [--threads N] [--rounds N] [--chain on|off]
//
// Interleaved, median and best of the rounds; 28 bytes a parameter and pass, and 4 more where the norm reads
// g first. Both sides find gradients that were written just before, outside the clock. --chain off leaves the
// fingerprints out.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_model.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/train/step/step.h"

namespace {

using namespace ostro;
using runtime::Buffer;

double wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<int64_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void add_gradient(float* p, float* m, float* v, const float* g, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    m[i] += g[i];
    v[i] += g[i];
    p[i] += g[i];
  }
}

// New memory each time, for the update consumes its gradients; written, so that no page is touched first
// under the clock.
std::vector<Buffer> new_gradients(const std::vector<ir::Shape>& shapes) {
  std::vector<Buffer> gradients;
  for (const ir::Shape& shape : shapes) {
    gradients.push_back(Buffer::empty(shape));
    std::ranges::fill(gradients.back().mutable_as<float>(), 1e-6f);
  }
  return gradients;
}

// One pass over the four arrays of every parameter.
void stream(machine::ThreadPool& pool, train::State& state, const std::vector<Buffer>& gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    float* p = state.params[i].mutable_as<float>().data();
    float* m = state.optimizer[i].mutable_as<float>().data();
    float* v = state.optimizer[gradients.size() + i].mutable_as<float>().data();
    const float* g = gradients[i].as<float>().data();
    pool.parallel_for(
        gradients[i].shape().count(),
        [&](int64_t begin, int64_t end) { add_gradient(p, m, v, g, begin, end); }, 4096);
  }
}

Status run(const bench::ModelChoice& choice, int threads, int rounds) {
  ASSIGN_OR_RETURN(bench::Model model, bench::open_model(choice));
  cpu::CpuOptions options;
  options.threads = threads;
  ASSIGN_OR_RETURN(auto engine, cpu::make_cpu_engine(options));
  const train::UpdateResults<size_t> at = train::signatures_of(model.programs).update_results;
  ASSIGN_OR_RETURN(auto update,
                   engine->compile(model.programs.update, train::update_options(model.programs)));
  ASSIGN_OR_RETURN(train::State state, model.state(*engine));
  int64_t parameters = 0;
  for (const ir::Shape& shape : model.functions.shapes) parameters += shape.count();

  machine::ThreadPool pool(threads);
  std::vector<double> ours, limit, ratio;
  for (int round = -1; round < rounds; ++round) {  // the first is warm-up
    std::vector<Buffer> gradients = new_gradients(model.functions.shapes);
    double began = wall();
    train::UpdateParams<Buffer> in{std::move(state.params), std::move(state.optimizer), std::move(gradients)};
    in.loss_sum = in.weight = Buffer::scalar(ir::DType::f64, 1.0);
    for (const float s : {1e-3f, 10.0f, 1000.0f}) in.scalars.push_back(Buffer::scalar(ir::DType::f32, s));
    ASSIGN_OR_RETURN(std::vector<Buffer> list, update->run(train::as_list(std::move(in))));
    auto out = train::read_fields(at, std::move(list));
    state.params = std::move(out.params), state.optimizer = std::move(out.optimizer);
    const double mine = wall() - began;
    gradients = new_gradients(model.functions.shapes);
    began = wall();
    stream(pool, state, gradients);
    const double bound = wall() - began;
    if (round < 0) continue;
    ours.push_back(mine), limit.push_back(bound), ratio.push_back(bound / mine);
  }
  const auto rate = [&](double bytes, double seconds) { return bytes * double(parameters) / seconds / 1e9; };
  const double best_ours = *std::min_element(ours.begin(), ours.end()),
               best_limit = *std::min_element(limit.begin(), limit.end());
  fmt::print(R"({{"parameters_M": {:.1f}, "threads": {}, "update_ms": {:.2f}, "stream_ms": {:.2f}, )"
             R"("share_of_stream": {:.3f}, "share_counting_norm": {:.3f}, "update_best_GB_s": {:.1f}, )"
             R"("stream_best_GB_s": {:.1f}}})"
             "\n",
             double(parameters) / 1e6, threads, median(ours) * 1e3, median(limit) * 1e3, median(ratio),
             median(ratio) * 32 / 28, rate(28, best_ours), rate(28, best_limit));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  bench::ModelChoice choice;
  int threads = 2, rounds = 15;
  const std::vector<bench::Option> options = {
      bench::text_option("--start", "a file of bench/peers/start_file.py", choice.start),
      bench::count_option("--threads", threads), bench::count_option("--rounds", rounds),
      bench::either_option("--chain", "on", "off", choice.prints)};
  if (const Status status = bench::read_options(argc, argv, options); !status.ok()) {
    fmt::print(stderr, "update_bench: {}\n", status.error().message());
    return 2;
  }
  if (choice.start.empty()) {
    fmt::print(stderr, "update_bench: --start FILE is missing; bench/peers/start_file.py writes one\n");
    return 2;
  }
  const Status status = run(choice, threads, rounds);
  if (!status.ok()) fmt::print(stderr, "update_bench: {}\n", status.error().message());
  return status.ok() ? 0 : 1;
}
