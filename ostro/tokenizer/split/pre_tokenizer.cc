#include "ostro/tokenizer/split/pre_tokenizer.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/tokenizer/split/json_fields.h"
#include "ostro/tokenizer/unicode/normalization_data.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {

Result<PreTokenizer::Behavior> PreTokenizer::read_behavior(const Json& json) {
  const Json& value = member(json, "behavior");
  if (value.is_null() || value == "Isolated") return Behavior::kIsolated;
  if (value == "Removed") return Behavior::kRemoved;
  if (value == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (value == "MergedWithNext") return Behavior::kMergedWithNext;
  if (value == "Contiguous") return Behavior::kContiguous;
  return not_supported("pre_tokenizer: behavior", json);
}

Result<PreTokenizer::Step> PreTokenizer::read_split(const Json& json) {
  ASSIGN_OR_RETURN(const Behavior behavior, read_behavior(json));
  ASSIGN_OR_RETURN(const bool invert, flag(json, "invert", false));
  const Json& regex = member(member(json, "pattern"), "Regex");
  if (regex.is_string()) {
    if (const std::optional<Splitter> splitter = splitter_of_pattern(regex.get_ref<const std::string&>())) {
      // The pattern matches all of the text, so these two settings give the same pieces.
      const bool matches_are_pieces =
          behavior == Behavior::kIsolated || (behavior == Behavior::kRemoved && invert);
      if (!matches_are_pieces) return not_supported("pre_tokenizer", json);
      return Step(SplitBy{*splitter});
    }
  }
  const auto pattern = SimplePattern::from_json(member(json, "pattern"), "pre_tokenizer Split");
  if (!pattern.ok()) {
    std::string known;
    for (const KnownPattern& p : known_patterns())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
    return unsupported(fmt::format(
        "pre_tokenizer: the Split pattern {} is not known (known are, by their exact text, those of {}, and "
        "expressions without groups and look-behind: docs/reference/tokenizer.md)",
        shown(member(json, "pattern")), known));
  }
  return Step(SplitAt{*pattern, behavior, invert});
}

Result<PreTokenizer::Step> PreTokenizer::read_metaspace(const Json& json) {
  Metaspace out;
  ASSIGN_OR_RETURN(out.replacement, text_field(json, "replacement"));
  if (out.replacement.empty()) return not_supported("pre_tokenizer", json);
  ASSIGN_OR_RETURN(out.split, flag(json, "split", true));
  // Older files say add_prefix_space instead of prepend_scheme.
  ASSIGN_OR_RETURN(const bool prefix, flag(json, "add_prefix_space", true));
  const Json& scheme = member(json, "prepend_scheme");
  if (scheme.is_null()) {
    out.prepend = prefix ? Prepend::kAlways : Prepend::kNever;
  } else if (scheme == "always" && prefix) {
    out.prepend = Prepend::kAlways;
  } else if (scheme == "first" && prefix) {
    out.prepend = Prepend::kFirst;
  } else if (scheme == "never") {
    out.prepend = Prepend::kNever;
  } else {
    return not_supported("pre_tokenizer", json);
  }
  return Step(std::move(out));
}

Result<PreTokenizer::Step> PreTokenizer::read_step(const Json& json) {
  const std::string type = type_of(json);
  if (type == "Split") return read_split(json);
  if (type == "Metaspace") return read_metaspace(json);
  if (type == "Whitespace") return Step(Whitespace{true});
  if (type == "WhitespaceSplit") return Step(Whitespace{false});
  if (type == "Punctuation") {
    ASSIGN_OR_RETURN(const Behavior behavior, read_behavior(json));
    return Step(SplitClass{kIsPunctuation, behavior});
  }
  if (type == "Digits") {
    ASSIGN_OR_RETURN(const bool individual, flag(json, "individual_digits", false));
    return Step(SplitClass{kIsDigit, individual ? Behavior::kIsolated : Behavior::kContiguous});
  }
  if (type == "ByteLevel") {
    ASSIGN_OR_RETURN(const bool prefix, flag(json, "add_prefix_space", true));
    ASSIGN_OR_RETURN(const bool split, flag(json, "use_regex", true));
    return Step(ByteLevel{prefix, split});
  }
  return not_supported("pre_tokenizer", json);
}

Result<PreTokenizer> PreTokenizer::from_json(const Json& json) {
  ASSIGN_OR_RETURN(const auto steps, components(json, "pre_tokenizer", "pretokenizers"));
  PreTokenizer out;
  for (const Json* step : steps) {
    if (out.byte_level_) return not_supported("pre_tokenizer: after ByteLevel,", *step);
    ASSIGN_OR_RETURN(Step read, read_step(*step));
    out.byte_level_ = std::holds_alternative<ByteLevel>(read);
    out.steps_.push_back(std::move(read));
  }
  return out;
}

// Runs the steps nested: each piece of one step goes through all later steps before the next piece is cut.
struct PreTokenizer::Runner {
  const std::vector<Step>& steps;
  Buffers& buffers;
  const Sink& f;

  void run(size_t step, std::string_view text, bool at_start) const {
    if (text.empty()) return;
    if (step == steps.size()) return f(text);
    std::visit([&](const auto& s) { cut(s, step, text, at_start); }, steps[step]);
  }

  // Cuts text at matches. match(i) gives the end of the match that begins at i, or i if there is none: then
  // none begins before retry(i). No match begins before next(i). One part is always held back, until the next
  // one shows whether the behavior joins them.
  template <typename Match, typename Retry, typename Next>
  void cut_at(Match&& match, Retry&& retry, Next&& next, Behavior behavior, bool invert, size_t step,
              std::string_view text, bool at_start) const {
    size_t held = 0, held_end = 0;  // a part that may still be joined with the next one
    bool held_match = false, joined = false;
    const auto give = [&] {
      if (!(held_match && behavior == Behavior::kRemoved))
        run(step + 1, text.substr(held, held_end - held), at_start && held == 0);
    };
    const auto part = [&](size_t begin, size_t end, bool is_match) {
      if (begin == end) return;
      const bool joins = held < held_end && !joined &&
                         ((behavior == Behavior::kContiguous && is_match == held_match) ||
                          (behavior == Behavior::kMergedWithPrevious && is_match && !held_match) ||
                          (behavior == Behavior::kMergedWithNext && !is_match && held_match));
      if (joins) {
        held_end = end;
        joined = behavior != Behavior::kContiguous;
        return;
      }
      if (held < held_end) give();
      held = begin, held_end = end, held_match = is_match, joined = false;
    };
    size_t done = 0;
    for (size_t i = next(0); i < text.size(); i = next(i)) {
      const size_t end = match(i);
      if (end == i) {
        i = retry(i);
        continue;
      }
      part(done, i, invert);
      part(i, end, !invert);
      i = done = end;
    }
    part(done, text.size(), invert);
    if (held < held_end) give();
  }

  void cut(const SplitAt& s, size_t step, std::string_view text, bool at_start) const {
    cut_at([&](size_t i) { return s.pattern.match(text, i); },
           [&](size_t i) { return s.pattern.retry(text, i); },
           [&](size_t i) { return s.pattern.next(text, i); }, s.behavior, s.invert, step, text, at_start);
  }

  void cut(const SplitBy& s, size_t step, std::string_view text, bool at_start) const {
    for_each_piece(s.splitter, text, [&](std::string_view piece) {
      run(step + 1, piece, at_start && piece.data() == text.data());
    });
  }

  void cut(const SplitClass& s, size_t step, std::string_view text, bool at_start) const {
    const auto match = [&](size_t i) {
      const CodePoint c = read_code_point(text.data() + i);
      return (norm_bits(c.value) & s.bits) != 0 ? i + c.length : i;
    };
    const auto retry = [&](size_t i) { return i + read_code_point(text.data() + i).length; };
    cut_at(match, retry, [](size_t i) { return i; }, s.behavior, false, step, text, at_start);
  }

  void cut(const Whitespace& s, size_t step, std::string_view text, bool at_start) const {
    const auto kind = [&](size_t i) {  // 0 for a space; characters with equal kinds stay together
      const uint8_t classes = code_point_class(read_code_point(text.data() + i).value);
      if (s.words && (classes & kWord) != 0) return 1;
      return (classes & kSpace) != 0 ? 0 : 2;
    };
    for (size_t i = 0; i < text.size();) {
      const int of_piece = kind(i);
      size_t end = i;
      while (end < text.size() && kind(end) == of_piece) end += read_code_point(text.data() + end).length;
      if (of_piece != 0) run(step + 1, text.substr(i, end - i), at_start && i == 0);
      i = end;
    }
  }

  void cut(const Metaspace& s, size_t step, std::string_view text, bool at_start) const {
    std::string& changed = buffers[step];
    changed.clear();
    const bool prepend = s.prepend == Prepend::kAlways || (s.prepend == Prepend::kFirst && at_start);
    if (prepend && !text.starts_with(' ') && !text.starts_with(s.replacement)) changed = s.replacement;
    for (size_t i = 0; i < text.size();) {
      const size_t space = std::min(text.find(' ', i), text.size());
      changed.append(text.substr(i, space - i));
      if (space < text.size()) changed.append(s.replacement);
      i = space + 1;
    }
    if (!s.split) return run(step + 1, changed, at_start);
    const std::string_view all = changed;
    for (size_t begin = 0; begin < all.size();) {
      const size_t from = begin + (all.substr(begin).starts_with(s.replacement) ? s.replacement.size() : 0);
      const size_t end = std::min(all.find(s.replacement, from), all.size());
      run(step + 1, all.substr(begin, end - begin), at_start && begin == 0);
      begin = end;
    }
  }

  void cut(const ByteLevel& s, size_t step, std::string_view text, bool at_start) const {
    if (s.prefix && !text.starts_with(' ')) {
      buffers[step].assign(1, ' ').append(text);
      text = buffers[step];
    }
    if (!s.split) return run(step + 1, text, at_start);
    for_each_piece(Splitter::kGpt2, text, [&](std::string_view piece) { run(step + 1, piece, at_start); });
  }
};

void PreTokenizer::run(std::string_view text, bool at_start, Buffers& buffers, const Sink& f) const {
  if (buffers.size() < steps_.size()) buffers.resize(steps_.size());
  Runner{steps_, buffers, f}.run(0, text, at_start);
}

}  // namespace ostro::tokenizer
