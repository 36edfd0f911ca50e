// Row independence (numerics.md N16): the loss of a token is the same bits in the training step, in
// evaluation and in generation with a cache. And the mean over a batch is sum / W, whatever the leaves'
// weights.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "ostro/cpu/engine/engine.h"
#include "ostro/eval/gradients.h"
#include "ostro/infer/generate.h"
#include "ostro/infer/rows_for_test.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/train/options/llama_for_test.h"

namespace ostro::eval {
namespace {

using runtime::Buffer;

constexpr int64_t kVocab = 37;

enum class Form { kPlain, kTied, kWindowed };

train::TrainConfig config(const char* mp, Form form, int64_t seq_len) {
  train::TrainConfig c;
  auto& o = train::llama(c);
  if (form == Form::kWindowed) o = models::DecoderOptions("mistral"), o.sliding_window = 7;
  o.seq_len = seq_len, o.hidden_dim = 16, o.intermediate_dim = 24, o.num_layers = 2;
  o.num_heads = 4, o.num_kv_heads = 2;
  o.initializer_range = 0.3;  // so that attention is not flat
  o.tie_word_embeddings = form == Form::kTied;
  c.data.train_urls = {"text"};
  c.trainer.mp = mp;
  c.trainer.train_batch_size = 6;
  c.numerics.leaf_examples = 2;
  check_ok(c.resolve());
  return c;
}

// Token ids that do not repeat in a pattern, all targets counted.
train::BatchArrays batch_of(const train::TrainConfig& c, int64_t rows) {
  const int64_t length = c.model_options().seq_len();
  const ir::Shape ids{ir::DType::i32, {{"batch", rows}, {"pos", length}}};
  Buffer tokens = Buffer::empty(ids), targets = Buffer::empty(ids),
         mask = Buffer::empty(ids.with_dtype(ir::DType::f32));
  uint32_t state = 12345;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i <= length; ++i) {
      state = state * 1664525 + 1013904223;
      const auto token = static_cast<int32_t>((state >> 16) % kVocab);
      const auto at = static_cast<size_t>(row * length + i);
      if (i > 0) targets.mutable_as<int32_t>()[at - 1] = token;
      if (i < length) tokens.mutable_as<int32_t>()[at] = token;
    }
  }
  for (float& m : mask.mutable_as<float>()) m = 1;
  return {tokens, targets, mask};
}

struct Setup {
  train::TrainConfig c;
  models::ModelFunctions model;
  train::CanonicalPrograms programs;
  std::vector<Buffer> params;
  runtime::Engine& engine;

  Setup(const train::TrainConfig& config, runtime::Engine& e)
      : c(config),
        model(c.model_options().functions(kVocab, train::precision(c))),
        programs(train::make_programs(c, model).value()),
        params(train::initial_state(programs, e, 5).value().params),
        engine(e) {}

  // Losses [batch, pos] of one leaf's rows, by the evaluation program.
  std::vector<float> evaluated(const train::BatchArrays& rows) {
    auto program = engine.compile(train::make_eval_program(c, model)).value();
    std::vector<Buffer> inputs = params;
    inputs.insert(inputs.end(), rows.begin(), rows.end());
    const auto out = program->run(std::move(inputs)).value();
    return {out[0].as<float>().begin(), out[0].as<float>().end()};
  }
};

// Runs the leaf program, the one training differentiates, with all weight on one token: its loss sum is then
// that token's loss, exactly.
std::vector<float> trained(Setup& s, const train::BatchArrays& rows, const std::vector<size_t>& places) {
  auto leaf = s.engine.compile(s.programs.leaf).value();
  std::vector<float> out;
  for (const size_t place : places) {
    Buffer mask = Buffer::zeros(rows[2].shape());
    mask.mutable_as<float>()[place] = 1;
    std::vector<Buffer> inputs = s.params;
    inputs.insert(inputs.end(), {rows[0], rows[1], mask});
    // With integers also what gradients draw from: no loss depends on it.
    for (size_t k = inputs.size(); k < s.programs.leaf.body.params.size(); ++k)
      inputs.push_back(Buffer::zeros(s.programs.leaf.body.shape(s.programs.leaf.body.params[k])));
    const double sum = leaf->run(std::move(inputs)).value()[0].item<double>();
    out.push_back(static_cast<float>(sum));
    CHECK(static_cast<double>(out.back()) == sum);
  }
  return out;
}

