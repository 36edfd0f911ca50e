// Operations and numbers of programs: what is counted, and that what is no number is above every budget.
#include "ostro/board/rules.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ostro/audit/record/traced_programs.h"
#include "ostro/chain/example_chain_for_test.h"
#include "ostro/ir/text/text.h"
#include "ostro/train/options/llama_for_test.h"
#include "ostro/train/programs/run_flops.h"

namespace ostro::board {
namespace {

// One addition of `size` numbers.
ir::Program adding(int64_t size) {
  const std::string n = std::to_string(size);
  return ir::parse_program("program \"p\" leaves {}\n(%0: f32[x:" + n +
                           "] \"x\") {\n  %1 = add(%0, %0) : f32[x:" + n +
                           "] @ \"\" \"\" \"\"\n  return %1\n}\nresults \"y\"\n")
      .value();
}

double attention_flops(int64_t keys) {
  const std::string k = "f32[key_pos:" + std::to_string(keys) + ", head_dim:4]";
  return train::program_flops(
      ir::parse_program(
          "program \"p\" leaves {}\n(%0: f32[pos:2, head_dim:4] \"q\", %1: " + k + " \"k\", %2: " + k +
          " \"v\", %3: i64[] \"at\") {\n"
          "  %4, %5, %6 = attention(%0, %1, %2, %3) {causal = 1, head_dim = \"head_dim\", key = "
          "\"key_pos\", query = \"pos\", scale = 0x1p-1} : f32[pos:2, head_dim:4], f32[pos:2], "
          "f32[pos:2] @ \"\" \"\" \"\"\n  return %4\n}\nresults \"y\"\n")
          .value());
}

std::string refused_rule(double flops) {
  Refusals out;
  check_operations(Rule::kFlops, "its training", flops, 100, out);
  return out.empty() ? "" : out.front().text;
}

audit::RecordedRun two_steps(int64_t init) {
  chain::ExampleRun example;
  chain::write_example(example.fs);
  audit::RecordedRun run;
  run.chain = chain::read_chain(example.fs, chain::kPath).value();
  train::TrainConfig config = train::tiny_llama();
  config.numerics.leaf_examples = 1;
  run.periods.push_back({{}, config, {adding(init), adding(10), adding(5)}});
  return run;
}

}  // namespace

TEST_CASE("what is above a budget is refused, and what is no number, too") {
  CHECK(refused_rule(100) == "");
  CHECK(refused_rule(101) == "its training has 101 FLOPs, and the track allows 100");
  CHECK(refused_rule(std::numeric_limits<double>::infinity()) ==
        "its training has inf FLOPs, and the track allows 100");
  CHECK(refused_rule(std::nan("")) == "its training has nan FLOPs, and the track allows 100");
}

TEST_CASE("attention to no keys has no operations") {
  CHECK(attention_flops(0) == 0);
  CHECK(attention_flops(2) == 4.0 * 2 * 1 * 4);  // two rows, half of two keys, four numbers
}

TEST_CASE("a program holds its constants, and every other number that a reader could take from it") {
  const auto held = [](const std::string& ops) {
    return held_bytes(
        ir::parse_program("program \"p\" leaves {}\n(%0: f32[x:2] \"x\") {\n" + ops + "}\nresults \"y\"\n")
            .value());
  };
  // A parameter's axis.
  CHECK(held("  return %0\n") == 1);
  // An operation, three attributes of a byte each, and the data.
  CHECK(
      held("  %1 = constant() {axes = <\"x\">, data = \"0000803f0000803f\", dtype = \"f32\", sizes = [2]} : "
           "f32[x:2] @ \"\" \"\" \"\"\n  return %0\n") == 1 + 4 + 8);
  // One number for all elements has the bytes of a float.
  CHECK(held("  %1 = constant() {axes = <\"x\">, dtype = \"f32\", sizes = [2], value = 0x1p+0} : "
             "f32[x:2] @ \"\" \"\" \"\"\n  return %0\n") == 1 + 4 + 8);
  CHECK(held("  %1 = add(%0, %0) : f32[x:2] @ \"\" \"\" \"\"\n  return %1\n") == 1 + 1 + 2 * 2);
}

TEST_CASE("numbers that a program makes without a constant are held by it") {
  // The start of a slice of a range is such a number.
  const auto numbers = [](int64_t count) {
    std::string text =
        "program \"p\" leaves {}\n(%0: i64[] \"at\") {\n  %1 = iota(%0) {axis = \"x\", size = 65536} : "
        "i32[x:65536] @ \"\" \"\" \"\"\n";
    for (int64_t i = 0; i < count; ++i)
      text += "  %" + std::to_string(i + 2) +
              " = slice(%1) {axis = \"x\", size = 1, start = " + std::to_string(40000 + i) +
              "} : i32[x:1] @ \"\" \"\" \"\"\n";
    return ir::parse_program(text + "  return %2\n}\nresults \"y\"\n").value();
  };
  CHECK(held_bytes(numbers(101)) - held_bytes(numbers(1)) >= 100 * 2);
  CHECK(held_bytes(numbers(10000)) > kMostConstantBytes);
}

TEST_CASE("batches belong to the memory of a check") {
  const auto refusals = [](int64_t bytes) {
    Refusals out;
    check_batch_memory(two_steps(1), bytes, out);
    return out;
  };
  CHECK(refusals(2 * 4 * 32).empty());
  REQUIRE(refusals(2 * 4 * 32 - 1).size() == 1);
  CHECK(refusals(255).front().text ==
        "the batch of step 1, 2 examples of 4 positions, needs 256 bytes of memory, and this check has 255 "
        "(--memory)");
}

TEST_CASE("a score program takes windows that there can be") {
  train::TrainConfig config = train::tiny_llama();
  check_ok(config.resolve());
  audit::RecordedRun run;
  run.periods.push_back({{}, config, audit::traced_programs(config, 7).value()});
  const auto made = [&](const std::string& batch, const std::string& pos) {
    const std::string axes = "[batch:" + batch + ", pos:" + pos + "]";
    return ScoreProgram::create(
        ir::parse_program("program \"p\" leaves {}\n(%0: i32" + axes +
                          " \"tokens\") {\n  %1 = cast(%0) {dtype = \"f32\"} : f32" + axes +
                          " @ \"\" \"\" \"\"\n  return %1\n}\nresults \"per_token\"\n")
            .value(),
        run);
  };
  CHECK(made("2", "4").ok());
  CHECK(made("16", "1048576").ok());
  for (const auto& [batch, pos] :
       {std::pair{"0", "4"}, {"2", "0"}, {"1", "1048577"}, {"17", "1048576"}, {"281474976710656", "1"}}) {
    const auto program = made(batch, pos);
    CAPTURE(batch);
    REQUIRE_FALSE(program.ok());
    CHECK(program.error().message().find("it may have 1 to 1048576 positions") != std::string::npos);
  }
}

TEST_CASE("the operations of a run are those of its steps, and of drawing its first weights") {
  // Two steps of two examples.
  CHECK(operations_of(two_steps(1), 0) == 1 + 2 * (2 * 10 + 5));
  CHECK(operations_of(two_steps(1000), 0) == 1000 + 2 * (2 * 10 + 5));
  audit::RecordedRun pairs = two_steps(1);
  std::get<chain::GenesisEntry>(pairs.chain.links.front().entry).reference = std::string(64, 'a');
  pairs.periods.front().programs.reference = adding(7);  // seven pairs at once
  CHECK(operations_of(pairs, 20) == 1 + 2 * (2 * 10 + 5) + 3 * 7);
}

}  // namespace ostro::board
