#include "ostro/without/measured_texts.h"

#include <fmt/format.h>

#include "ostro/eval/score/encoding.h"

namespace ostro::without {
namespace {

// The tokens of a file's text, as `ostro score` encodes it.
Result<MeasuredText> read_text(io::FileSystem& fs, const std::string& path,
                               const tokenizer::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  ASSIGN_OR_RETURN(const int32_t prefix, eval::prefix_token(tokenizer));
  MeasuredText out{path, tokenizer.encode(text)};
  if (!out.ids.empty() && static_cast<int32_t>(out.ids[0]) == prefix) out.ids.erase(out.ids.begin());
  if (out.ids.empty())
    return invalid_argument(fmt::format("{} has no tokens; name a file with a text", path));
  return out;
}

std::vector<MeasuredText> joined(std::vector<MeasuredText> texts, const Removal& removal) {
  for (MeasuredText& own : texts_of(removal)) texts.push_back(std::move(own));
  return texts;
}

}  // namespace

std::vector<MeasuredText> texts_of(const Removal& removal) {
  std::vector<MeasuredText> texts;
  for (size_t i = 0; i < removal.ids.size(); ++i) texts.push_back({removal.documents[i], removal.ids[i]});
  return texts;
}

Result<std::vector<MeasuredText>> compared_texts(io::FileSystem& fs, const WithoutRequest& request,
                                                 const RemovalPlan& plan) {
  std::vector<MeasuredText> texts = texts_of(plan.asked);
  for (const std::string& path : request.texts) {
    ASSIGN_OR_RETURN(MeasuredText text, read_text(fs, path, *plan.tokenizer));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::vector<MeasuredText>> texts_by_state(const std::vector<MeasuredText>& compared,
                                                      const RemovalPlan& plan) {
  std::vector<std::vector<MeasuredText>> out = {compared};
  for (const Removal& control : plan.controls) out[0] = joined(std::move(out[0]), control);
  out.push_back(joined(compared, plan.asked));
  for (const Removal& control : plan.controls) out.push_back(joined(compared, control));
  out.insert(out.end(), 2 * plan.seeds.size(), compared);
  return out;
}

}  // namespace ostro::without
