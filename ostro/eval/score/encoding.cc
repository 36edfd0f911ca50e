#include "ostro/eval/score/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ostro/chat/value/text.h"
#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::eval {

Result<int32_t> prefix_token(const tokenizer::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(tokenizer));
  if (ends.alone) return static_cast<int32_t>(*ends.alone);
  return invalid_argument(
      "the tokenizer has no token that begins or ends a document: a text without a context cannot be scored");
}

// Both the context and the whole begin as prompts do, so that the tokens of the continuation are those of the
// whole behind the first `first`. A continuation that has no token of its own there, because one token spans
// the end of the context and all of the continuation, is encoded by itself behind the context.
Result<Window> continuation_window(const tokenizer::Tokenizer& tokenizer, std::string_view context,
                                   std::string_view continuation, int64_t context_length) {
  Window out;
  const auto take = [&out](const std::vector<uint32_t>& ids) {
    out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
  };
  const std::string_view begin = chat::jinja::strip(context, chat::jinja::Side::kRight);
  if (begin.empty()) {  // nothing, or white space, which is then the continuation's
    ASSIGN_OR_RETURN(const int32_t prefix, prefix_token(tokenizer));
    const std::vector<uint32_t> ids = tokenizer.encode(std::string(context) + std::string(continuation));
    if (ids.empty() || static_cast<int32_t>(ids[0]) != prefix) out.tokens.push_back(prefix);
    take(ids);
    out.first = 1;
  } else {
    ASSIGN_OR_RETURN(std::vector<int32_t> before, tokenizer::prompt_ids(tokenizer, begin));
    ASSIGN_OR_RETURN(out.tokens,
                     tokenizer::prompt_ids(tokenizer, std::string(context) + std::string(continuation)));
    out.first = before.size();
    if (out.first >= out.tokens.size() && !continuation.empty()) {
      out.tokens = std::move(before);
      take(tokenizer.encode(std::string(context.substr(begin.size())) + std::string(continuation)));
    }
  }
  if (out.first >= out.tokens.size())
    return invalid_argument("the continuation has no token of its own after its context");
  const auto most = static_cast<size_t>(context_length) + 1;
  if (out.tokens.size() - out.first >= most)
    return invalid_argument(fmt::format("the continuation has {} tokens; the model's context is {}",
                                        out.tokens.size() - out.first, context_length));
  if (out.tokens.size() > most) {
    const size_t cut = out.tokens.size() - most;
    out.tokens.erase(out.tokens.begin(), out.tokens.begin() + static_cast<int64_t>(cut));
    out.first -= cut;
  }
  return out;
}

std::vector<Window> rolling_windows(const std::vector<uint32_t>& text, int32_t prefix, int64_t context_length,
                                    int64_t stride) {
  std::vector<int32_t> all = {prefix};
  all.insert(all.end(), text.begin(), text.end());
  const auto n = static_cast<int64_t>(text.size());
  std::vector<Window> out;
  for (int64_t done = 0; done < n;) {
    const int64_t count = std::min(n - done, done == 0 ? context_length : stride);
    const int64_t end = done + count, begin = std::max<int64_t>(0, end - context_length);
    Window window;
    window.tokens.assign(all.begin() + begin, all.begin() + end + 1);
    window.first = static_cast<size_t>(done + 1 - begin);
    out.push_back(std::move(window));
    done = end;
  }
  return out;
}

}  // namespace ostro::eval
