// The update program: a step with a non-finite loss or gradient keeps the state, bit for bit.
#include "ostro/train/programs/programs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "ostro/interp/engine/engine.h"
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
