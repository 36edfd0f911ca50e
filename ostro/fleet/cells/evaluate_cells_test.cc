// The held-out loss, by several workers: the bits of one, with two components and batches that do not divide.
#include "ostro/fleet/cells/evaluate_cells.h"

#include <doctest/doctest.h>

#include <cstring>

#include "ostro/dist/loop_collectives.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/spmd/run_parts.h"
#include "ostro/train/options/mixed_run_for_test.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/evaluate.h"

namespace ostro::fleet {
namespace {

bool same_losses(const std::vector<train::BatchLoss>& a, const std::vector<train::BatchLoss>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(train::BatchLoss)) == 0;
}

// Every worker's answer, which must be the same.
std::vector<train::BatchLoss> evaluate_together(const WorkerPlan& plan, const ir::Program& program,
                                                const train::HeldOutText& text,
                                                const std::vector<runtime::Buffer>& params) {
  std::vector<std::vector<train::BatchLoss>> all(static_cast<size_t>(plan.mesh().size()));
  const Status done = dist::run_workers(plan.mesh(), [&](runtime::Collectives& c) -> Status {
    std::vector<runtime::Buffer> owned;
    for (size_t k = 0; k < plan.n; ++k)
      owned.push_back(spmd::shard(plan.mesh(), c.rank(), plan.owned(k), params[k]));
    ASSIGN_OR_RETURN(CellEvaluator evaluator, CellEvaluator::create(plan, program, c.rank()));
    ASSIGN_OR_RETURN(all[static_cast<size_t>(c.rank())], evaluator.evaluate(c, owned, text));
    return Status();
  });
  REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error().message()));
  for (const auto& one : all) CHECK(same_losses(one, all[0]));
  return all[0];
}

TEST_CASE("held-out losses of several workers have the bits of one") {
  io::MemoryFileSystem fs;
  train::write_mixed_files(fs);
  const train::TrainConfig config = train::mixed_config({{"numerics.cells", "{embed: 4}"},
                                                         {"numerics.leaves", "{mlp: 2, vocab: 2}"},
                                                         {"model.num_layers", "2"}});
  const auto access = train::open_data(fs, config);
  REQUIRE_MESSAGE(access.ok(), (access.ok() ? "" : access.error().message()));
  const int64_t vocab = access->tokenizer->vocab_size();
  const auto engine = interp::make_interpreter();
  const train::CanonicalPrograms programs =
      train::make_programs(config, config.model_options().functions(vocab, train::compute_dtype(config)))
          .value();
  const ir::Program program = train::held_out_program(config, vocab);
  const train::HeldOutText text = train::HeldOutText::create(config, *access->stores).value();
  const train::State state = train::initial_state(programs, *engine, 1).value();

  const auto alone = engine->compile(program).value();
  std::vector<train::BatchLoss> expected;
  for (int64_t i = 0; i < text.batches(); ++i) {
    std::vector<runtime::Buffer> inputs = state.params;
    for (runtime::Buffer& b : train::to_arrays(text.batch(i).value())) inputs.push_back(std::move(b));
    const auto results = alone->run(std::move(inputs)).value();
    expected.push_back({results[1].item<double>(), results[2].item<double>()});
  }
  REQUIRE(expected.size() >= 5);
  const train::HeldOutLoss whole =
      train::HeldOut::create(text, program, *engine)->evaluate(state.params).value();
  CHECK(text.loss(expected).loss == whole.loss);
  CHECK(text.loss(expected).parts.size() == 2);

  const ir::AxisMap embed{{"embed", "data"}}, tensor{{"mlp", "model"}, {"vocab", "model"}};
  ir::AxisMap both = tensor;
  both.insert(both.end(), embed.begin(), embed.end());
  for (const ir::Sharding& sharding :
       std::vector<ir::Sharding>{{{{{"data", 2}}}, {}, embed},
                                 {{{{"data", 3}}}, {}, {}},
                                 {{{{"replica", 2}, {"data", 2}}}, {}, embed},
                                 {{{{"data", 2}, {"model", 2}}}, tensor, both}}) {
    const auto plan = make_worker_plan(programs, *engine, "none", {sharding, config.numerics.cells}).value();
    CHECK(same_losses(evaluate_together(plan, program, text, state.params), expected));
  }
  // It can fail: one other parameter, another order of the batches.
  train::State other = state;
  other.params[0] = runtime::Buffer::copy_of(state.params[0].shape(), state.params[0].bytes().data());
  other.params[0].mutable_as<float>()[0] += 1;
  const auto plan =
      make_worker_plan(programs, *engine, "none", {{{{{"data", 2}}}, {}, embed}, {{"embed", 4}}}).value();
  CHECK_FALSE(same_losses(evaluate_together(plan, program, text, other.params), expected));
  std::swap(expected[0], expected[1]);
  CHECK_FALSE(same_losses(evaluate_together(plan, program, text, state.params), expected));
}

}  // namespace
}  // namespace ostro::fleet
