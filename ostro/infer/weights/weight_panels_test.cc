#include "ostro/infer/weights/weight_panels.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/infer/layer_rows.h"
#include "ostro/infer/settle_later.h"
#include "ostro/infer/traced.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder_for_test.h"
#include "ostro/runtime/owned_buffer.h"

namespace ostro::infer {
namespace {

using namespace models::test;
using models::Decoder;
using models::DecoderOptions;

// The interpreter, as an engine that reads panels best.
class PanelEngine final : public runtime::Engine {
 public:
  explicit PanelEngine(int64_t columns) : columns_(columns) {}
  const runtime::EngineInfo& info() const override { return interpreter().info(); }
  int64_t panel_columns(ir::DType) const override { return columns_; }
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& p,
                                                       const runtime::CompileOptions& options) override {
    ++compiled;
    int64_t in_panels = 0;
    for (const ir::ValueId v : p.body.params) in_panels += p.body.shape(v).has("weight_panel");
    weights += in_panels;
    ASSIGN_OR_RETURN(auto inner, interpreter().compile(p, options));
    return std::unique_ptr<runtime::Executable>(
        new Counted(std::move(inner), in_panels > 0 ? runs_in_panels : other_runs_));
  }
  int64_t compiled = 0, weights = 0;  // in panels, of all programs
  int64_t runs_in_panels = 0;         // of programs with such weights

 private:
  class Counted final : public runtime::Executable {
   public:
    Counted(std::unique_ptr<runtime::Executable> inner, int64_t& runs)
        : inner_(std::move(inner)), runs_(runs) {}
    Result<std::vector<runtime::Buffer>> run(std::vector<runtime::Buffer> inputs,
                                             const runtime::RunContext& context) override {
      ++runs_;
      return inner_->run(std::move(inputs), context);
    }
    runtime::ExecutableInfo info() const override { return inner_->info(); }

   private:
    std::unique_ptr<runtime::Executable> inner_;
    int64_t& runs_;
  };

  int64_t columns_, other_runs_ = 0;
};

// A model whose parameters no other handle holds; some rows of one text.
struct Text {
  explicit Text(const DecoderOptions& options, const nn::Precision& precision)
      : o(options), compute(precision), model(model_of(o, compute, 3)), tokens(row(0, o.seq_len)) {}
  std::unique_ptr<LayerRows> runner(runtime::Engine& engine, bool mapped = false,
                                    bool held_twice = false) const {
    const auto functions = models::model_functions<Decoder>(o, kVocab, compute);
    const auto layers = models::decoder_by_layer(o, kVocab, compute, {}, functions.paths);
    std::vector<runtime::Buffer> params, others;
    for (const Array& a : tree_leaves(model)) {
      const auto copy =
          std::make_shared<runtime::Buffer>(runtime::Buffer::copy_of(a.shape(), a.buffer().bytes().data()));
      params.push_back(mapped ? runtime::owned_buffer(a.shape(), copy->mutable_bytes(), copy)
                              : std::move(*copy));
    }
    if (held_twice) others = params;
    return LayerRows::create({functions, layers}, std::move(params), engine, {o.seq_len, 1, 4}).value();
  }
  std::vector<float> by_rows(runtime::Engine& engine, bool held_twice = false) const {
    const auto made = runner(engine, false, held_twice);
    const runtime::Buffer rows = logits_of(*made, tokens).value();
    return {rows.as<float>().begin(), rows.as<float>().end()};
  }
  std::vector<float> whole() const { return forward_logits(model, tokens); }

  DecoderOptions o;
  nn::Precision compute;
  Decoder model;
  std::vector<int32_t> tokens;
};

TEST_CASE("rows of models whose weights are in panels have the bits of the forward pass") {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const DecoderOptions& o : {odd_decoder(), odd_mixture(), odd_latent(), small("gemma2")}) {
      CAPTURE(o.type());
      const Text text(o, compute);
      PanelEngine none(0), four(4);
      const std::vector<float> expected = text.whole();
      CHECK(equal_bits(text.by_rows(none), expected));
      CHECK(none.weights == 0);
      CHECK(equal_bits(text.by_rows(four), expected));
      CHECK(four.weights >= 4);
    }
}

TEST_CASE("parameters that another handle holds stay as they are") {
  const Text text(odd_decoder(), DType::f32);
  PanelEngine four(4);
  CHECK(equal_bits(text.by_rows(four, true), text.whole()));
  CHECK(four.weights == 0);
}

