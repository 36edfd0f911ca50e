// Drawn workloads: many sequences in one runner, cut into steps in any way, against the forward pass of each
// sequence alone.
#include "ostro/infer/layer_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "ostro/base/test_size.h"
#include "ostro/infer/generate.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder_for_test.h"

namespace ostro::infer {
namespace {

using namespace models::test;
using models::Decoder;
using models::DecoderOptions;

// A model in memory, and the logits of its plain forward pass.
struct Resident {
  explicit Resident(const DecoderOptions& options, const nn::Precision& precision = DType::f32)
      : o(options), compute(precision), model(model_of(o, compute, 3)) {}

  // `rounded`: the parameters of which integers are cut are rounded to bf16 first.
  std::unique_ptr<LayerRows> runner(runtime::Engine& engine, const RowLimits& limits,
                                    bool rounded = false) const {
    const auto functions = models::model_functions<Decoder>(o, kVocab, compute);
    auto layers = models::decoder_by_layer(o, kVocab, compute, {}, functions.paths);
    if (gathers) layers.attend_pages = {};
    std::vector<runtime::Buffer> params;
    for (const Array& a : tree_leaves(model)) {
      params.push_back(a.buffer());
      if (rounded && layers.integers[params.size() - 1]) params.back() = narrowed(a.buffer()).value();
    }
    return LayerRows::create({functions, layers}, std::move(params), engine, limits).value();
  }
  std::vector<float> logits(const std::vector<int32_t>& tokens) const {
    return forward_logits(model, tokens);
  }

  DecoderOptions o;
  nn::Precision compute;
  Decoder model;
  bool gathers = false;  // programs gather pages, as with memory that is not the host's
};

// Steps of drawn chunks of drawn texts, with sequences that are left, begun anew and copied. Returns how many
// rows had other bits than the forward pass of their text alone.
int64_t wrong_rows(const Resident& model, LayerRows& runner, std::mt19937& draw, int steps,
                   int64_t* all_reused = nullptr) {
  struct Text {
    int64_t sequence;
    std::vector<int32_t> tokens;
    size_t fed = 0;
    std::vector<float> logits;
  };
  const auto below = [&](int64_t n) { return static_cast<int64_t>(draw() % static_cast<uint32_t>(n)); };
  std::vector<Text> texts;
  std::vector<std::vector<int32_t>> earlier;
  int64_t reused = 0;
  const auto begin = [&] {
    std::vector<int32_t> tokens(static_cast<size_t>(2 + below(model.o.seq_len - 2)));
    for (int32_t& t : tokens) t = static_cast<int32_t>(below(kVocab));
    size_t fed = 0;
    const int64_t sequence = runner.open().value();
    if (!texts.empty() && below(3) == 0) {  // shares a beginning with another text
      const Text& other = texts[static_cast<size_t>(below(static_cast<int64_t>(texts.size())))];
      const size_t shared = std::min(other.fed, tokens.size() - 1);
      std::copy_n(other.tokens.begin(), shared, tokens.begin());
      // A pool that is too small may have no page left for the copy: the text begins anew.
      const bool may_be_full = all_reused != nullptr;
      const Status copied =
          shared > 0 ? runner.copy(other.sequence, sequence, static_cast<int64_t>(shared)) : Status();
      if (!may_be_full) check_ok(copied);
      fed = copied.ok() ? shared : 0;
    } else if (!earlier.empty() && below(2) == 0) {  // or with one that may be closed
      const auto& other = earlier[static_cast<size_t>(below(std::ssize(earlier)))];
      std::copy_n(other.begin(), std::min(other.size(), tokens.size() - 1), tokens.begin());
    }
    if (fed == 0 && below(4) != 0)
      fed = static_cast<size_t>(runner.reuse(sequence, std::span(tokens).first(tokens.size() - 1), "a"));
    reused += static_cast<int64_t>(fed);
    earlier.push_back(tokens);
    std::vector<float> logits = model.logits(tokens);
    texts.push_back({sequence, std::move(tokens), fed, std::move(logits)});
  };
  int64_t wrong = 0;
  for (int step = 0; step < steps; ++step) {
    while (static_cast<int64_t>(texts.size()) < runner.limits().sequences && below(3) != 0) begin();
    if (texts.empty()) begin();
    std::shuffle(texts.begin(), texts.end(), draw);
    std::vector<RowChunk> chunks;
    int64_t room = runner.limits().rows;
    for (const Text& text : texts) {
      const auto left = static_cast<int64_t>(text.tokens.size() - text.fed);
      if (room == 0 || (below(4) == 0 && !chunks.empty())) continue;
      const int64_t count = std::min({room, left, below(2) == 0 ? int64_t{1} : 1 + below(left)});
      chunks.push_back({text.sequence, std::span(text.tokens).subspan(text.fed, static_cast<size_t>(count)),
                        below(count + 1)});
      room -= count;
    }
    while (!runner.has_room(chunks, 0)) {  // a text gives up its pages
      runner.close(chunks.back().sequence);
      std::erase_if(texts, [&](const Text& text) { return text.sequence == chunks.back().sequence; });
      chunks.pop_back();
    }
    const auto rows = runner.step(chunks);
    REQUIRE_MESSAGE(rows.ok(), rows.error().message());
    size_t at = 0;
    for (const RowChunk& chunk : chunks) {
      Text& text = *std::find_if(texts.begin(), texts.end(),
                                 [&](const Text& t) { return t.sequence == chunk.sequence; });
      text.fed += chunk.tokens.size();
      for (int64_t i = 0; i < chunk.wanted; ++i, ++at) {
        const float* got = rows->as<float>().data() + at * kVocab;
        const float* expected =
            text.logits.data() + (text.fed - static_cast<size_t>(chunk.wanted - i)) * kVocab;
        wrong += std::memcmp(got, expected, kVocab * sizeof(float)) != 0;
      }
    }
    std::erase_if(texts, [&](const Text& text) {
      const bool over = text.fed == text.tokens.size() || below(12) == 0;
      if (over) runner.close(text.sequence);
      return over;
    });
  }
  for (const Text& text : texts) runner.close(text.sequence);
  if (all_reused != nullptr) *all_reused += reused;
  return wrong;
}

TEST_CASE("drawn workloads of every family have the bits of each text alone") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()));
  for (const DecoderOptions& o : sampled_decoders(sized<size_t>(5, 100, 100))) {
    CAPTURE(o.type());
    const Resident model(o);
    const auto runner = model.runner(interpreter(), {o.seq_len, 1 + static_cast<int64_t>(draw() % 6), 32});
    CHECK(wrong_rows(model, *runner, draw, 6) == 0);
  }
}

