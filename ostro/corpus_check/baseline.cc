#include "ostro/corpus_check/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace ostro::corpus_check {
namespace {

// Calls visit for all tokens of a split, block by block.
Status for_each_stretch(const data::TokenStream& stream,
                        const std::function<Status(std::span<const int32_t>)>& visit) {
  constexpr int64_t kStretch = 1 << 20;
  std::vector<int32_t> tokens;
  for (int64_t first = 0; first < stream.tokens(); first += kStretch) {
    tokens.resize(static_cast<size_t>(std::min(kStretch, stream.tokens() - first)));
    RETURN_IF_ERROR(stream.read(first, tokens));
    RETURN_IF_ERROR(visit(tokens));
  }
  return {};
}

Result<std::vector<int64_t>> counts(const data::TokenStream& stream) {
  std::vector<int64_t> counts(static_cast<size_t>(stream.vocab_size()));
  RETURN_IF_ERROR(for_each_stretch(stream, [&](std::span<const int32_t> tokens) -> Status {
    for (const int32_t t : tokens) {
      if (t < 0 || t >= stream.vocab_size())
        return corrupt(
            fmt::format("{}: token {} in a store of {} tokens", stream.name(), t, stream.vocab_size()));
      ++counts[static_cast<size_t>(t)];
    }
    return {};
  }));
  return counts;
}

}  // namespace

Result<Baseline> unigram_baseline(const data::TokenStore& store) {
  const data::TokenStream& held_out = store.split(data::Split::kValidation);
  Baseline b;
  b.tokens = held_out.tokens();
  b.bytes = store.ledger().split(data::Split::kValidation).bytes;
  if (b.tokens == 0 || b.bytes == 0)
    return invalid_argument(
        fmt::format("{} has no held-out text (see data.validation_fraction)", held_out.name()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> train, counts(store.split(data::Split::kTrain)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> test, counts(held_out));
  const double total = static_cast<double>(store.split(data::Split::kTrain).tokens() + held_out.vocab_size());
  double bits = 0;
  for (size_t t = 0; t < test.size(); ++t)
    bits += static_cast<double>(test[t]) * std::log2(total / static_cast<double>(train[t] + 1));
  const auto tokens = static_cast<double>(b.tokens), bytes = static_cast<double>(b.bytes);
  b.train_tokens_per_byte = store.split(data::Split::kTrain).tokens_per_byte();
  b.bits_per_token = bits / tokens;
  b.bits_per_byte = bits / bytes;
  b.uniform_bits_per_byte = std::log2(static_cast<double>(held_out.vocab_size())) * tokens / bytes;
  return b;
}

Result<std::string> held_out_text(const data::TokenStore& store, const tokenizer::Tokenizer& tokenizer) {
  const data::Preprocessing& made = store.ledger().preprocessing;
  const auto is_end = [&made](int32_t t) {
    return t == made.eos_id || std::find(made.before.begin(), made.before.end(), t) != made.before.end();
  };
  std::string text;
  std::vector<uint32_t> ids;
  RETURN_IF_ERROR(
      for_each_stretch(store.split(data::Split::kValidation), [&](std::span<const int32_t> tokens) -> Status {
        ids.clear();
        for (const int32_t t : tokens)
          if (!is_end(t)) ids.push_back(static_cast<uint32_t>(t));
        ASSIGN_OR_RETURN(const std::string part, tokenizer.decode_bytes(ids));
        text += part;
        return {};
      }));
  return text;
}

}  // namespace ostro::corpus_check
