#include "ostro/tokenizer/normalize/normalizer.h"

#include <nlohmann/json.hpp>

#include "ostro/tokenizer/split/json_fields.h"
#include "ostro/tokenizer/unicode/base64.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

bool is_space_at(std::string_view text, size_t i, size_t& length) {
  const CodePoint c = read_code_point(text.data() + i);
  length = c.length;
  return (code_point_class(c.value) & kSpace) != 0;
}

std::string_view strip(std::string_view text, bool left, bool right) {
  size_t length = 0;
  while (left && !text.empty() && is_space_at(text, 0, length)) text.remove_prefix(length);
  while (right && !text.empty() && is_space_at(text, code_point_before(text, text.size()), length))
    text.remove_suffix(length);
  return text;
}

}  // namespace

Result<Normalizer::Step> Normalizer::read_step(const Json& json) {
  const std::string type = type_of(json);
  if (type == "NFC") return Step(Form::kNfc);
  if (type == "NFD") return Step(Form::kNfd);
  if (type == "NFKC") return Step(Form::kNfkc);
  if (type == "NFKD") return Step(Form::kNfkd);
  if (type == "Lowercase") return Step(Lowercase{});
  if (type == "StripAccents") return Step(StripAccents{});
  if (type == "Strip") {
    ASSIGN_OR_RETURN(const bool left, flag(json, "strip_left", true));
    ASSIGN_OR_RETURN(const bool right, flag(json, "strip_right", true));
    return Step(Strip{left, right});
  }
  if (type == "Prepend") {
    ASSIGN_OR_RETURN(std::string text, text_field(json, "prepend"));
    return Step(Prepend{std::move(text)});
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(SimplePattern pattern,
                     SimplePattern::from_json(member(json, "pattern"), "normalizer Replace"));
    ASSIGN_OR_RETURN(std::string by, text_field(json, "content"));
    return Step(Replace{std::move(pattern), std::move(by)});
  }
  if (type == "Precompiled") {
    ASSIGN_OR_RETURN(const std::string text, text_field(json, "precompiled_charsmap"));
    ASSIGN_OR_RETURN(const std::string bytes, base64_decode(text));
    ASSIGN_OR_RETURN(Charsmap charsmap, Charsmap::parse(bytes));
    return Step(std::move(charsmap));
  }
  return not_supported("normalizer", json);
}

Result<Normalizer> Normalizer::from_json(const Json& json) {
  ASSIGN_OR_RETURN(const auto steps, components(json, "normalizer", "normalizers"));
  Normalizer out;
  for (const Json* step : steps) {
    ASSIGN_OR_RETURN(Step read, read_step(*step));
    out.steps_.push_back(std::move(read));
  }
  return out;
}

void Normalizer::run(const Step& step, std::string_view text, std::string& out) {
  struct Visitor {
    std::string_view text;
    std::string& out;
    void operator()(Form form) const { append_form(form, text, out); }
    void operator()(const Lowercase&) const { append_lower(text, out); }
    void operator()(const StripAccents&) const { append_without_marks(text, out); }
    void operator()(const Strip& s) const { out.append(strip(text, s.left, s.right)); }
    void operator()(const Prepend& p) const {
      if (!text.empty()) out.append(p.text).append(text);
    }
    void operator()(const Replace& r) const { r.pattern.replace(text, r.by, out); }
    void operator()(const Charsmap& c) const { c.append_by_clusters(text, out); }
  };
  std::visit(Visitor{text, out}, step);
}

std::string_view Normalizer::apply(std::string_view text, std::string (&buffers)[2]) const {
  size_t target = 0;
  for (const Step& step : steps_) {
    buffers[target].clear();
    run(step, text, buffers[target]);
    text = buffers[target];
    target ^= 1;
  }
  return text;
}

}  // namespace ostro::tokenizer