void check_rows(Setup& s) {
  const int64_t length = s.c.model_options().seq_len();
  const train::BatchArrays rows = batch_of(s.c, 2);
  const std::vector<float> losses = s.evaluated(rows);
  float low = losses[0], high = losses[0];
  for (const float x : losses) {
    CHECK(std::isfinite(x));
    low = std::min(low, x), high = std::max(high, x);
  }
  CHECK(high - low > 0.5F);  // the model says something

  std::vector<size_t> places;
  for (size_t i = 0; i < losses.size(); i += i < 8 ? 1 : 13) places.push_back(i);
  places.push_back(losses.size() - 1);
  const std::vector<float> in_training = trained(s, rows, places);
  for (size_t i = 0; i < places.size(); ++i)
    CHECK(std::bit_cast<uint32_t>(in_training[i]) == std::bit_cast<uint32_t>(losses[places[i]]));

  // Another cache length than the sequence's, and every way to split prompt and steps.
  const auto layers = models::decoder_by_layer(train::llama(s.c).for_evaluation(), kVocab,
                                               train::precision(s.c), {}, s.model.paths);
  const auto runner = infer::make_runner(s.model, layers, s.params, s.engine, {length + 7, 2, 64}).value();
  for (int64_t row = 0; row < 2; ++row) {
    const auto begin = static_cast<size_t>(row * length), end = begin + static_cast<size_t>(length);
    const auto ids = rows[0].as<int32_t>();
    std::vector<int32_t> tokens(ids.begin() + static_cast<int64_t>(begin),
                                ids.begin() + static_cast<int64_t>(end));
    tokens.push_back(rows[1].as<int32_t>()[end - 1]);
    for (const int64_t prefill : {int64_t{1}, int64_t{5}, int64_t{17}, length}) {
      const std::vector<float> cached = infer::losses(*runner, tokens, prefill).value();
      REQUIRE(cached.size() == static_cast<size_t>(length));
      size_t equal = 0;
      for (size_t i = 0; i < cached.size(); ++i)
        equal += std::bit_cast<uint32_t>(cached[i]) == std::bit_cast<uint32_t>(losses[begin + i]);
      CAPTURE(prefill);
      CHECK(equal == cached.size());
    }
  }
  // The control: another token in front changes what follows it, and nothing before.
  train::BatchArrays other = {Buffer::copy_of(rows[0].shape(), rows[0].bytes().data()), rows[1], rows[2]};
  other[0].mutable_as<int32_t>()[4] = (rows[0].as<int32_t>()[4] + 1) % static_cast<int32_t>(kVocab);
  const std::vector<float> changed = s.evaluated(other);
  for (size_t i = 0; i < losses.size(); ++i)
    if (i < 4 || i >= static_cast<size_t>(length))
      CHECK(changed[i] == losses[i]);
    else if (i == 4 || i == 5)
      CHECK(changed[i] != losses[i]);
}

TEST_CASE("a token's loss is the same bits in training, evaluation and cached generation") {
  const auto compiled = cpu::make_cpu_engine().value();
  for (const char* mp : {"f32", "p=f32,c=bfloat16", "p=f32,c=int8"})
    for (const Form form : {Form::kPlain, Form::kTied, Form::kWindowed}) {
      CAPTURE(mp);
      CAPTURE(static_cast<int>(form));
      Setup s(config(mp, form, 40), *compiled);
      check_rows(s);
    }
}

