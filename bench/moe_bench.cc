// A block of experts beside a dense gated MLP of equal active size (mlp = top_k * the experts' mlp): forward,
// and forward with backward, as a training step compiles them. Interleaved; medians of the pairs' ratios. One
// thread is timed by its own clock, which stops while another process has the core.
//
//   moe_bench [--threads N] [--isa NAME] [--in f32|bf16] [--rounds N] [--tokens N] [--embed N] [--active N]
//             [--experts N] [--top_k N] [--cast on|off] [--drive dense|experts|all]
//
// --drive: only forward and backward of one block, a run for every line of input and a JSON line of its wall
// time, as bench/peers/stepper.py wants it; "all": every expert computes every token, and what was not chosen
// is weighted by 0.
// --active is the dense block's mlp. Without --experts: 8 experts top-2 and 64 experts top-8. --cast on:
// parameters are f32 and read in the compute type, so that every run also casts all experts' weights.
#include <fmt/core.h>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/grad/differentiate.h"
#include "ostro/nn/moe.h"
#include "ostro/nn/policy.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/threefry.h"
#include "ostro/products/calibrate.h"
#include "ostro/trace/frame.h"

namespace {

using namespace ostro;
using runtime::Buffer;

struct Options {
  int threads = 1, rounds = 7;
  machine::Isa isa = kernels::best_isa();
  DType type = DType::f32;
  int64_t tokens = 2048, embed = 768, active = 2048, experts = 0, top_k = 2;
  bool cast = false;
  std::string drive;
};

Buffer random_values(const Shape& shape, uint64_t seed) {
  Buffer b = Buffer::empty(shape);
  const numerics::Key key = numerics::key_from_seed(seed);
  for (int64_t i = 0; i < shape.count(); ++i) {
    const float x =
        static_cast<float>(numerics::random_bits(key, static_cast<uint64_t>(i)) >> 8) * 0x1p-23f - 1;
    if (shape.dtype == DType::f32)
      b.mutable_as<float>()[static_cast<size_t>(i)] = x;
    else
      b.mutable_as<numerics::Bf16>()[static_cast<size_t>(i)] = numerics::to_bf16(x);
  }
  return b;
}

struct Block {
  std::unique_ptr<runtime::Executable> forward, both;
  std::vector<Buffer> inputs;
};

// y = f(parameters, x); loss = the sum of y times fixed numbers; gradients by all parameters and x.
Result<Block> compile(runtime::Engine& engine, const Options& o, const std::string& name,
                      const std::vector<Shape>& parameters,
                      const std::function<Array(const std::vector<Array>&, const Array&)>& f) {
  const Shape x{o.type, {{"pos", o.tokens}, {"embed", o.embed}}};
  std::vector<Shape> shapes = parameters;
  shapes.push_back(x);
  shapes.push_back(x.with_dtype(DType::f32));
  ir::Program p = trace_program(name, shapes, [&](const std::vector<Array>& in) {
    std::vector<Array> read(in.begin(), in.end() - 2);
    if (o.cast)
      for (Array& a : read) a = a.tagged(o.type);
    const Array y = f(read, in[parameters.size()]);
    return std::vector<Array>{sum(y * in.back(), {"pos", "embed"}), y};
  });
  Block block;
  for (size_t i = 0; i < shapes.size(); ++i) block.inputs.push_back(random_values(shapes[i], 3 + i));
  ir::Program forward = p;
  forward.body.results = {p.body.results[1]};
  ASSIGN_OR_RETURN(block.forward, engine.compile(forward));
  std::vector<int64_t> wrt;
  for (size_t i = 0; i <= parameters.size(); ++i) wrt.push_back(static_cast<int64_t>(i));
  p.body.results.resize(1);
  ASSIGN_OR_RETURN(p.body, value_and_grad_block(p.body, wrt));
  ASSIGN_OR_RETURN(block.both, engine.compile(p));
  return block;
}

Result<Block> dense_block(runtime::Engine& engine, const Options& o) {
  const DType stored = o.cast ? DType::f32 : o.type;
  return compile(engine, o, "dense",
                 {{stored, {{"embed", o.embed}, {"gate_up", 2}, {"mlp", o.active}}},
                  {stored, {{"mlp", o.active}, {"embed", o.embed}}}},
                 [](const std::vector<Array>& p, const Array& x) {
                   const nn::GatedMlp mlp{{p[0], {}, {"embed"}}, {p[1], {}, {"mlp"}}};
                   const auto [gate, up] = unstack<2>(mlp.gate_up(x), "gate_up");
                   return mlp.down(silu(gate) * up);
                 });
}

Result<Block> expert_block(runtime::Engine& engine, const Options& o, int64_t experts, int64_t k) {
  const DType stored = o.cast ? DType::f32 : o.type;
  const Axis e{"experts", experts}, embed{"embed", o.embed}, mlp{"mlp", o.active / k};
  return compile(
      engine, o, "experts",
      {{DType::f32, {embed, e}}, {stored, {e, embed, {"gate_up", 2}, mlp}}, {stored, {e, mlp, embed}}},
      [k](const std::vector<Array>& p, const Array& x) {
        nn::Moe moe;
        moe.router.weight = p[0];
        moe.router.routing.top_k = k;
        moe.gate_up = p[1], moe.down = p[2];
        return moe(x, [](const Array& a) { return silu(a); }).y;
      });
}

// Every expert computes every token.
Result<Block> naive_block(runtime::Engine& engine, const Options& o) {
  const DType stored = o.cast ? DType::f32 : o.type;
  const Axis e{"experts", o.experts}, embed{"embed", o.embed}, mlp{"mlp", o.active / o.top_k};
  return compile(
      engine, o, "naive",
      {{DType::f32, {embed, e}}, {stored, {e, embed, {"gate_up", 2}, mlp}}, {stored, {e, mlp, embed}}},
      [&o](const std::vector<Array>& p, const Array& x) {
        nn::MoeRouter router{p[0], {}, {.top_k = o.top_k}};
        const nn::Routed routed = router(x);
        const Array slots = rename(routed.expert, "slot", "chosen");
        Array weight = sum(select(Operand(iota({"experts", o.experts})) == Operand(slots),
                                  rename(routed.gate, "slot", "chosen"), Operand(0.0f)),
                           {"chosen"});
        const auto [gate, up] = unstack<2>(dot(x, p[1], "embed"), "gate_up");
        const Array rows = dot(nn::cast_like(silu(gate) * up, p[2]), p[2], "mlp");
        return nn::cast_like(sum(weight * cast(rows, DType::f32), {"experts"}), x);
      });
}

// One run for every line of input.
Status drive(const Options& o) {
  ASSIGN_OR_RETURN(const auto engine,
                   cpu::make_cpu_engine({.isa = machine::isa_name(o.isa), .threads = o.threads}));
  ASSIGN_OR_RETURN(const Block block, o.drive == "dense"     ? dense_block(*engine, o)
                                      : o.drive == "experts" ? expert_block(*engine, o, o.experts, o.top_k)
                                                             : naive_block(*engine, o));
  std::string line;
  for (bool first = true; first || std::getline(std::cin, line); first = false) {
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const auto results, block.both->run(block.inputs));
    (void)results;
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print("{{\"peer\": \"ostro {}\", \"s\": {:.6f}}}\n", o.drive, s);
    std::fflush(stdout);
  }
  fmt::print("{{}}\n");
  return {};
}

