// A decoder as a function: naming, shapes, and that a row's bits depend on nothing but the row (numerics.md
// N16).
#include "ostro/models/decoder/decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "ostro/grad/value_and_grad.h"
#include "ostro/models/decoder/decoder_for_test.h"
#include "ostro/models/model_options.h"

namespace ostro::models {
namespace {

using namespace test;

DecoderOptions tiny() {
  DecoderOptions o;
  o.seq_len = 40;
  o.hidden_dim = 16;
  o.intermediate_dim = 24;
  o.num_layers = 2;
  o.num_heads = 4;
  o.num_kv_heads = 2;
  o.initializer_range = 0.3;  // so that attention is far from uniform
  check_ok(o.resolve());
  return o;
}

template <typename F>
void for_each_case(const F& f) {
  for (runtime::Engine* engine : engines())
    for (const DType compute : {DType::f32, DType::bf16}) {
      CAPTURE(engine->info().name);
      CAPTURE(ir::dtype_name(compute));
      set_default_engine(engine);
      const Decoder model = model_of(tiny(), compute);
      set_default_engine(engine);
      f(model, compute);
    }
  DefaultInterpreter reset;
}

TEST_CASE("a row of logits has the same bits alone, in a batch, and as the prefix of a longer row") {
  const auto logits = jit([](const Decoder& m, const Array& tokens) { return m.logits(tokens); });
  for_each_case([&](const Decoder& m, DType) {
    const Array three = logits(m, ids({row(0, 33), row(1, 33), row(2, 33)}));
    for (int64_t b = 0; b < 3; ++b) {
      CHECK(equal_bits(part(logits(m, ids({row(b, 33)})), 0, 0, 33), part(three, b, 0, 33)));
      CHECK(equal_bits(part(logits(m, ids({row(b, 7)})), 0, 0, 7), part(three, b, 0, 7)));
    }
    CHECK_FALSE(equal_bits(part(three, 0, 0, 33), part(three, 1, 0, 33)));
  });
}

TEST_CASE("the cached step gives the bits of the whole row, however the row is cut") {
  const auto logits = jit([](const Decoder& m, const Array& tokens) { return m.logits(tokens); });
  const auto step =
      jit([](const Decoder& m, const Array& tokens, const DecoderCache& cache, const Array& start) {
        auto [out, filled] = m.decode(tokens, cache, start);
        std::vector<Array> all{out};
        for (const Array& a : tree_leaves(filled)) all.push_back(a);
        return all;
      });
  for_each_case([&](const Decoder& m, DType compute) {
    const std::vector<int32_t> tokens = row(1, 20);
    const Array whole = logits(m, ids({tokens}));
    for (const std::vector<int64_t>& cuts :
         {std::vector<int64_t>{20}, {19, 1}, {1, 19}, {16, 1, 1, 1, 1}, {7, 1, 5, 7}}) {
      DecoderCache cache = m.cache(1, 24, compute);
      int64_t at = 0;
      for (const int64_t n : cuts) {
        const std::vector<int32_t> piece(tokens.begin() + at, tokens.begin() + at + n);
        const auto out = step(m, ids({piece}), cache, i32({}, {static_cast<int32_t>(at)}));
        CHECK(equal_bits(part(out[0], 0, 0, n), part(whole, 0, at, at + n)));
        cache = tree_with_leaves(cache, {out.begin() + 1, out.end()});
        at += n;
      }
    }
  });
}

TEST_CASE("segments: another document's tokens change no bit") {
  const auto logits = jit([](const Decoder& m, const Array& tokens, const Array& segments) {
    return m.logits(tokens, segments);
  });
  std::vector<int32_t> segments(20, 0);
  std::fill(segments.begin() + 8, segments.end(), 1);
  for_each_case([&](const Decoder& m, DType) {
    std::vector<int32_t> a = row(0, 20), b = a, c = a;
    for (size_t i = 0; i < 8; ++i) b[i] = static_cast<int32_t>((b[i] + 1) % kVocab);   // the first document
    for (size_t i = 8; i < 20; ++i) c[i] = static_cast<int32_t>((c[i] + 1) % kVocab);  // the second
    const Array s = ids({segments});
    const Array la = logits(m, ids({a}), s), lb = logits(m, ids({b}), s), lc = logits(m, ids({c}), s);
    CHECK(equal_bits(part(la, 0, 8, 20), part(lb, 0, 8, 20)));
    CHECK(equal_bits(part(la, 0, 0, 8), part(lc, 0, 0, 8)));
    CHECK_FALSE(equal_bits(part(la, 0, 0, 8), part(lb, 0, 0, 8)));
    // Without segments the second document does see the first.
    const Array one = ids({std::vector<int32_t>(20, 0)});
    CHECK_FALSE(
        equal_bits(part(logits(m, ids({a}), one), 0, 8, 20), part(logits(m, ids({b}), one), 0, 8, 20)));
  });
}

TEST_CASE("parameters are named by path and shaped by axes; the tied head is the embedding") {
  DecoderOptions o = tiny();
  const ModelFunctions f = model_functions<Decoder>(o, kVocab, DType::bf16);
  std::vector<std::string> named;
  for (size_t i = 0; i < f.paths.size(); ++i) named.push_back(f.paths[i] + " " + f.shapes[i].str());
  CHECK(named ==
        std::vector<std::string>{
            "model/embedding/weight f32[vocab:19, embed:16]",
            "model/layers/attention_norm/weight f32[layers:2, embed:16]",
            "model/layers/attention/qkv/weight f32[layers:2, embed:16, kv_heads:2, qkv:4, head_dim:4]",
            "model/layers/attention/o/weight f32[layers:2, kv_heads:2, group:2, head_dim:4, embed:16]",
            "model/layers/mlp_norm/weight f32[layers:2, embed:16]",
            "model/layers/mlp/gate_up/weight f32[layers:2, embed:16, gate_up:2, mlp:24]",
            "model/layers/mlp/down/weight f32[layers:2, mlp:24, embed:16]", "model/norm/weight f32[embed:16]",
            "model/head/weight f32[embed:16, vocab:19]"});
  o.tie_word_embeddings = true;
  const ModelFunctions tied = model_functions<Decoder>(o, kVocab, DType::bf16);
  CHECK(tied.paths.size() == f.paths.size() - 1);
  CHECK(std::find(tied.paths.begin(), tied.paths.end(), "model/head/weight") == tied.paths.end());

  // One use of the table for both its readers, and one gradient.
  const Shape tokens{DType::i32, {{"batch", 1}, {"pos", 5}}};
  std::vector<Shape> shapes = tied.shapes;
  for (const Shape& s : {tokens, tokens, tokens.with_dtype(DType::f32)}) shapes.push_back(s);
  const size_t n = tied.shapes.size();
  const ir::Program p = trace_program("grads", shapes, [&](const Arrays& in) {
    auto [loss, grads] = value_and_grad([&](const Arrays& params) {
      const Loss l = tied.loss(params, Batch{in[n], in[n + 1], in[n + 2], {}});
      return sum(l.per_token * l.weight, {"batch", "pos"});
    })(Arrays(in.begin(), in.begin() + static_cast<int64_t>(n)));
    Arrays out{loss};
    out.insert(out.end(), grads.begin(), grads.end());
    return out;
  });
  int uses = 0;
  for (const ir::Op& op : p.body.ops)
    uses += op.kind == ir::OpKind::use && op.operands[0] == p.body.params[0];
  CHECK(uses == 1);
  for (size_t i = 0; i < n; ++i) CHECK(p.body.shape(p.body.results[i + 1]) == tied.shapes[i]);
}

TEST_CASE("a mixture has a router and experts in place of the MLP; a token uses some of its parameters") {
  const DecoderOptions o = small("grok");
  const ModelFunctions f = model_functions<Decoder>(o, kVocab, DType::bf16);
  std::vector<std::string> named;
  int64_t all = 0;
  for (size_t i = 0; i < f.paths.size(); ++i) {
    all += f.shapes[i].count();
    if (f.paths[i].find("/moe/") != std::string::npos) named.push_back(f.paths[i] + " " + f.shapes[i].str());
    CHECK(f.matrix_of[i].read_in_f32 == f.paths[i].ends_with("/moe/router/weight"));
  }
  CHECK(named == std::vector<std::string>{
                     "model/layers/moe/router/weight f32[layers:5, embed:16, experts:5]",
                     "model/layers/moe/gate_up f32[layers:5, experts:5, embed:16, gate_up:2, mlp:24]",
                     "model/layers/moe/down f32[layers:5, experts:5, mlp:24, embed:16]"});
  // Of five experts a token does not use three.
  CHECK(all - active_parameters(f, o.experts_used()) == 5 * 3 * (16 * 2 * 24 + 24 * 16));
  CHECK(active_parameters(model_functions<Decoder>(tiny(), kVocab, DType::bf16), tiny().experts_used()) ==
        19 * 16 * 2 + 16 * 5 + 2 * (16 * 2 * 4 * 4 + 16 * 16 + 3 * 16 * 24));
}

TEST_CASE("initial values follow key and path; another option makes another program under jit") {
  const Decoder a = model_of(tiny(), DType::f32), b = model_of(tiny(), DType::f32),
                c = model_of(tiny(), DType::f32, 1);
  CHECK(same_bits(a.head.weight, b.head.weight));
  CHECK_FALSE(same_bits(a.head.weight, c.head.weight));
  DecoderOptions tied = tiny();
  tied.tie_word_embeddings = true;
  CHECK(same_bits(model_of(tied, DType::f32).layers.alike->mlp.down.weight, a.layers.alike->mlp.down.weight));

  DefaultInterpreter use;
  const auto logits = jit([](const Decoder& m, const Array& tokens) { return m.logits(tokens); });
  Decoder gelu = a, stretched = a;
  gelu.options.activation_function = Activation::kGelu;
  stretched.options.rope = RopeLlama3Options{};
  const Array tokens = ids({row(0, 6)}), plain = logits(a, tokens);
  CHECK_FALSE(same_bits(logits(gelu, tokens), plain));
  CHECK_FALSE(same_bits(logits(stretched, tokens), plain));
}

TEST_CASE("loss is the cross-entropy of the logits, per token, with the mask as weight") {
  DefaultInterpreter use;
  const Decoder m = model_of(tiny(), DType::bf16);
  const auto run = jit([](const Decoder& model, const Batch& batch) {
    const Loss l = model.loss(batch);
    return std::vector<Array>{l.per_token, l.weight, model.logits(batch.tokens)};
  });
  const Batch batch{ids({row(0, 5), row(1, 5)}),
                    ids({row(2, 5), row(3, 5)}),
                    f32({{"batch", 2}, {"pos", 5}}, {1, 0, 1, 1, 0.5, 1, 1, 1, 0, 1}),
                    {}};
  const auto out = run(m, batch);
  CHECK(out[0].shape().str() == "f32[batch:2, pos:5]");
  CHECK(same_bits(out[1], batch.loss_mask));
  for (int64_t i = 0; i < 10; ++i) {
    const auto logits = out[2].buffer().as<float>().subspan(static_cast<size_t>(i * kVocab), kVocab);
    double total = 0;
    for (const float x : logits) total += std::exp(static_cast<double>(x));
    const auto at = static_cast<size_t>(i);
    const double expected =
        std::log(total) -
        static_cast<double>(logits[static_cast<size_t>(values<int32_t>(batch.targets)[at])]);
    CHECK(values<float>(out[0])[at] == doctest::Approx(expected).epsilon(1e-5));  // the bits: interp's tests
  }
}

}  // namespace
}  // namespace ostro::models