TEST_CASE("the same in the interpreter, with the same losses") {
  const auto reference = interp::make_interpreter();
  const auto compiled = cpu::make_cpu_engine().value();
  for (const char* mp : {"f32", "p=f32,c=bfloat16", "p=f32,c=int8"}) {
    CAPTURE(mp);
    Setup s(config(mp, Form::kPlain, 20), *reference);
    check_rows(s);
    Setup fast(config(mp, Form::kPlain, 20), *compiled);
    const train::BatchArrays rows = batch_of(s.c, 2);
    CHECK(s.evaluated(rows) == fast.evaluated(rows));
  }
}

TEST_CASE(
    "leaves that count differently: loss and gradients are sum / W of an f64 reference, no mean of means") {
  const auto engine = cpu::make_cpu_engine().value();
  Setup s(config("f32", Form::kPlain, 24), *engine);
  const train::BatchArrays batch = batch_of(s.c, 6);
  Buffer mask = Buffer::copy_of(batch[2].shape(), batch[2].bytes().data());
  // 48, 5 and 21 tokens count.
  for (size_t i = 0; i < 144; ++i)
    mask.mutable_as<float>()[i] = (i < 48 || (i >= 50 && i < 55) || i >= 123) ? 1.0F : 0.0F;
  const train::BatchArrays uneven = {batch[0], batch[1], mask};

  double sum = 0, weight = 0, mean_of_means = 0;
  const size_t n = s.params.size();
  std::vector<std::vector<double>> reference(n), wrong(n);
  auto leaf = engine->compile(s.programs.leaf).value();
  for (int64_t i = 0; i < 3; ++i) {
    const train::BatchArrays rows = train::rows_of(uneven, 2 * i, 2);
    const std::vector<float> losses = s.evaluated(rows);
    double leaf_sum = 0, leaf_weight = 0;
    for (size_t k = 0; k < losses.size(); ++k) {
      const double w = static_cast<double>(rows[2].as<float>()[k]);
      leaf_sum += w * static_cast<double>(losses[k]);
      leaf_weight += w;
    }
    sum += leaf_sum, weight += leaf_weight, mean_of_means += leaf_sum / leaf_weight / 3;
    std::vector<Buffer> inputs = s.params;
    inputs.insert(inputs.end(), rows.begin(), rows.end());
    const auto out = train::read_fields(train::signatures_of(s.programs).leaf_results,
                                        leaf->run(std::move(inputs)).value());
    for (size_t p = 0; p < n; ++p) {
      const auto g = out.gradients[p].as<float>();
      reference[p].resize(g.size()), wrong[p].resize(g.size());
      for (size_t k = 0; k < g.size(); ++k) {
        reference[p][k] += static_cast<double>(g[k]);
        wrong[p][k] += static_cast<double>(g[k]) / leaf_weight / 3;
      }
    }
  }
  REQUIRE(weight == 74);
  const MeanGradients result = mean_gradients(s.programs, *engine, "none", s.params, uneven).value();
  CHECK(result.weight == 74);
  CHECK(result.loss == static_cast<float>(sum / weight));
  CHECK(std::abs(static_cast<double>(result.loss) - mean_of_means) > 1e-3);
  for (size_t p = 0; p < n; ++p) {
    const auto g = result.gradients[p].as<float>();
    double largest = 0, worst = 0, worst_wrong = 0;
    for (size_t k = 0; k < g.size(); ++k) {
      const double want = reference[p][k] / weight, got = static_cast<double>(g[k]);
      largest = std::max(largest, std::abs(want));
      worst = std::max(worst, std::abs(got - want));
      worst_wrong = std::max(worst_wrong, std::abs(got - wrong[p][k]));
    }
    CAPTURE(s.model.paths[p]);
    CHECK(worst <= 1e-6 * largest);
    CHECK(worst_wrong > 1e-2 * largest);
  }
  // The training step reports the same loss.
  auto runner = train::make_step_runner(s.programs, *engine, "none").value();
  train::State state = train::initial_state(s.programs, *engine, 5).value();
  const train::StepResult step = runner->run(state, uneven, {0.0F, 1.0F, 1.0F}).value();
  CHECK(step.loss() == result.loss);
  CHECK(step.weight == 74);
}

}  // namespace
}  // namespace ostro::eval