TEST_CASE("drawn workloads by the compiled engine, with one thread and two, in f32 and bf16") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 1);
  DecoderOptions released = small("grok");
  released.rounding = models::Rounding::kReleased;
  for (const int threads : {1, 2}) {
    const auto engine =
        cpu::make_cpu_engine({.isa = {}, .threads = threads, .generated_code = false}).value();
    for (const DType compute : {DType::f32, DType::bf16})
      for (const DecoderOptions& o :
           {odd_decoder(), odd_mixture(), odd_latent(), small("gemma2"), released}) {
        if (o.rounding == models::Rounding::kReleased && compute == DType::f32) continue;
        CAPTURE(o.type());
        const Resident model(o, compute);
        const auto runner = model.runner(*engine, {o.seq_len, 1 + static_cast<int64_t>(draw() % 48), 64});
        CHECK(wrong_rows(model, *runner, draw, sized(6, 40, 200)) == 0);
      }
  }
}

TEST_CASE("drawn workloads in integers have the bits of each text alone, interpreted and compiled") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 4);
  const nn::Precision integers(DType::bf16, 8);  // small blocks, so that rows have several
  DecoderOptions tied = small("llama");
  tied.tie_word_embeddings = true;
  for (const DecoderOptions& o : {odd_decoder(), small("gemma2"), tied, odd_latent(), odd_mixture()}) {
    CAPTURE(o.type());
    const Resident model(o, integers);
    const auto slow = model.runner(interpreter(), {o.seq_len, 1 + static_cast<int64_t>(draw() % 6), 32});
    CHECK(wrong_rows(model, *slow, draw, sized(2, 6, 30)) == 0);
    for (const int threads : {1, 2}) {
      const auto engine =
          cpu::make_cpu_engine({.isa = {}, .threads = threads, .generated_code = false}).value();
      const auto runner = model.runner(*engine, {o.seq_len, 1 + static_cast<int64_t>(draw() % 48), 64});
      check_ok(runner->prepare());
      CHECK(wrong_rows(model, *runner, draw, sized(4, 40, 200)) == 0);
    }
    Resident gathering = model;
    gathering.gathers = true;
    const auto gathered = gathering.runner(interpreter(), {o.seq_len, 3, 32});
    check_ok(gathered->prepare());
    CHECK(wrong_rows(model, *gathered, draw, 2) == 0);
    // The controls: floats are another model, and so are integers that are cut from rounded parameters.
    const auto floats = Resident(o, DType::bf16).runner(interpreter(), {o.seq_len, 2, 32});
    CHECK(wrong_rows(model, *floats, draw, 24) > 0);
    const auto rounded = model.runner(interpreter(), {o.seq_len, 2, 32}, true);
    CHECK(wrong_rows(model, *rounded, draw, 24) > 0);
  }
}

