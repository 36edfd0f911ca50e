// tiny_tokenizer, TinyModel: a tokenizer of 260 tokens and a small model of a family, for tests.
#pragma once

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ostro/models/decoder/decoder.h"
#include "ostro/models/model_functions.h"
#include "ostro/runtime/buffer.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::hf {

inline tokenizer::Tokenizer tiny_tokenizer() {
  tokenizer::TrainOptions o;
  o.vocab_size = 260;
  bool given = false;
  auto trained = tokenizer::train(
      [&](std::string& text) -> Result<bool> {
        if (given) return false;
        text = "aaabdaaabac aaab";
        return given = true;
      },
      o);
  REQUIRE(trained.ok());
  return std::move(trained).value();
}

// Each element is its own position, and the number of its parameter in the thousands: exact in f32.
struct TinyModel {
  models::DecoderOptions options;
  models::ModelFunctions functions;
  std::vector<runtime::Buffer> values;

  explicit TinyModel(const models::DecoderOptions& o)
      : options(o), functions(models::model_functions<models::Decoder>(o, 260, ir::DType::f32)) {
    for (const ir::Shape& shape : functions.shapes) {
      runtime::Buffer b = runtime::Buffer::empty(shape);
      std::iota(b.mutable_as<float>().begin(), b.mutable_as<float>().end(),
                1000.0F * static_cast<float>(values.size()));
      values.push_back(std::move(b));
    }
  }
};

}  // namespace ostro::hf
