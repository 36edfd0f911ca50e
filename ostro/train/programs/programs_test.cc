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
  TrainConfig c;
  auto& o = llama(c);
  o.seq_len = 4;
  o.hidden_dim = 4;
  o.intermediate_dim = 4;
  o.num_layers = 1;
  o.num_heads = 1;
  o.num_kv_heads = 1;
  c.data.train_urls = {"text"};
  c.trainer.train_batch_size = 2;
  c.trainer.num_train_steps = 10;
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
  const size_t n = model.shapes.size();
  const auto run = [&](float bad, double loss_sum) {
    std::vector<Buffer> in;
    for (int part = 0; part < 4; ++part)
      for (const Shape& s : model.shapes) {
        Buffer b = Buffer::empty(s);
        for (size_t i = 0; i < b.as<float>().size(); ++i)
          b.mutable_as<float>()[i] =
              0.01f * static_cast<float>(part + 1) + 0.001f * static_cast<float>(i % 7);
        in.push_back(b);
      }
    in[4 * n - 1].mutable_as<float>()[0] = bad;  // one element of the last gradient
    in.push_back(Buffer::scalar(DType::f64, loss_sum));
    in.push_back(Buffer::scalar(DType::f64, 8.0));
    for (const float x : {1e-2f, 10.0f, 20.0f}) in.push_back(Buffer::scalar(DType::f32, x));
    const auto out = update->run(in).value();
    bool kept = true, moved = true;
    for (size_t i = 0; i < 3 * n; ++i) {
      kept &= same(in[i], out[i]);
      moved &= !same(in[i], out[i]);
    }
    const bool ok = out[3 * n + 2].as<uint8_t>()[0] != 0;
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