// Keeps the programs that it compiles.
class KeepingEngine final : public runtime::Engine {
 public:
  const runtime::EngineInfo& info() const override { return interpreter().info(); }
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& p,
                                                       const runtime::CompileOptions& options) override {
    programs.push_back(p);
    return interpreter().compile(p, options);
  }
  // How many times programs of steps cut integers from the matrices of experts.
  int64_t cuts_of_experts() const {
    int64_t out = 0;
    for (const ir::Program& p : programs)
      for (const ir::Op& op : p.body.ops)
        out += p.name == "rows" && op.kind == ir::OpKind::quantize &&
               p.body.shape(op.operands[0]).has("experts");
    return out;
  }
  std::vector<ir::Program> programs;
};

TEST_CASE("of experts, too, integers are cut once, and are all that is held of them") {
  const nn::Precision integers(DType::bf16, 8);
  for (const DecoderOptions& o : {odd_mixture(), odd_latent()}) {
    const Resident model(o, integers);
    const auto functions = models::model_functions<Decoder>(o, kVocab, integers);
    const auto layers = models::decoder_by_layer(o, kVocab, integers, {}, functions.paths);
    std::vector<runtime::Buffer> params;
    for (const Array& a : tree_leaves(model.model)) params.push_back(a.buffer());
    KeepingEngine once, each;
    check_ok(LayerRows::create({functions, layers}, params, once, {o.seq_len, 2, 4}).value()->prepare());
    CHECK(once.cuts_of_experts() == 0);
    const auto held = ResidentWeights::create(layers, params, interpreter()).value();
    int64_t matrices = 0;
    auto without = layers;
    for (size_t k = 0; k < functions.paths.size(); ++k) {
      const std::string& path = functions.paths[k];
      if (!path.ends_with("moe/gate_up") && !path.ends_with("moe/down")) continue;
      ++matrices;
      CHECK_MESSAGE(!held.parameter(k).valid(), path);
      without.integers[k].reset();
      without.read_in_f32[k] = true;
    }
    CHECK(matrices >= 2);
    // The control: where they are held in f32, every program of a step with them cuts them.
    check_ok(LayerRows::create({functions, without}, params, each, {o.seq_len, 2, 4}).value()->prepare());
    CHECK(each.cuts_of_experts() >= 2);
  }
}

TEST_CASE("texts of several pages, that begin with kept ones, in pools that are too small") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 3);
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}).value();
  DecoderOptions released = small("grok");
  released.rounding = models::Rounding::kReleased;
  int64_t reused = 0;
  for (DecoderOptions o : {odd_decoder(), odd_latent(), small("gemma2"), released}) {
    o.seq_len = 420;
    CAPTURE(o.type());
    const Resident model(o, o.rounding == models::Rounding::kReleased ? DType::bf16 : DType::f32);
    const auto runner = model.runner(*engine, {o.seq_len, 4, 256, 4 + static_cast<int64_t>(draw() % 8)});
    CHECK(wrong_rows(model, *runner, draw, sized(12, 60, 300), &reused) == 0);
    CHECK(runner->cache_facts().held == 0);
  }
  CHECK(reused >= 128);
}

TEST_CASE("the control: a page that is kept of another beginning is found") {
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}).value();
  for (DecoderOptions o : {small("decoder"), odd_latent()}) {
    o.seq_len = 300;
    CAPTURE(o.type());
    const Resident model(o);
    const auto runner = model.runner(*engine, {300, 2, 256});
    const std::vector<int32_t> text = row(0, 170), other = row(1, 170);
    const int64_t a = runner->open().value();
    CHECK(runner->reuse(a, other, "a") == 0);
    const RowChunk all{a, other, 0};
    REQUIRE(runner->step({&all, 1}).ok());
    runner->close(a);
    // What comes of `tokens` behind the rows that are kept of the first `count` of `beginning`.
    const auto last_row = [&](const std::vector<int32_t>& beginning, size_t count,
                              const std::vector<int32_t>& tokens) {
      const int64_t b = runner->open().value();
      const auto found = static_cast<size_t>(runner->reuse(b, std::span(beginning).first(count), "a"));
      CHECK(found == (beginning == other ? count : 0));
      const RowChunk rest{b, std::span(tokens).subspan(found), 1};
      const auto rows = runner->step({&rest, 1}).value();
      const std::vector<float> alone = model.logits(tokens);
      const bool same = std::equal(alone.end() - kVocab, alone.end(), rows.as<float>().begin());
      runner->close(b);
      return same;
    };
    CHECK(last_row(text, 169, text));
    CHECK(last_row(other, 169, other));
    CHECK(last_row(other, 60, other));  // of the first page
    CHECK_FALSE(last_row(other, 169, text));
    CHECK_FALSE(last_row(other, 60, text));
  }
}

