// Rows behind the final norm: those of many sequences, in any steps and beside rows of logits, against the
// interpreter's forward pass of each text alone.
#include <doctest/doctest.h>

#include <random>

#include "ostro/base/test_size.h"
#include "ostro/infer/generate.h"
#include "ostro/infer/row_mean.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder_for_test.h"

namespace ostro::infer {
namespace {

using namespace models::test;
using models::Decoder;
using models::DecoderOptions;

// A model whose logits are the values that its head reads, as far as there are so many: its head is the
// identity, whose products are exact.
Decoder with_identity_head(Decoder m, DType compute) {
  const int64_t width = m.options.hidden_dim;
  std::vector<float> one(static_cast<size_t>(width * kVocab));
  for (int64_t i = 0; i < std::min(width, kVocab); ++i) one[static_cast<size_t>(i * kVocab + i)] = 1;
  DefaultInterpreter use;
  const auto as_read = jit([compute](const Array& w) { return cast(w, compute); });
  m.head.weight = as_read(f32({{"embed", width}, {"vocab", kVocab}}, one));
  m.head.bias = {};
  m.options.tie_word_embeddings = m.options.head_bias = false;
  m.options.logits_scaling = 1;
  m.options.final_logit_softcapping.reset();
  return m;
}

void check_rows(const DecoderOptions& o, DType compute, runtime::Engine& engine, std::mt19937& draw) {
  CAPTURE(o.type());
  const Decoder model = model_of(o, compute, 3);
  const Decoder shown = with_identity_head(model, compute);
  const auto forward = jit([](const Decoder& m, const Array& t) { return m.logits(t); });
  const auto functions = models::model_functions<Decoder>(o, kVocab, compute);
  std::vector<runtime::Buffer> params;
  for (const Array& a : tree_leaves(model)) params.push_back(a.buffer());
  const RowLimits limits{o.seq_len, 4, 32};
  const auto runner =
      make_runner(functions, models::decoder_by_layer(o, kVocab, compute, {}, functions.paths),
                  std::move(params), engine, limits)
          .value();
  const auto width = static_cast<size_t>(runner->width());
  REQUIRE(width == static_cast<size_t>(o.hidden_dim));
  struct Text {
    std::vector<int32_t> tokens;
    std::vector<float> logits, normed;  // alone, [pos, vocab]
    int64_t sequence;
    size_t fed = 0;
    std::vector<float> got = {};
  };
  std::vector<Text> texts;
  for (int64_t i = 0; i < 4; ++i) {
    const std::vector<int32_t> tokens = row(i, 7 + 9 * i);
    DefaultInterpreter use;
    texts.push_back({tokens, values<float>(forward(model, ids({tokens}))),
                     values<float>(forward(shown, ids({tokens}))), runner->open().value()});
  }
  const size_t seen = static_cast<size_t>(std::min(o.hidden_dim, kVocab));
  int64_t wrong = 0, rows = 0, like_neighbour = 0;
  for (bool more = true; more;) {
    more = false;
    std::vector<RowChunk> chunks;
    std::vector<Text*> of;
    for (Text& text : texts) {
      const size_t left = text.tokens.size() - text.fed;
      if (left == 0 || draw() % 4 == 0) {
        more = more || left > 0;
        continue;
      }
      const size_t count = 1 + draw() % std::min<size_t>(left, 8);
      more = more || count < left;
      text.got.clear();
      chunks.push_back({text.sequence, std::span(text.tokens).subspan(text.fed, count),
                        static_cast<int64_t>(draw() % (count + 1)), draw() % 3 != 0 ? &text.got : nullptr});
      of.push_back(&text);
    }
    if (chunks.empty()) continue;
    const auto logits = runner->step(chunks);
    REQUIRE_MESSAGE(logits.ok(), logits.error().message());
    size_t at = 0;
    for (size_t k = 0; k < chunks.size(); ++k) {
      Text& text = *of[k];
      text.fed += chunks[k].tokens.size();
      const auto wanted = static_cast<size_t>(chunks[k].wanted);
      CHECK(text.got.size() == (chunks[k].normed != nullptr ? wanted * width : 0));
      for (size_t i = 0; i < wanted; ++i, ++rows) {
        const size_t place = (text.fed - wanted + i) * kVocab;
        if (chunks[k].normed == nullptr) {
          wrong += std::memcmp(logits->as<float>().data() + kVocab * at++, text.logits.data() + place,
                               kVocab * sizeof(float)) != 0;
          continue;
        }
        const auto begin = text.got.begin() + static_cast<int64_t>(i * width);
        const auto is_of = [&](const Text& one, size_t from) {
          return from + kVocab <= one.normed.size() &&
                 std::equal(begin, begin + static_cast<int64_t>(seen),
                            one.normed.begin() + static_cast<int64_t>(from));
        };
        wrong += !is_of(text, place);
        like_neighbour +=
            is_of(text, place + kVocab) || is_of(texts[(k + 1) % texts.size()], place + 2 * kVocab);
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(rows > 0);
  CHECK(like_neighbour == 0);  // the control: a row of another place is told apart
}

TEST_CASE("rows behind the final norm are the interpreter's, in every family, in f32 and bf16") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()));
  const auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 2, .generated_code = false}).value();
  std::vector<DecoderOptions> all = sampled_decoders(sized<size_t>(4, 100, 100));
  all.push_back(odd_latent());
  for (const DecoderOptions& o : all) {
    check_rows(o, DType::f32, interpreter(), draw);
    for (const DType compute : {DType::f32, DType::bf16}) check_rows(o, compute, *engine, draw);
  }
}

TEST_CASE("a mean of rows does not depend on how they come, but on their order") {
  const std::vector<float> rows = {1e8F, 1, 3, 1, -1e8F, 1, 1e-3F, 2, 7, 4};
  RowMean whole, pieces;
  whole.add(rows, 2);
  for (size_t i = 0; i < rows.size(); i += 2) pieces.add(std::span(rows).subspan(i, 2), 2);
  CHECK(whole.mean() == pieces.mean());
  CHECK(whole.mean()[1] == 1.8F);
  double sum = 0;
  for (size_t i = 0; i < rows.size(); i += 2) sum += static_cast<double>(rows[i]);
  CHECK(whole.mean()[0] == static_cast<float>(sum / 5));
  RowMean tiny;  // N0: a denormal counts as zero, and so does a result that would be one
  tiny.add(std::vector<float>{1e-38F, 3e-38F}, 1);
  CHECK(tiny.mean()[0] == 1.5e-38F);
  RowMean flushed;
  flushed.add(std::vector<float>{1.2e-38F, 0, 0, 0}, 1);
  CHECK(flushed.mean()[0] == 0);
}

}  // namespace
}  // namespace ostro::infer