TEST_CASE("weights that are mapped files settle beside the steps, and nothing is compiled then") {
  const Text text(odd_decoder(), DType::f32);
  PanelEngine four(4);
  const auto runner = text.runner(four, true);
  check_ok(runner->prepare());
  CHECK(four.weights >= 4);
  const int64_t sequence = runner->open().value(), compiled = four.compiled;
  std::vector<float> got;
  const auto step = [&](size_t first, size_t count) {
    const RowChunk chunk{sequence, std::span(text.tokens).subspan(first, count), static_cast<int64_t>(count)};
    const runtime::Buffer rows = runner->step({&chunk, 1}).value();
    got.insert(got.end(), rows.as<float>().begin(), rows.as<float>().end());
  };
  step(0, 3);
  std::stop_source stopped;
  stopped.request_stop();
  runner->settle(stopped.get_token());
  step(3, 1);
  CHECK(four.runs_in_panels == 0);
  runner->settle({});
  step(4, 1);
  CHECK(four.runs_in_panels > 0);
  CHECK(four.compiled == compiled);
  std::vector<float> expected = text.whole();
  expected.resize(got.size());
  CHECK(equal_bits(got, expected));
  const auto later = text.runner(four, true);
  {
    const SettleLater soon(*later, std::chrono::hours(1));
  }  // its end waits for nothing
}

// A weight that two products read in the same way, a third one in another, and a sum.
TEST_CASE("what reads a weight in panels otherwise puts it in order first") {
  const ir::Shape weight{DType::f32, {{"embed", 6}, {"heads", 2}, {"size", 8}}};
  const WeightPanels panels{{"embed"}, "size", 4};
  CHECK(panels.held(weight).str() == "f32[heads:2, weight_panel:2, embed:6, size:4]");
  const ir::Shape rows{DType::f32, {{"pos", 3}, {"embed", 6}}}, sizes{DType::f32, {{"size", 8}}};
  const auto body = [](const Arrays& in) {
    const Array &w = in[0], twice = in[1] + in[1];
    return Arrays{dot(in[1], w, {"embed"}, DType::f32), dot(twice, w, {"embed"}, DType::f32),
                  dot(in[2], w, {"size"}, DType::f32), sum(w, Axes{"heads"})};
  };
  const ir::Program plain = traced("plain", {weight, rows, sizes}, {}, body).value();
  ir::Program edited = plain;
  take_panels(edited, 0, panels);
  std::vector<runtime::Buffer> inputs;
  for (const ir::Shape& shape : {weight, rows, sizes}) {
    inputs.push_back(runtime::Buffer::empty(shape));
    const auto numbers = inputs.back().mutable_as<float>();
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = 1.0F / static_cast<float>(3 + i * 5 % 11 + inputs.size());
  }
  const auto expected = interpreter().compile(plain, {}).value()->run(inputs).value();
  const auto run = [&](const runtime::Buffer& held) {
    return interpreter().compile(edited, {}).value()->run({held, inputs[1], inputs[2]}).value();
  };
  const auto got = run(in_panels(inputs[0], panels, 2));
  const auto not_moved = run(inputs[0].with_shape(panels.held(weight)));  // the control
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(got[i].shape() == expected[i].shape());
    CHECK(std::ranges::equal(got[i].bytes(), expected[i].bytes()));
    CHECK(!std::ranges::equal(not_moved[i].bytes(), expected[i].bytes()));
  }
}

TEST_CASE("all layers of a parameter are put into panels, whatever the order of its axes") {
  const WeightPanels panels{{"a", "b"}, "c", 2};
  const ir::Shape shape{DType::f32, {{"layers", 2}, {"b", 3}, {"d", 2}, {"c", 4}, {"a", 2}}};
  runtime::Buffer in = runtime::Buffer::empty(shape);
  for (size_t i = 0; i < 96; ++i) in.mutable_as<float>()[i] = static_cast<float>(i);
  const runtime::Buffer out = in_panels(in, panels, 2);
  CHECK(out.shape().str() == "f32[layers:2, d:2, weight_panel:2, a:2, b:3, c:2]");
  size_t at = 0;
  for (int layer = 0; layer < 2; ++layer)
    for (int d = 0; d < 2; ++d)
      for (int panel = 0; panel < 2; ++panel)
        for (int a = 0; a < 2; ++a)
          for (int b = 0; b < 3; ++b)
            for (int c = 2 * panel; c < 2 * panel + 2; ++c)
              CHECK(out.as<float>()[at++] == (((layer * 3 + b) * 2 + d) * 4 + c) * 2 + a);
}

}  // namespace
}  // namespace ostro::infer
