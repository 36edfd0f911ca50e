// Checkpoints that are not what the chain of their run says. A forged one is saved anew from changed tensors
// or a changed manifest, so all of its own hashes fit.
#include "ostro/audit/record/witness.h"

#include <doctest/doctest.h>

#include "ostro/base/log_capture_for_test.h"
#include "ostro/checkpoint/save.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::audit {
namespace {

using checkpoint::Checkpoint;
using checkpoint::Info;

const std::string kRoot = "runs/run/checkpoints", kChain = "runs/run/chain.jsonl";

std::string place(int64_t step) { return kRoot + "/" + checkpoint::step_directory(step); }

// A run of seven steps with permanent checkpoints of 2, 4, 6 and 7.
struct Trained {
  Trained() : engine(cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}).value()) {
    train::write_mixed_files(fs);
  }
  // To the end, or until that step is done.
  std::string train(int64_t stop_after = -1) {
    int64_t done = 0;
    run::Environment environment{fs, *engine, 1, [&] { return ++done == stop_after; }, {}, {}};
    const auto run = run::Run::open(train::mixed_config({}), environment);
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    const auto outcome = (*run)->train({});
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    return outcome->hash;
  }
  Witness witness() {
    return Witness(chain::read_chain(fs, kChain).value(), kChain, models::builtin_models());
  }
  // What the chain says of a checkpoint: "name", "fingerprint", "nothing" or the error.
  std::string says(int64_t step) {
    const auto opened = Checkpoint::open(fs, place(step));
    REQUIRE_MESSAGE(opened.ok(), opened.error().message());
    check_ok(opened->verify());  // forged ones are whole
    const auto evidence = witness().check(fs, *opened);
    if (!evidence.ok()) return evidence.error().message();
    return *evidence == Evidence::kName          ? "name"
           : *evidence == Evidence::kFingerprint ? "fingerprint"
                                                 : "nothing";
  }
  // Saves the checkpoint of a step again, with another manifest and the first value of one tensor changed.
  void forge(int64_t step, const std::function<void(Info&)>& edit, const std::string& tensor = "") {
    const auto opened = Checkpoint::open(fs, place(step));
    REQUIRE(opened.ok());
    Info info = opened->manifest().info;
    edit(info);
    std::vector<std::vector<std::byte>> memory;
    std::vector<checkpoint::Tensor> tensors;
    bool changed = tensor.empty();
    for (size_t i = 0; i < opened->manifest().tensors.size(); ++i) {
      const checkpoint::TensorSpec& spec = opened->manifest().tensors[i];
      memory.emplace_back(static_cast<size_t>(spec.bytes()));
      check_ok(opened->read(static_cast<int64_t>(i), memory.back()));
      if (spec.path == tensor) {
        memory.back()[2] ^= std::byte{1};
        changed = true;
      }
      tensors.push_back({spec, memory.back(), nullptr});
    }
    REQUIRE(changed);
    check_ok(fs.remove_all(place(step)));
    REQUIRE(checkpoint::save(fs, kRoot, info, tensors).ok());
  }

  io::MemoryFileSystem fs;
  std::unique_ptr<runtime::Engine> engine;
};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kParameter = "model/norm/weight", kMoment = "optimizer/second_moment/norm/weight";

TEST_CASE("witness: every field of a manifest and every tensor is tied to the chain") {
  Trained run;
  const std::string hash = run.train();
  for (const int64_t step : {2, 4, 6, 7}) CHECK(run.says(step) == "name");

  const auto nothing = [](Info&) {};
  run.forge(4, nothing);
  CHECK(run.says(4) == "name");  // saving anew forges nothing by itself
  struct Forgery {
    std::string says;
    std::function<void(Info&)> edit;
    std::string tensor;
  };
  const std::vector<Forgery> forgeries = {
      {"its state is ", nothing, kParameter},
      {"its state is ", nothing, kMoment},
      {"its state is ", [](Info& i) { i.kind = checkpoint::Kind::kTemporary; }, kParameter},
      {"its chain head is ", [](Info& i) { i.chain_head = std::string(64, '0'); }, ""},
      {"numerics version 0", [](Info& i) { i.numerics_version = "0"; }, ""},
      {"optimizer.learning_rate",
       [](Info& i) { i.config.replace(i.config.find("learning_rate: "), 15, "learning_rate: 1"); }, ""},
      {"model.activation_function",
       [](Info& i) {
         i.config.replace(i.config.find("activation_function: silu"), 25, "activation_function: gelu");
       },
       ""},
  };
  for (const Forgery& forgery : forgeries) {
    Trained other;
    other.train();
    other.forge(4, forgery.edit, forgery.tensor);
    const std::string says = other.says(4);
    CHECK_MESSAGE(mentions(says, place(4) + ": forged, or of another run: "), says);
    CHECK_MESSAGE(mentions(says, forgery.says), says);
    CHECK(other.says(6) == "name");
  }

  // The place of a checkpoint counts, too.
  check_ok(run.fs.remove_all(place(6)));
  check_ok(run.fs.rename(place(4), place(6)));
  CHECK(mentions(run.says(6), "its manifest is of step 4"));
  check_ok(run.fs.rename(place(6), place(9)));
  CHECK(mentions(run.says(9), "its manifest is of step 4"));
  run.forge(7, [](Info& i) { i.step = 9; });
  CHECK(mentions(run.says(9), "it is of step 9, but runs/run/chain.jsonl ends at step 7"));
  check_ok(run.fs.remove_all(place(9)));
  CHECK(run.train() == hash);
  CHECK(run.says(7) == "name");
}