// Of the second of two runs: it finds the memory of the first one's results, as a step finds that of the step
// before it, and so needs no new pages from the kernel.
Result<double> seconds(runtime::Executable& program, const std::vector<Buffer>& inputs, int threads) {
  if (const auto first = program.run(inputs); !first.ok()) return first.error();
  const double start = kernels::clock_seconds(threads);
  ASSIGN_OR_RETURN(const auto results, program.run(inputs));
  (void)results;
  return kernels::clock_seconds(threads) - start;
}

Status measure(const Options& o, int64_t experts, int64_t k) {
  ASSIGN_OR_RETURN(const auto engine,
                   cpu::make_cpu_engine({.isa = machine::isa_name(o.isa), .threads = o.threads}));
  ASSIGN_OR_RETURN(const Block dense, dense_block(*engine, o));
  ASSIGN_OR_RETURN(const Block moe, expert_block(*engine, o, experts, k));
  for (const bool backward : {false, true}) {
    std::vector<double> dense_times, moe_times, ratios;
    for (int round = -1; round < o.rounds; ++round) {
      ASSIGN_OR_RETURN(const double a,
                       seconds(backward ? *dense.both : *dense.forward, dense.inputs, o.threads));
      ASSIGN_OR_RETURN(const double b, seconds(backward ? *moe.both : *moe.forward, moe.inputs, o.threads));
      if (round < 0) continue;  // warm-up
      dense_times.push_back(a), moe_times.push_back(b), ratios.push_back(b / a);
    }
    const double flops = 6.0 * static_cast<double>(o.tokens * o.embed * o.active) * (backward ? 3 : 1);
    fmt::print(
        "{} experts top-{} of mlp {}, {} tokens, {}: dense {:.2f} ms ({:.0f} GFLOP/s), experts {:.2f} ms, "
        "ratio {:.3f}\n",
        experts, k, o.active / k, o.tokens, backward ? "forward and backward" : "forward",
        1e3 * bench::median(dense_times), 1e-9 * flops / bench::median(dense_times),
        1e3 * bench::median(moe_times), bench::median(ratios));
    std::fflush(stdout);
  }
  return Status();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  bool bf16 = false;
  const std::vector<bench::Option> options = {
      bench::count_option("--threads", o.threads),
      bench::isa_option("--isa", o.isa),
      bench::either_option("--in", "bf16", "f32", bf16),
      bench::count_option("--rounds", o.rounds),
      bench::count_option("--tokens", o.tokens),
      bench::count_option("--embed", o.embed),
      bench::count_option("--active", o.active),
      bench::count_option("--experts", o.experts),
      bench::count_option("--top_k", o.top_k),
      bench::either_option("--cast", "on", "off", o.cast),
      bench::text_option("--drive", "dense, experts or all", o.drive)};
  if (const Status status = bench::read_options(argc, argv, options); !status.ok()) {
    fmt::print(stderr, "moe_bench: {}\n", status.error().message());
    return 2;
  }
  if (bf16) o.type = DType::bf16;
  if (!o.drive.empty()) {
    if (o.experts == 0) o.experts = 8;
    const bool known = o.drive == "dense" || o.drive == "experts" || o.drive == "all";
    const Status s =
        known ? drive(o) : invalid_argument("--drive " + o.drive + ": use dense, experts or all");
    if (!s.ok()) fmt::print(stderr, "moe_bench: {}\n", s.error().message());
    return s.ok() ? 0 : 1;
  }
  fmt::print("{} {}, {} threads\n", machine::isa_name(o.isa), bf16 ? "bf16" : "f32", o.threads);
  std::vector<std::pair<int64_t, int64_t>> cases{{8, 2}, {64, 8}};
  if (o.experts > 0) cases = {{o.experts, o.top_k}};
  for (const auto& [experts, k] : cases)
    if (const Status s = measure(o, experts, k); !s.ok()) {
      fmt::print(stderr, "moe_bench: {}\n", s.error().message());
      return 1;
    }
  return 0;
}
