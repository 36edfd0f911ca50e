// The update program: a step with a non-finite loss or gradient keeps the state, bit for bit.
#include "ostro/train/programs/programs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/program/int8_limits.h"
#include "ostro/ir/text/text.h"
#include "ostro/train/options/llama_for_test.h"

namespace ostro::train {
namespace {

using runtime::Buffer;

TrainConfig tiny() {
  TrainConfig c = tiny_llama();
  check_ok(c.resolve());
  return c;
}

bool same(const Buffer& a, const Buffer& b) {
  return std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

TEST_CASE("the update selects the old state where loss or gradient norm is not finite") {
  const TrainConfig c = tiny();
  const auto model = c.model_options().functions(7, compute_dtype(c));
  const CanonicalPrograms programs = make_programs(c, model).value();
  const auto engine = interp::make_interpreter();
  const auto update = engine->compile(programs.update).value();
  const Signatures at = signatures_of(programs);
  const auto run = [&](float bad, double loss_sum) {
    UpdateParams<Buffer> in;
    const auto fill = [&](std::vector<Buffer>& list, float value) {
      for (const Shape& s : model.shapes) {
        list.push_back(Buffer::empty(s));
        const auto to = list.back().mutable_as<float>();
        for (size_t i = 0; i < to.size(); ++i) to[i] = value + 0.001f * static_cast<float>(i % 7);
      }
    };
    fill(in.params, 0.01f), fill(in.optimizer, 0.02f), fill(in.optimizer, 0.03f), fill(in.gradients, 0.04f);
    in.gradients.back().mutable_as<float>()[0] = bad;
    in.loss_sum = Buffer::scalar(DType::f64, loss_sum);
    in.weight = Buffer::scalar(DType::f64, 8.0);
    for (const float x : {1e-2f, 10.0f, 20.0f}) in.scalars.push_back(Buffer::scalar(DType::f32, x));
    const UpdateResults<Buffer> out = read_fields(at.update_results, update->run(as_list(in)).value());
    bool kept = true, moved = true;
    const auto compare = [&](const std::vector<Buffer>& before, const std::vector<Buffer>& after) {
      REQUIRE(before.size() == after.size());
      for (size_t i = 0; i < before.size(); ++i)
        kept &= same(before[i], after[i]), moved &= !same(before[i], after[i]);
    };
    compare(in.params, out.params), compare(in.optimizer, out.optimizer);
    const bool ok = out.measures.ok.item<uint8_t>() != 0;
    CHECK(ok == moved);
    CHECK(ok == !kept);
    return ok;
  };
  CHECK(run(0.5f, 16.0));
  CHECK_FALSE(run(INFINITY, 16.0));
  CHECK_FALSE(run(-INFINITY, 16.0));
  CHECK_FALSE(run(NAN, 16.0));
  CHECK_FALSE(run(0.5f, NAN));
  CHECK_FALSE(run(0.5f, INFINITY));
}

TEST_CASE("only the leaf program of integer products takes draws, and only its gradients are dithered") {
  TrainConfig c = tiny_llama();
  c.trainer.mp = "p=f32,c=int8";
  check_ok(c.resolve());
  CHECK(precision(c).int8_block == ir::kInt8Block);
  CHECK(numerics_options(c) == R"({"block":256,"products":"int8"})");
  CHECK(numerics_options(tiny()) == "{}");
  const auto model = c.model_options().functions(7, precision(c));
  const CanonicalPrograms programs = make_programs(c, model).value();
  const std::vector<std::string>& names = programs.leaf.param_names;
  CHECK(names[names.size() - 2] == "draw_key");
  CHECK(names.back() == "example");
  const std::string leaf = ir::print(programs.leaf), eval = ir::print(make_eval_program(c, model));
  const auto count = [](const std::string& text, const std::string& word) {
    size_t n = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  // qkv, o, gate_up, down and the head: one product forward, two backward. Both forms of a cotangent are
  // dithered.
  CHECK(count(leaf, " dot_int8") == 15);
  CHECK(count(leaf, "\"dithered\"") == 10);
  CHECK(count(eval, " dot_int8") == 5);
  CHECK(count(eval, "\"dithered\"") == 0);
  CHECK(eval.find("draw_key") == std::string::npos);
  const auto bf16 = tiny();
  CHECK(make_programs(bf16, bf16.model_options().functions(7, precision(bf16)))
            .value()
            .leaf.param_names.back() == "loss_mask");
}

TEST_CASE("bf16_tc16 is a rule of every product of the model outside attention, forward and backward") {
  TrainConfig c = tiny_llama();
  c.trainer.mp = "p=f32,c=bf16_tc16";
  check_ok(c.resolve());
  CHECK(precision(c).rule == ProductRule::kTc16);
  CHECK(precision(c).dtype == ir::DType::bf16);
  CHECK(numerics_options(c) == R"({"products":"bf16_tc16"})");
  const auto texts = [](const TrainConfig& config) {
    const auto model = config.model_options().functions(7, precision(config));
    return std::pair(ir::print(make_programs(config, model).value().leaf),
                     ir::print(make_eval_program(config, model)));
  };
  const auto count = [](const std::string& text, const std::string& word) {
    size_t n = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  // qkv, o, gate_up, down and the head: one product forward, two backward.
  const auto [leaf, eval] = texts(c);
  CHECK(count(leaf, "\"tc16\"") == 15);
  CHECK(count(eval, "\"tc16\"") == 5);
  CHECK(count(leaf, " dot") == 15);
  // Without the rule it is the program of bf16.
  TrainConfig plain = c;
  plain.trainer.mp = "p=f32,c=bfloat16";
  CHECK(numerics_options(plain) == "{}");
  const auto without = texts(plain);
  CHECK(count(without.first, "tc16") == 0);
  CHECK(count(without.first, " dot") == 15);
  c.trainer.mp = "c=bf16_tc16,a=int8";
  CHECK(numerics_options(c) == R"({"attention":"int8","products":"bf16_tc16"})");
}

TEST_CASE("attention on integers is an attribute of its ops alone, in training and in evaluation") {
  TrainConfig c = tiny_llama();
  c.trainer.mp = "p=f32,c=int8,a=int8";
  check_ok(c.resolve());
  CHECK(precision(c).attention_slices == ir::kInt8Slices);
  CHECK(numerics_options(c) == R"({"attention":"int8","block":256,"products":"int8"})");
  const auto model = c.model_options().functions(7, precision(c));
  const std::string leaf = ir::print(make_programs(c, model).value().leaf),
                    eval = ir::print(make_eval_program(c, model));
  for (const std::string& text : {leaf, eval}) CHECK(text.find("int8_slices") != std::string::npos);
  c.trainer.mp = "p=f32,c=bfloat16,a=int8";
  CHECK(numerics_options(c) == R"({"attention":"int8"})");
  CHECK(precision(c).int8_block == 0);
  // Without the attribute the program is that of c=int8.
  c.trainer.mp = "p=f32,c=int8";
  const std::string without =
      ir::print(make_programs(c, c.model_options().functions(7, precision(c))).value().leaf);
  CHECK(without.find("int8_slices") == std::string::npos);
  CHECK(without != leaf);
}

TEST_CASE("two parameters that would draw from one key are refused") {
  const TrainConfig c = tiny();
  auto model = c.model_options().functions(7, compute_dtype(c));
  model.paths[0] = "model/costarring";  // a known collision of 32-bit FNV-1a
  model.paths[1] = "model/liquid";
  const auto programs = make_programs(c, model);
  REQUIRE(!programs.ok());
  CHECK(
      programs.error().message() ==
      "parameters \"costarring\" and \"liquid\" below \"model/\" would draw from one random key; rename one");
}

}  // namespace
}  // namespace ostro::train
