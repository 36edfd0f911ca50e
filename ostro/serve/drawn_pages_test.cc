// Drawn requests to decoders on the compiled engine: beginnings of texts that are kept, or not, or that go
// when room is needed, and pages too few for all that run, with one thread and two.
#include <optional>

#include "ostro/infer/layer_rows.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder_for_test.h"
#include "ostro/serve/drawn_requests_for_test.h"

namespace ostro::serve {
namespace {

using models::Decoder;
using models::DecoderOptions;

constexpr int64_t kContext = 384;  // three pages
constexpr uint32_t kTimes = 6;     // prompts of at most 240 tokens, answers of at most 90

// A decoder with the tokens of test_tokenizer().
class Weights {
 public:
  explicit Weights(DecoderOptions options, ir::DType compute) : o_(std::move(options)), compute_(compute) {
    o_.seq_len = kContext;
    test::DefaultInterpreter use;
    const auto init = jit([this](const Array& key) { return Decoder::init(o_, vocab_, key); });
    for (const Array& a : tree_leaves(nn::compute(init(make_key(3)), compute_)))
      values_.push_back(a.buffer());
  }
  ServedModel served(int threads, const infer::RowLimits& limits) const {
    ServedModel out = test_model(kContext);
    out.engine = cpu::make_cpu_engine({.isa = {}, .threads = threads, .generated_code = false}).value();
    const auto functions = models::model_functions<Decoder>(o_, vocab_, compute_);
    out.runner = infer::LayerRows::create(
                     {functions, models::decoder_by_layer(o_, vocab_, compute_, {}, functions.paths)},
                     values_, *out.engine, limits)
                     .value();
    return out;
  }

 private:
  DecoderOptions o_;
  ir::DType compute_;
  int64_t vocab_ = test_tokenizer()->vocab_size();
  std::vector<runtime::Buffer> values_;
};

// A model by its place: both ways of attention, windows, keys that are compressed, experts.
Weights drawn_weights(std::mt19937& draw) {
  using namespace models::test;
  DecoderOptions released = small("grok");
  released.rounding = models::Rounding::kReleased;
  const std::vector<DecoderOptions> all = {small("decoder"), odd_decoder(), odd_latent(), small("gemma2"),
                                           released};
  const DecoderOptions& o = all[draw() % all.size()];
  const bool narrow = o.rounding == models::Rounding::kReleased || draw() % 2 == 0;
  return Weights(o, narrow ? ir::DType::bf16 : ir::DType::f32);
}

// What becomes of the memory of keys and values.
enum class Memory { kNothingKept, kWarm, kEvicting, kTooSmall };

infer::RowLimits limits_of(Memory memory, std::mt19937& draw) {
  const auto drawn = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(draw() % static_cast<uint64_t>(most - least + 1));
  };
  const int64_t rows = int64_t{16} << drawn(0, 3);
  switch (memory) {
    case Memory::kNothingKept: return {kContext, drawn(1, 16), rows};
    case Memory::kWarm: return {kContext, drawn(1, 16), rows, 400};
    case Memory::kEvicting:  // a page more than those that run can need
      return {kContext, 2, rows, 7};
    case Memory::kTooSmall: return {kContext, drawn(3, 16), rows, drawn(3, 6)};
  }
  return {};
}

TEST_CASE("drawn requests to decoders get together what each gets alone, whatever is kept and is too small") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 3);
  int64_t reused = 0, preempted = 0;
  const int workloads = sized(4, 300, 1000);
  std::optional<Weights> weights;
  for (int i = 0; i < workloads; ++i) {
    const auto memory = static_cast<Memory>(i % 4);
    if (i % 4 == 0) weights.emplace(drawn_weights(draw));
    const infer::RowLimits limits = limits_of(memory, draw);
    CAPTURE(i);
    CAPTURE(limits.sequences);
    CAPTURE(limits.rows);
    CAPTURE(limits.pages);
    Alone alone(weights->served(1, {kContext, 1, 64}));
    ServedModel model = weights->served(1 + static_cast<int>(draw() % 2), limits);
    Served together(with_kept(std::move(model), memory == Memory::kNothingKept ? Kept::kNone : Kept::kOwn),
                    200);
    const int most = memory == Memory::kTooSmall ? sized(20, 48, 48) : sized(8, 12, 48);
    const int count = 1 + static_cast<int>(draw() % static_cast<uint32_t>(most));
    const auto asks = drawn_asks(draw, count, together.model.tokens(), kTimes);
    CHECK(wrong_together(draw, asks, together, alone) == 0);
    if (memory == Memory::kWarm) CHECK(wrong_together(draw, asks, together, alone) == 0);
    const Counts counts = together.metrics->counts();
    CHECK((memory != Memory::kNothingKept || counts.reused_tokens == 0));
    CHECK((memory == Memory::kTooSmall || counts.preempted == 0));
    reused += counts.reused_tokens;
    preempted += counts.preempted;
  }
  if (workloads < 40) return;  // so few may need neither
  CHECK(reused > 0);
  CHECK(preempted > 0);
}

TEST_CASE(
    "texts that need six pages in four, by all ways of attention, and again with what is kept of them") {
  DecoderOptions released = models::test::small("grok");  // its programs gather pages
  released.rounding = models::Rounding::kReleased;
  for (const DecoderOptions& o : {models::test::odd_decoder(), released}) {
    const Weights weights(o, ir::DType::bf16);
    Alone alone(weights.served(1, {kContext, 1, 64}));
    Served together(weights.served(2, {kContext, 4, 64, 4}));
    const std::string ask = crowded_ask(together.model).dump();
    CHECK(together.whole(ask)["choices"] == alone.choices(ask));
    CHECK(together.metrics->counts().preempted > 0);
    const int64_t reused = together.metrics->counts().reused_tokens;
    CHECK(together.whole(ask)["choices"] == alone.choices(ask));
    CHECK(together.metrics->counts().reused_tokens > reused);
  }
}

TEST_CASE("the control: a page that is kept of another prompt is found in a decoder's answers") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 4);
  const Weights weights(models::test::small("decoder"), ir::DType::f32);
  Alone alone(weights.served(1, {kContext, 1, 64}));
  Served together(with_kept(weights.served(1, {kContext, 1, 64}), Kept::kOfTextBefore));
  const std::string fields = R"(, "max_tokens": 4, "seed": 1, "logprobs": 1})";
  std::vector<std::string> asks;
  for (int i = 0; i < 2; ++i) {
    Json ids = Json::array();
    for (int position = 0; position < 140; ++position) ids.push_back(draw() % 256);
    asks.push_back(R"({"prompt": )" + ids.dump() + fields);
  }
  CHECK(together.whole(asks[0])["choices"] == alone.choices(asks[0]));  // nothing is kept yet
  CHECK(together.whole(asks[1])["choices"] != alone.choices(asks[1]));  // it got a page of the first
}

}  // namespace
}  // namespace ostro::serve
