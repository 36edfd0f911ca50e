#include "ostro/tokenizer/model/text_ends.h"

#include <algorithm>

#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

size_t TextEnds::begin(std::vector<uint32_t>& ids) const {
  if (before.empty() ||
      (ids.size() >= before.size() && std::equal(before.begin(), before.end(), ids.begin())))
    return 0;
  ids.insert(ids.begin(), before.begin(), before.end());
  return before.size();
}

// A model that was trained without a beginning token has seen the end of the document before where a document
// begins; any other begins as lm-evaluation-harness has it, with the beginning token if there is one.
Result<TextEnds> text_ends(const Tokenizer& tokenizer, std::optional<bool> enforce_bos) {
  const std::optional<uint32_t> bos = tokenizer.bos_id(), eos = tokenizer.eos_id();
  if (!enforce_bos) enforce_bos = tokenizer.begins_texts();
  TextEnds out;
  out.eos = eos;
  if (enforce_bos.value_or(true)) out.before = tokenizer.spec().prefix;
  if (enforce_bos.value_or(false) && out.before.empty()) {
    if (!bos)
      return invalid_argument(
          "data.enforce_bos: the tokenizer names no token that begins a text; name one as \"bos_token\" in a "
          "tokenizer_config.json beside it, or leave data.enforce_bos out");
    out.before = {*bos};
  }
  if (!out.before.empty())
    out.alone = out.before.back();
  else
    out.alone = enforce_bos.value_or(true) && bos ? bos : eos ? eos : bos;
  out.stops = tokenizer.more_stops();
  if (eos && std::find(out.stops.begin(), out.stops.end(), *eos) == out.stops.end())
    out.stops.push_back(*eos);
  return out;
}

Result<std::vector<int32_t>> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt) {
  ASSIGN_OR_RETURN(const TextEnds ends, text_ends(tokenizer));
  std::vector<uint32_t> ids = tokenizer.encode(prompt);
  ends.begin(ids);
  if (ids.empty() && !ends.alone)
    return invalid_argument(
        "the prompt is empty, and the tokenizer has no token that begins or ends a document to begin with");
  if (ids.empty()) ids.push_back(*ends.alone);
  return std::vector<int32_t>(ids.begin(), ids.end());
}

}  // namespace ostro::tokenizer