// Counts what it compiles.
class CountingEngine final : public runtime::Engine {
 public:
  const runtime::EngineInfo& info() const override { return interpreter().info(); }
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& p,
                                                       const runtime::CompileOptions& options) override {
    ++compiled;
    return interpreter().compile(p, options);
  }
  int compiled = 0;
};

TEST_CASE("after prepare nothing is compiled, whatever the steps are") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 2);
  const Resident model(odd_latent());
  for (const int64_t sequences : {1, 5, 8}) {
    CountingEngine engine;
    const auto runner = model.runner(engine, {model.o.seq_len, sequences, 32});
    check_ok(runner->prepare());
    const int prepared = engine.compiled;
    CHECK(wrong_rows(model, *runner, draw, 8) == 0);
    CHECK(engine.compiled == prepared);
  }
  CountingEngine engine;  // the control: without it, steps compile
  const auto runner = model.runner(engine, {model.o.seq_len, 4, 32});
  CHECK(wrong_rows(model, *runner, draw, 2) == 0);
  CHECK(engine.compiled > 0);
}

TEST_CASE("the control: keys of another beginning, or a neighbour's row, are found") {
  const Resident model(small("decoder"));
  const auto runner = model.runner(interpreter(), {40, 3, 32});
  const std::vector<int32_t> text = row(0, 9), other = row(1, 9);
  const int64_t a = runner->open().value(), b = runner->open().value(), c = runner->open().value();
  const std::vector<RowChunk> both = {{a, text, 1}, {b, other, 1}};
  const auto rows = runner->step(both).value();
  const std::vector<float> alone = model.logits(text);
  const auto last = std::span(alone).last(kVocab);
  CHECK(std::equal(last.begin(), last.end(), rows.as<float>().begin()));
  CHECK_FALSE(std::equal(last.begin(), last.end(), rows.as<float>().begin() + kVocab));
  check_ok(runner->copy(b, c, 8));
  const RowChunk wrong{c, std::span(text).last(1), 1};
  const auto mixed = runner->step({&wrong, 1}).value();
  CHECK_FALSE(std::equal(last.begin(), last.end(), mixed.as<float>().begin()));
}

TEST_CASE(
    "int8 matrices: the bits of the model's cached step, in f32, bf16, integers and by the rule of tensor "
    "cores") {
  DecoderOptions o = small("grok");
  o.int8_row_groups = 2;
  nn::Precision tensor_rule(DType::bf16);
  tensor_rule.rule = ProductRule::kTc16;
  for (const nn::Precision& compute :
       {nn::Precision(DType::f32), nn::Precision(DType::bf16), nn::Precision(DType::bf16, 8), tensor_rule}) {
    const auto functions = models::model_functions<Decoder>(o, kVocab, compute);
    std::mt19937 draw(5);
    std::vector<runtime::Buffer> params;
    for (size_t k = 0; k < functions.paths.size(); ++k) {
      runtime::Buffer b = runtime::Buffer::empty(functions.shapes[k]);
      const bool scales = functions.paths[k].ends_with("scales");
      for (size_t i = 0; i < static_cast<size_t>(b.shape().count()); ++i) {
        const uint32_t r = draw();
        if (b.shape().dtype == DType::i8)
          b.mutable_as<int8_t>()[i] = static_cast<int8_t>(r >> 16);
        else  // scales have few bits, so that weights are about 0.3 at most
          b.mutable_as<float>()[i] = scales ? std::ldexp(1.0F + static_cast<float>(r & 127) / 128.0F, -9)
                                            : static_cast<float>(r >> 8 & 255) / 256.0F - 0.5F;
      }
      params.push_back(b);
    }
    const auto layers = models::decoder_by_layer(o, kVocab, compute, {}, functions.paths);
    const RowLimits limits{o.seq_len, 2, 32};
    const auto by_layer = make_runner(functions, layers, params, interpreter(), limits).value();
    const auto by_step = make_runner(functions, {}, params, interpreter(), limits).value();
    const RowLimits paged{o.seq_len, 2, 32, 3};
    CHECK(make_runner(functions, layers, params, interpreter(), paged).ok());
    CHECK_FALSE(make_runner(functions, {}, params, interpreter(), paged).ok());
    const std::vector<int32_t> text = row(2, 21);
    const auto a = logits_of(*by_layer, text).value(), b = logits_of(*by_step, text).value();
    CHECK(a.bytes().size() == 21 * kVocab * sizeof(float));
    CHECK(std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0);
    CHECK(std::isfinite(a.as<float>()[0]));
    CHECK(a.as<float>()[0] != a.as<float>()[kVocab]);
  }
}

}  // namespace
}  // namespace ostro::infer