TEST_CASE("witness: of a temporary checkpoint the parameters are tied to the chain") {
  Trained run;
  run.train(3);
  CHECK(run.says(2) == "name");
  CHECK(run.says(3) == "fingerprint");
  run.forge(3, [](Info&) {}, kMoment);
  CHECK(run.says(3) == "fingerprint");  // known limit: only a replay tells
  run.forge(3, [](Info&) {}, kMoment);  // the bit flipped back
  for (const auto& edit : std::vector<std::function<void(Info&)>>{
           [](Info& i) { i.measured.clear(); }, [](Info& i) { i.measured.back() ^= 1; },
           [](Info& i) {
             i.kind = checkpoint::Kind::kPermanent;
           },  // at the chain's end its entry may be to come
       }) {
    std::string measured;
    checkpoint::Kind kind{};
    run.forge(3, [&](Info& i) {
      measured = i.measured;
      kind = i.kind;
      edit(i);
    });
    const std::string says = run.says(3);
    CHECK_MESSAGE((says == "fingerprint" || mentions(says, "the fingerprint of its parameters is ")), says);
    CHECK((says == "fingerprint") ==
          (Checkpoint::open(run.fs, place(3))->manifest().info.measured == measured));
    run.forge(3, [&](Info& i) {
      i.measured = measured;
      i.kind = kind;
    });
  }
  // A line of its own could stand for a parameter that is left out.
  std::string honest;
  run.forge(3, [&](Info& i) {
    honest = i.measured;
    i.measured = "model/norm f32[embed:2] 0 0\n" + i.measured;
  });
  CHECK(mentions(run.says(3), "its \"measured\" is more than one line"));
  run.forge(3, [&](Info& i) { i.measured = honest; });
  CHECK(run.says(3) == "fingerprint");
  run.forge(3, [](Info&) {}, kParameter);
  CHECK(mentions(run.says(3), "the fingerprint of its parameters is "));

  // Training goes on from the honest one before, says so, and comes to the same end.
  LogCapture log;
  const std::string hash = run.train();
  CHECK_MESSAGE(mentions(log.lines, "step-00000003 is refused and is passed over"), log.lines);
  CHECK_MESSAGE(mentions(log.lines, "resuming runs/run after step 2"), log.lines);
  Trained other;
  CHECK(other.train() == hash);
}

TEST_CASE(
    "witness: training passes over forged checkpoints, and a permanent one without an entry is forged") {
  Trained run;
  const std::string hash = run.train();
  run.forge(7, [](Info&) {}, kMoment);
  run.forge(6, [](Info&) {}, kParameter);
  {
    LogCapture log;
    CHECK(run.train() == hash);
    CHECK_MESSAGE(mentions(log.lines, "step-00000007 is refused and is passed over"), log.lines);
    CHECK_MESSAGE(mentions(log.lines, "step-00000006 is refused and is passed over"), log.lines);
    CHECK_MESSAGE(mentions(log.lines, "resuming runs/run after step 4"), log.lines);
  }
  for (const int64_t step : {2, 4, 6, 7}) CHECK(run.says(step) == "name");
  run.forge(2, [&](Info& i) {
    i.step = 3;
    i.chain_head = run.witness().chain().find_step(3)->hash;
  });
  CHECK(mentions(run.says(3), "it is a permanent checkpoint, but runs/run/chain.jsonl has none of step 3"));

  // Nothing to go on from: an error, and nothing is changed.
  Trained bad;
  bad.train();
  for (const int64_t step : {2, 4, 6, 7}) bad.forge(step, [](Info&) {}, kMoment);
  const std::string before = *bad.fs.content(kChain);
  LogCapture log;
  const auto opened = run::Run::open(train::mixed_config({}), {bad.fs, *bad.engine, 1, {}, {}, {}});
  REQUIRE(!opened.ok());
  CHECK_MESSAGE(mentions(opened.error().message(), "none of the 4 checkpoints can be used"),
                opened.error().message());
  CHECK(*bad.fs.content(kChain) == before);
}

TEST_CASE("witness: the run of a checkpoint is found above it") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("runs/a/checkpoints/step-00000001"));
  CHECK(!run_of_checkpoint(fs, "runs/a/checkpoints/step-00000001")->has_value());
  REQUIRE(fs.create("runs/a/chain.jsonl").ok());
  for (const char* path : {"runs/a/checkpoints/step-00000001", "./runs//a/checkpoints/step-00000001/"})
    CHECK(run_of_checkpoint(fs, path)->value() == "runs/a");
  for (const char* path : {"runs/a/checkpoints", "runs/a", "step-00000001", "elsewhere/step-00000001"})
    CHECK(!run_of_checkpoint(fs, path)->has_value());
  // A run that lost its chain is no place where nothing can be compared.
  check_ok(fs.remove("runs/a/chain.jsonl"));
  REQUIRE(fs.create("runs/a/program.ir").ok());
  const auto lost = run_of_checkpoint(fs, "runs/a/checkpoints/step-00000001");
  REQUIRE(!lost.ok());
  CHECK(lost.error().code() == ErrorCode::kNotFound);
  CHECK_MESSAGE(mentions(lost.error().message(), "runs/a/chain.jsonl is gone"), lost.error().message());
}

}  // namespace
}  // namespace ostro::audit
