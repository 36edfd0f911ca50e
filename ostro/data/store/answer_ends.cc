#include "ostro/data/store/answer_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "ostro/data/sources/pair_parts.h"

namespace ostro::data {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 20;
constexpr int64_t kLookedAt = 256;  // rows
constexpr int64_t kEnoughRows = 3;  // that end in one token: fewer may do so by chance

// The tokens in which the parts of a row that count end: of a conversation one, of a pair of answers two.
std::vector<int32_t> last_targets(std::span<const int32_t> ids, std::span<const float> weights,
                                  bool is_pair) {
  std::vector<int32_t> out;
  for (const float wanted :
       is_pair ? std::vector<float>{kChosenAnswer, kRejectedAnswer} : std::vector<float>{1.0f})
    for (size_t i = ids.size(); i-- > 0;)
      if (weights[i] == wanted) {
        out.push_back(ids[i]);
        break;
      }
  return out;
}

bool is_conversation(const StoreLedger& ledger) {
  const Preprocessing& how = ledger.preprocessing;
  if (how.fields.weights == WeightKind::kAssistantMasks) return true;
  // A pair of texts ends with the tokenizer's eos.
  return how.fields.weights == WeightKind::kPairParts &&
         how.format.find("\"templates\"") != std::string::npos;
}

}  // namespace

Result<std::string> no_end_text(const TokenStore& store, const tokenizer::Tokenizer& tokenizer) {
  const TokenStream& stream = store.split(Split::kTrain);
  int64_t rows = std::min(stream.rows(), kLookedAt);
  if (rows == 0 || !is_conversation(store.ledger())) return std::string();
  ASSIGN_OR_RETURN(const std::vector<int64_t> places, stream.row_ends(0, rows));
  while (rows > 1 && places[static_cast<size_t>(rows)] > kMostTokens) --rows;
  std::vector<int32_t> ids(static_cast<size_t>(places[static_cast<size_t>(rows)]));
  std::vector<float> weights(ids.size());
  RETURN_IF_ERROR(stream.read(0, ids));
  RETURN_IF_ERROR(stream.read_weights(0, weights));
  std::set<int32_t> added, ends;
  for (const tokenizer::AddedToken& token : tokenizer.spec().added_tokens)
    added.insert(static_cast<int32_t>(token.id));
  if (const auto eos = tokenizer.eos_id()) added.insert(static_cast<int32_t>(*eos));
  const bool is_pair = stream.weight_kind() == WeightKind::kPairParts;
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const auto begin = static_cast<size_t>(places[row]), size = static_cast<size_t>(places[row + 1]) - begin;
    for (const int32_t last : last_targets(std::span(ids).subspan(begin, size),
                                           std::span(weights).subspan(begin, size), is_pair)) {
      if (added.contains(last)) return std::string();
      ends.insert(last);
    }
  }
  if (ends.empty() || (ends.size() == 1 && rows >= kEnoughRows)) return std::string();
  return fmt::format(
      "in none of the first {} rows does what counts end in an added token such as {}: the model does not "
      "learn to "
      "end its answers. Put the token that ends a turn inside {{% generation %}} ... {{% endgeneration %}} "
      "of the chat template",
      rows, tokenizer.eos_id() ? std::string(*tokenizer.id_to_token(*tokenizer.eos_id())) : "<|im_end|>");
}

}  // namespace ostro::data
