// Scores are the bits of the training loss, whatever the batches, the padding, the engine and the leaves.
#include <doctest/doctest.h>

#include <bit>

#include "ostro/cpu/engine/engine.h"
#include "ostro/eval/requests.h"
#include "ostro/eval/score/encoding.h"
#include "ostro/eval/score/text_model.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/tokenizer/files/trainer.h"
#include "ostro/train/options/llama_for_test.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/step/step.h"

namespace ostro::eval {
namespace {

using runtime::Buffer;

constexpr int64_t kContext = 40;

std::shared_ptr<const tokenizer::Tokenizer> made_tokenizer() {
  bool done = false;
  const auto document = [&](std::string& text) -> Result<bool> {
    text = "the cat sat on the mat and the dog sat on the cat; ";
    return !std::exchange(done, true);
  };
  tokenizer::TrainOptions options;
  options.vocab_size = 270;
  return std::make_shared<tokenizer::Tokenizer>(tokenizer::train(document, options).value());
}

struct Scored {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer = made_tokenizer();
  train::TrainConfig config;
  models::ModelFunctions functions;
  std::vector<Buffer> params;
  runtime::Engine& engine;

  explicit Scored(runtime::Engine& e, const config::IntMap& leaves = {}) : engine(e) {
    auto& o = train::llama(config);
    o.seq_len = kContext, o.hidden_dim = 16, o.intermediate_dim = 24, o.num_layers = 2;
    o.num_heads = 4, o.num_kv_heads = 2, o.initializer_range = 0.3;
    config.data.train_urls = {"text"};
    config.trainer.train_batch_size = 2;
    config.numerics.leaf_examples = 1;
    config.numerics.leaves = leaves;
    check_ok(config.resolve());
    const int64_t vocab = tokenizer->vocab_size();
    functions = config.model_options().evaluation_functions(vocab, train::compute_dtype(config));
    params = train::initial_state(train::make_programs(config, functions).value(), e, 5).value().params;
  }
  ScorerOptions options(int64_t batch_tokens) const {
    return {kContext, batch_tokens, train::inference_leaf_table(config)};
  }
  TokenScorer scorer(int64_t batch_tokens) const {
    return {functions, params, engine, options(batch_tokens)};
  }
  TextModel model(int64_t batch_tokens) const {
    return {functions, params, engine, tokenizer, {kContext, batch_tokens, options(1).leaves}};
  }
};

// Windows of all lengths, with first tokens at all places.
std::vector<Window> windows(size_t count) {
  std::vector<Window> out;
  uint32_t state = 77;
  for (size_t i = 0; i < count; ++i) {
    Window w;
    const size_t length = 2 + (i * 7) % kContext;
    for (size_t k = 0; k < length; ++k) {
      state = state * 1664525 + 1013904223;
      w.tokens.push_back(static_cast<int32_t>((state >> 16) % 270));
    }
    w.first = 1 + i % (length - 1);
    out.push_back(std::move(w));
  }
  out.push_back({std::vector<int32_t>(kContext + 1, 7), 1});
  return out;
}

bool same(const std::vector<WindowScore>& a, const std::vector<WindowScore>& b) {
  bool equal = a.size() == b.size();
  for (size_t i = 0; equal && i < a.size(); ++i)
    equal = std::bit_cast<uint64_t>(a[i].log_prob) == std::bit_cast<uint64_t>(b[i].log_prob);
  return equal;
}

TEST_CASE("scores do not depend on batches, on the program, or on the engine") {
  const auto compiled = cpu::make_cpu_engine().value();
  const auto reference = interp::make_interpreter();
  for (const config::IntMap& leaves :
       {config::IntMap{}, config::IntMap{{"kv_heads", 2}, {"mlp", 3}, {"pos", 2}}}) {
    Scored s(*compiled, leaves);
    const std::vector<Window> all = windows(30);
    const auto once = s.scorer(4096).score(all, false).value();
    CHECK(same(once, s.scorer(1).score(all, false).value()));
    std::vector<int> times(all.size());
    for (const TokenScorer::Batch& batch : s.scorer(100).batches(all, false))
      for (const size_t window : batch.windows) ++times[window];
    CHECK(times == std::vector<int>(all.size(), 1));
    CHECK(same(once, s.scorer(100).score(all, false).value()));
    CHECK(same(once, s.scorer(4096).score(all, true).value()));
    Scored r(*reference, leaves);
    CHECK(same(s.scorer(64).score(std::span(all).first(3), true).value(),
               r.scorer(64).score(std::span(all).first(3), true).value()));
  }
}

TEST_CASE("a whole window has the loss of the evaluation program") {
  const auto engine = cpu::make_cpu_engine().value();
  Scored s(*engine, {{"kv_heads", 2}, {"mlp", 3}});
  const Window w = windows(0)[0];
  auto program = engine->compile(train::held_out_program(s.config, s.tokenizer->vocab_size())).value();
  const ir::Shape ids{ir::DType::i32, {{"batch", 1}, {"pos", kContext}}};
  std::vector<Buffer> inputs = s.params;
  inputs.push_back(Buffer::copy_of(ids, w.tokens.data()));
  inputs.push_back(Buffer::copy_of(ids, w.tokens.data() + 1));
  Buffer mask = Buffer::zeros(ids.with_dtype(ir::DType::f32));
  for (float& m : mask.mutable_as<float>()) m = 1;
  inputs.push_back(mask);
  double expected = 0;
  const auto losses = program->run(std::move(inputs)).value();
  for (const float x : losses[0].as<float>()) expected -= static_cast<double>(x);
  CHECK(s.scorer(1).score({&w, 1}, false).value()[0].log_prob == expected);
}

TEST_CASE("greedy is what generation does") {
  const auto engine = cpu::make_cpu_engine().value();
  Scored s(*engine);
  TextModel model = s.model(256);
  const GeneratedText made = model.generate({"the cat", {}, 6, 0, 0}).value();
  REQUIRE(made.tokens == 6);
  auto ids = s.tokenizer->encode("the cat");
  const auto runner =
      infer::make_runner(s.functions, {}, s.params, *engine, {kContext}, s.options(1).leaves).value();
  infer::SampleOptions options;
  options.max_new_tokens = 6;
  const std::vector<int32_t> prompt(ids.begin(), ids.end());
  const auto next = infer::generate(*runner, {&prompt, 1}, options).value()[0];
  Window w{prompt, prompt.size()};
  w.tokens.insert(w.tokens.end(), next.begin(), next.end());
  Window other = w;
  other.tokens.back() = (other.tokens.back() + 1) % 270;
  const std::vector<Window> both = {w, other};
  const auto scores = s.scorer(256).score(both, true).value();
  CHECK(*scores[0].greedy);
  CHECK_FALSE(*scores[1].greedy);
}

TEST_CASE("windows of a continuation") {
  const auto tokenizer = made_tokenizer();
  const auto window = [&](const char* context, const char* continuation, int64_t length) {
    return continuation_window(*tokenizer, context, continuation, length);
  };
  const auto ids = tokenizer->encode("the cat sat");
  const Window w = window("the cat", " sat", kContext).value();
  CHECK(std::vector<uint32_t>(w.tokens.begin(), w.tokens.end()) == ids);
  CHECK(w.first == tokenizer->encode("the cat").size());
  // A space at the end of the context is the continuation's.
  const Window spaced = window("the cat ", "sat", kContext).value();
  CHECK(spaced.tokens == w.tokens);
  CHECK(spaced.first == w.first);
  const Window alone = window("", "the", kContext).value();
  CHECK(alone.first == 1);
  CHECK(alone.tokens[0] == static_cast<int32_t>(*tokenizer->eos_id()));
  const Window cut = window("the dog sat on the cat", " sat", 3).value();
  CHECK(cut.tokens.size() == 4);
  CHECK(window("the", "", kContext).error().message().find("no token of its own") != std::string::npos);
  CHECK(window("the", " cat sat on the mat and the dog", 2)
            .error()
            .message()
            .find("the model's context is 2") != std::string::npos);
}

// The ids that lm-evaluation-harness has of the same texts with a tokenizer whose post-processor adds
// token 5.
TEST_CASE("windows begin as prompts do, and a continuation has a token of its own") {
  const tokenizer::Tokenizer t = made_tokenizer()->with_beginning({5}).value();
  const auto ids = [&](const char* text) {
    const auto plain = t.encode(text);
    return std::vector<int32_t>(plain.begin(), plain.end());
  };
  const Window w = continuation_window(t, "the cat", " sat", kContext).value();
  CHECK(w.tokens[0] == 5);
  CHECK(std::vector<int32_t>(w.tokens.begin() + 1, w.tokens.end()) == ids("the cat sat"));
  CHECK(w.first == ids("the cat").size() + 1);
  CHECK(continuation_window(t, "", "the", kContext)->tokens[0] == 5);
  // One token spans the end of the context and the continuation.
  REQUIRE(ids("the cat sat").size() < ids("the cat sa").size() + ids("t").size());
  const Window joined = continuation_window(t, "the cat sa", "t", kContext).value();
  CHECK(joined.tokens.size() - joined.first >= 1);
  CHECK(joined.tokens.back() == ids("t").back());
}

TEST_CASE("a stop string may be a special token") {
  tokenizer::TrainOptions options;
  options.vocab_size = 260;
  options.special_tokens = {"<|endoftext|>", "<|im_end|>"};
  const auto t = tokenizer::train([](std::string&) -> Result<bool> { return false; }, options).value();
  const auto before = [&](const char* text, std::vector<std::string> until) {
    return text_before_stop(t, t.encode(text), until).value().value_or("none");
  };
  CHECK(before("4<|im_end|>\n9", {"<|im_end|>"}) == "4");
  CHECK(before("4\n<|im_end|>\n9", {"<|im_end|>", "\n"}) == "4");
  CHECK(before("a<|im_end|>b|c", {"|c"}) == "ab");
  CHECK(before("a<|im_end|>bc", {"abc"}) == "");
  CHECK(before("a<|im_end|>b", {"end|>b"}) == "a<|im_");
  CHECK(before("é<|im_end|>", {"<|im_end|>"}) == "é");
  CHECK(before("ab", {"<|im_end|>"}) == "none");
}

TEST_CASE("rolling windows score every token once") {
  std::vector<uint32_t> text;
  for (uint32_t i = 0; i < 23; ++i) text.push_back(i);
  for (const int64_t stride : {8, 3, 1}) {
    uint32_t expected = 0;
    for (const Window& w : rolling_windows(text, 99, 8, stride)) {
      CHECK(w.tokens.size() <= 9);
      for (size_t i = w.first; i < w.tokens.size(); ++i)
        CHECK(w.tokens[i] == static_cast<int32_t>(expected++));
      for (size_t i = 1; i < w.tokens.size(); ++i)
        CHECK((w.tokens[i] == w.tokens[i - 1] + 1 || w.tokens[i - 1] == 99));
    }
    CHECK(expected == 23);
  }
  CHECK(rolling_windows({}, 99, 8, 8).empty());
  // The last window is filled with the tokens before it.
  CHECK(rolling_windows(text, 99, 8, 8).back().tokens.size() == 9);
}

TEST_CASE("answers do not depend on what is asked together") {
  const auto engine = cpu::make_cpu_engine().value();
  Scored s(*engine);
  TextModel model = s.model(256);
  const std::vector<std::string> lines = {R"({"context": "the", "continuation": " cat", "id": [1]})",
                                          R"({"text": "the dog sat"})",
                                          R"({"text": "the dog sat", "stride": 50})",
                                          R"({"contxt": "a", "continuation": "b"})",
                                          R"({"prompt": "the", "max_tokens": 3, "until": [""]})",
                                          R"({"prompt": "the", "max_tokens": 3})",
                                          "[1]",
                                          R"({"id": 7, "context": "a"})"};
  int64_t failed = 0;
  const auto together = answer_requests(model, lines, failed);
  CHECK(failed == 5);
  for (size_t i = 0; i < lines.size(); ++i)
    CHECK(answer_requests(model, {lines[i]}, failed)[0] == together[i]);
  CHECK(together[0].starts_with("{\"id\":[1],\"log_prob\":-"));
  CHECK(together[2] == R"({"error":"stride 50: use 1 to 40, the model's context"})");
  CHECK(together[3] == R"({"error":"unknown key \"contxt\"; the nearest is \"context\""})");
  CHECK(together[6] == R"({"error":"not a JSON object in UTF-8"})");
  CHECK(together[7].starts_with("{\"id\":7,\"error\""));
}

}  // namespace
}  // namespace ostro::eval
