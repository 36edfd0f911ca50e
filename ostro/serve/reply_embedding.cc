#include "ostro/serve/reply_embedding.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <iterator>

#include "ostro/serve/json/reply_parts.h"
#include "ostro/tokenizer/unicode/base64.h"

namespace ostro::serve {

// A number is the shortest decimal of the f32's f64, as with log-probabilities, so it reads back exactly.
void EmbeddingReply::pooled(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little, "Base64 has f32 in little endian");
  data_ += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":)",
                       count_ == 0 ? R"({"object":"list","data":[)" : ",", count_);
  if (ask_.base64) {
    data_ += '"' +
             tokenizer::base64_encode({reinterpret_cast<const char*>(values.data()), values.size_bytes()}) +
             '"';
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      data_ += i == 0 ? '[' : ',';
      char digits[32];
      data_.append(digits, std::to_chars(digits, std::end(digits), static_cast<double>(values[i])).ptr);
    }
    data_ += ']';
  }
  data_ += '}';
  ++count_;
}

void EmbeddingReply::finish() {
  int64_t tokens = 0;
  for (const auto& input : ask_.prompts) tokens += std::ssize(input);
  data_ += fmt::format(
      R"(],"model":{},"system_fingerprint":"{}","usage":{{"prompt_tokens":{},"total_tokens":{}}}}})"
      "\n",
      json_text(model_.facts.name), fingerprint(model_.facts.parameters()), tokens, tokens);
  exchange_.answer({200, "application/json", std::move(data_)});
}

}  // namespace ostro::serve
