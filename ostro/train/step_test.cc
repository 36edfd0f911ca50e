// The walking skeleton: a tiny Llama through trace, grad, interpreter and optimizer.
#include "ostro/train/step.h"

#include <doctest/doctest.h>

#include "ostro/interp/engine.h"
#include "ostro/models/llama.h"

namespace ostro::train {
namespace {

TrainConfig tiny() {
  TrainConfig c;
  auto& o =
      dynamic_cast<models::ModelOptionsOf<models::LlamaOptions, models::Llama>&>(c.model_options()).options;
  o.seq_len = 8;
  o.hidden_dim = 8;
  o.intermediate_dim = 12;
  o.num_layers = 2;
  o.num_heads = 2;
  o.num_kv_heads = 1;
  c.data.train_urls = {"text"};
  c.trainer.train_batch_size = 4;
  c.trainer.num_train_steps = 20;
  c.numerics.leaf_examples = 2;
  c.numerics.cells = {{"embed", 4}};
  std::get<optim::AdamOptions>(c.optimizer).learning_rate = 1e-2;
  check_ok(c.resolve());
  return c;
}

BatchArrays batch_of(const TrainConfig& c, int64_t vocab) {
  const ir::Shape ids{ir::DType::i32,
                      {{"batch", c.trainer.train_batch_size.at(0)}, {"pos", c.model_options().seq_len()}}};
  runtime::Buffer tokens = runtime::Buffer::empty(ids), targets = runtime::Buffer::empty(ids),
                  mask = runtime::Buffer::empty(ids.with_dtype(ir::DType::f32));
  for (int64_t i = 0; i < ids.count(); ++i) {
    tokens.mutable_as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((i * 7 + 3) % vocab);
    targets.mutable_as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(((i + 1) * 7 + 3) % vocab);
    mask.mutable_as<float>()[static_cast<size_t>(i)] = i % 5 == 0 ? 0.0f : 1.0f;
  }
  return {tokens, targets, mask};
}

std::vector<float> losses(const TrainConfig& c, int steps) {
  const auto model = c.model_options().functions(17, compute_dtype(c));
  const CanonicalPrograms programs = make_programs(c, model).value();
  auto engine = interp::make_interpreter();
  State state = initial_state(programs, *engine, c.trainer.seed).value();
  auto runner = make_step_runner(programs, *engine, "none").value();
  const auto& adam = std::get<optim::AdamOptions>(c.optimizer);
  std::vector<float> out;
  for (int i = 0; i < steps; ++i) {
    const StepResult r =
        runner->run(state, batch_of(c, 17), optim::adam_scalars(adam, state.step, c.trainer.num_train_steps))
            .value();
    CHECK(r.ok);
    CHECK(r.leaves.size() == 2);
    out.push_back(r.loss);
  }
  return out;
}

TEST_CASE("a tiny Llama learns a fixed batch, in f32 and in bf16; another seed differs") {
  for (const char* mp : {"f32", "p=f32,c=bfloat16"}) {
    TrainConfig c = tiny();
    c.trainer.mp = mp;
    const auto a = losses(c, 12);
    CHECK(a.front() > 2.7f);
    CHECK(a.back() < 0.8f * a.front());
    c.trainer.seed = 1;
    CHECK(losses(c, 1)[0] != a[0]);
  }
}

TEST_CASE("program text round-trips and hashes") {
  const TrainConfig c = tiny();
  const CanonicalPrograms p = make_programs(c, c.model_options().functions(17, compute_dtype(c))).value();
  auto again = parse_programs(print_programs(p));
  REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
  CHECK(programs_hash(*again) == programs_hash(p));
  CHECK(print_programs(*again) == print_programs(p));
}

}  // namespace
}  // namespace ostro::train
