// Exchanges between workers on the emulated device: every kind of op, between devices, and between a device
// and the CPU, gives the interpreter's bits; a model trains on three workers with the chain of one.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ostro/cpu/engine/engine.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/dist/loop_collectives.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/ir/program/builder.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"
#include "tests/engine/programs.h"

namespace ostro {
namespace {

using ir::OpKind;
using runtime::Buffer;
using Ints = std::vector<int64_t>;

std::unique_ptr<runtime::Engine> device_engine(const gpu::EmulationOptions& options = {}) {
  auto device = gpu::emulated_device(options);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return cuda::make_device_engine(**device);
}

std::unique_ptr<runtime::Engine> cpu_engine() {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  return std::move(*engine);
}

// The program of each worker: one exchange, whose operand is an array of this worker.
struct Exchange {
  std::string name;
  std::vector<ir::Program> programs;
};

ir::Program one_op(OpKind kind, const ir::Shape& x, ir::Attrs attrs) {
  ir::Program p;
  p.name = ir::op_name(kind);
  p.body.add_param(x);
  p.body.results = {ir::Builder(p.body).add(kind, {0}, std::move(attrs))};
  return p;
}

// Gathered or scattered along `axis`, cut at `bounds`.
Exchange cut(OpKind kind, ir::Shape whole, const std::string& axis, const Ints& bounds) {
  Exchange e{fmt::format("{} {} along {}", ir::op_name(kind), whole.str(), axis), {}};
  for (size_t w = 0; w + 1 < bounds.size(); ++w) {
    const int64_t size = bounds[w + 1] - bounds[w];
    ir::Attrs attrs{{"mesh_axis", std::string("m")}, {"axis", axis}, {"bounds", bounds}};
    attrs.set("size", kind == OpKind::all_gather ? bounds.back() : size);
    if (kind == OpKind::reduce_scatter_tree) attrs.set("leaves", static_cast<int64_t>(bounds.size()) - 1);
    ir::Shape held = whole;
    if (kind == OpKind::all_gather) held.axes[static_cast<size_t>(whole.find(axis))].size = size;
    e.programs.push_back(one_op(kind, held, attrs));
  }
  return e;
}

Exchange reduced(OpKind kind, ir::DType dtype, int64_t size, int64_t workers) {
  const ir::Shape x{dtype, {{"a", size}}};
  ir::Attrs attrs{{"mesh_axis", std::string("m")}, {"workers", workers}};
  if (kind == OpKind::all_reduce_tree) attrs.set("leaves", workers);
  return {fmt::format("{} {} of {} workers", ir::op_name(kind), x.str(), workers),
          std::vector<ir::Program>(static_cast<size_t>(workers), one_op(kind, x, attrs))};
}

// Worker w owns part owners[w]. The leaves of workers firsts[i] to firsts[i] + counts[i] are a subtree.
Exchange leaves(const ir::Shape& x, const Ints& owners, const Ints& firsts, const Ints& counts,
                const Ints& bounds) {
  Exchange e{fmt::format("exchange_leaves {}, owners [{}]", x.str(), fmt::join(owners, ", ")), {}};
  for (const int64_t part : owners) {
    ir::Attrs attrs{{"mesh_axes", std::string("m")},
                    {"owners", owners},
                    {"part", part},
                    {"firsts", firsts},
                    {"counts", counts}};
    if (!bounds.empty()) attrs.set("axis", std::string("b")), attrs.set("bounds", bounds);
    e.programs.push_back(one_op(OpKind::exchange_leaves, x, attrs));
  }
  return e;
}

std::vector<Exchange> exchanges() {
  using enum ir::DType;
  std::vector<Exchange> all;
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter_tree})
    for (const char* axis : {"a", "b"}) {
      all.push_back(cut(kind, {f32, {{"one", 1}, {"a", 25}, {"b", 25}}}, axis, {0, 7, 25}));
      all.push_back(cut(kind, {f32, {{"a", 9}, {"b", 9}}}, axis, {0, 0, 4, 9}));
    }
  all.push_back(cut(OpKind::all_gather, {bf16, {{"a", 6}, {"b", 10}}}, "b", {0, 3, 8, 10}));
  for (const int64_t workers : {2, 3})
    for (const int64_t size : {7, 20'003}) {
      for (const ir::DType t : {f32, f64}) all.push_back(reduced(OpKind::all_reduce_tree, t, size, workers));
      for (const ir::DType t : {f32, f64, i32})
        all.push_back(reduced(OpKind::all_reduce_max, t, size, workers));
      for (const ir::DType t : {i32, i64, u32})
        all.push_back(reduced(OpKind::all_reduce_int, t, size, workers));
      for (const ir::DType t : {f32, bf16, boolean})
        all.push_back(reduced(OpKind::all_reduce_bits, t, size, workers));
    }
  all.push_back(reduced(OpKind::all_reduce_tree, f32, 50, 5));
  const ir::Shape rows{f32, {{"b", 8}, {"a", 3}}}, columns{f32, {{"a", 3}, {"b", 8}}};
  for (const ir::Shape& x : {rows, columns}) {
    all.push_back(leaves(x, {0, 1, 2}, {0}, {3}, {0, 3, 4, 8}));
    all.push_back(leaves(x, {0, 1, 2}, {0, 1}, {1, 1}, {0, 3, 3, 8}));  // the third worker has no leaf
    all.push_back(leaves(x, {1, 0, 1, 0}, {0, 2}, {2, 2}, {0, 5, 8}));  // two workers own each part
    all.push_back(leaves(x, {0, 0}, {0}, {2}, {}));
  }
  return all;
}

struct Made {
  std::vector<Buffer> results;  // by worker
  std::vector<int64_t> sent;    // bytes
};

// `engines` in turn. Twice: the second time the host's memory is there.
Result<Made> run(const Exchange& e, const std::vector<runtime::Engine*>& engines, bool wild) {
  const auto workers = static_cast<int64_t>(e.programs.size());
  Made made{std::vector<Buffer>(e.programs.size()), Ints(e.programs.size())};
  RETURN_IF_ERROR(dist::run_workers({{{"m", workers}}}, [&](runtime::Collectives& group) -> Status {
    const auto rank = static_cast<size_t>(group.rank());
    runtime::Engine& engine = *engines[rank % engines.size()];
    ASSIGN_OR_RETURN(auto executable, engine.compile(e.programs[rank]));
    for (int again = 0; again < 2; ++again) {
      ASSIGN_OR_RETURN(auto out,
                       executable->run(testing::make_inputs(e.programs[rank], 11 + rank, wild), {&group}));
      ASSIGN_OR_RETURN(made.results[rank], out[0].to_host());
    }
    made.sent[rank] = group.bytes_sent();
    return Status();
  }));
  return made;
}

TEST_CASE("every exchange gives the interpreter's bits on devices, and beside the CPU, and sends the same") {
  const auto reference = interp::make_interpreter(), cpu = cpu_engine(), device = device_engine({.seed = 5}),
             other = device_engine({.seed = 6});
  for (const Exchange& e : exchanges()) {
    CAPTURE(e.name);
    const auto expected = run(e, {reference.get()}, true), on_cpu = run(e, {cpu.get()}, true);
    REQUIRE_MESSAGE(expected.ok(), expected.error().message());
    REQUIRE(on_cpu.ok());
    for (const auto& engines : std::vector<std::vector<runtime::Engine*>>{
             {device.get()}, {device.get(), cpu.get()}, {cpu.get(), other.get(), device.get()}}) {
      const auto got = run(e, engines, true);
      REQUIRE_MESSAGE(got.ok(), got.error().message());
      CHECK(testing::difference(expected->results, got->results).empty());
      CHECK(got->sent == on_cpu->sent);
    }
  }
}

TEST_CASE("control: exchanges joined in another order, or put to another place, give other bits") {
  const auto reference = interp::make_interpreter();
  const auto found = [&](const gpu::EmulationOptions::Change& change) {
    const auto wrong = device_engine({.changes = {change}});
    bool any = false;
    for (const Exchange& e : exchanges()) {
      const auto expected = run(e, {reference.get()}, false);
      const auto got = run(e, {wrong.get()}, false);
      REQUIRE(expected.ok());
      any = any || !got.ok() || !testing::difference(expected->results, got->results).empty();
    }
    return any;
  };
  CHECK_FALSE(found({"i64 done = i + 1;", "i64 done = i + 1; /* the same */"}));
  CHECK(found({"for (i64 done = i + 1; done % 2 == 0; done /= 2) {", "if (i > 0) {"}));  // a chain
  CHECK(found({"s - (s > a.place ? 1 : 0)", "s > 0 ? s - 1 : s"}));  // the own slice first
  CHECK(found({"most = larger(most, slice<T>(a, s, i))", "most = slice<T>(a, s, i)"}));
}

TEST_CASE("a worker that is gone, and a run without workers, are errors that name the op") {
  const auto device = device_engine();
  const Exchange e = reduced(OpKind::all_reduce_tree, ir::DType::f32, 40, 2);
  std::string told;
  const Status lost = dist::run_workers({{{"m", 2}}}, [&](runtime::Collectives& group) -> Status {
    if (group.rank() == 1) return io_error("this worker is gone");
    ASSIGN_OR_RETURN(auto executable, device->compile(e.programs[0]));
    const auto out = executable->run(testing::make_inputs(e.programs[0], 1, false), {&group});
    REQUIRE(!out.ok());
    told = out.error().message();
    return Status();
  });
  CHECK(!lost.ok());
  CHECK(told.starts_with("all_reduce_tree 0: all_reduce_tree"));
  CHECK(told.find("this worker is gone") != std::string::npos);
  auto alone = device->compile(e.programs[0]);
  REQUIRE(alone.ok());
  const auto out = (*alone)->run(testing::make_inputs(e.programs[0], 1, false));
  REQUIRE(!out.ok());
  CHECK(out.error().message() == "all_reduce_tree: the run has no Collectives");
}

std::string trained(runtime::Engine& engine, int64_t workers, const train::Settings& more) {
  train::Settings settings = {{"data.train_urls", "[web/*.txt, code/*.txt]"},
                              {"data.validation_fraction", "0.2"},
                              {"model.seq_len", "12"},
                              {"trainer.train_batch_size", "6"},
                              {"trainer.num_train_steps", "2"},
                              {"trainer.steps_per_eval", "2"},
                              {"trainer.checkpointer.keep", "[{every: 1}]"}};
  settings.insert(settings.end(), more.begin(), more.end());
  const auto config = train::load_train_config(OSTRO_SOURCE_DIR "/configs/nano_test.yaml", settings);
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  io::MemoryFileSystem fs;
  train::write_mixed_files(fs);
  auto run = run::Run::open(*config, {fs, engine, workers, {}, {}, {}});
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  run::Watcher watcher;
  const auto outcome = (*run)->train(watcher);
  REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
  return outcome->hash;
}

TEST_CASE("three workers, and four on other meshes, train on devices with the chain of one on the CPU") {
  const auto cpu = cpu_engine(), device = device_engine();
  const std::string expected = trained(*cpu, 1, {});
  CHECK(trained(*device, 3, {}) == expected);
  CHECK(trained(*device, 4, {{"trainer.mesh", "{exchange: layer, axes: {data: 2, model: 2}}"}}) == expected);
  CHECK(trained(*device, 2, {{"optimizer.learning_rate", "0.5"}}) != expected);  // the control
}

}  // namespace
}  // namespace ostro
