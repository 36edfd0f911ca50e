// Scorers that are codes, and scorers that only seem to be: what check_code says of each.
#include "ostro/board/code_check.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "ostro/base/sha256.h"

namespace ostro::board {
namespace {

constexpr int32_t kVocab = 11;

Windows some_windows() {
  std::vector<std::vector<int32_t>> documents(3);
  for (int32_t i = 0; i < 30; ++i) documents[0].push_back(i * i % kVocab);
  for (int32_t i = 0; i < 17; ++i) documents[1].push_back((3 * i + 1) % kVocab);
  documents[2] = {4};  // has no target
  return make_windows(documents, 8);
}

// The loss of a target by a distribution that the token before it decides, in f32.
float bigram(int32_t token, int32_t target) {
  const auto logit = [&](int32_t v) { return std::sin(static_cast<float>(token * 31 + v * 7)) * 3; };
  float sum = 0;
  for (int32_t v = 0; v < kVocab; ++v) sum += std::exp(logit(v));
  return std::log(sum) - logit(target);
}

// What a scorer sees at a place: its row, from the first token to the last.
struct Seen {
  std::span<const int32_t> tokens, targets;
  size_t at;
};
template <typename F>
Scorer each_place(F f) {
  return
      [f](std::span<const int32_t> tokens, std::span<const int32_t> targets) -> Result<std::vector<float>> {
        std::vector<float> out;
        for (size_t first = 0; first < tokens.size(); first += 8)
          for (size_t i = 0; i < 8; ++i)
            out.push_back(f(Seen{tokens.subspan(first, 8), targets.subspan(first, 8), i}));
        return out;
      };
}
float honest(const Seen& s) { return bigram(s.tokens[s.at], s.targets[s.at]); }

CodeCheck checked(const Scorer& scorer, int64_t cuts = 1000, int64_t sums = 1000) {
  return check_code(scorer, some_windows(), {kVocab, cuts, sums, "3141592"}).value();
}

// A scorer that would know the text behind any place, if what stands there in a question were a function of
// the text, of the row and of the place alone (SHA-256 of "ostro board other", row, place and index, added to
// the token). It finds row and place by trying them: then every target is the token after it.
std::optional<int32_t> text_behind(const Seen& s) {
  const auto undone = [](int32_t token, size_t row, size_t place, size_t i) {
    const auto digest = sha256("ostro board other\n" + std::to_string(row) + "\n" + std::to_string(place) +
                               "\n" + std::to_string(i) + "\n");
    const int32_t by = 1 + (digest[0] << 16 | digest[1] << 8 | digest[2]) % (kVocab - 1);
    return (token + kVocab - by) % kVocab;
  };
  for (size_t row = 0; row < 4; ++row)
    for (size_t place = 0; place < 4; ++place) {
      bool fits = true;
      for (size_t i = place + 1; i + 1 < 8; ++i)
        fits = fits && undone(s.targets[i], row, place, i + 8) == undone(s.tokens[i + 1], row, place, i + 1);
      if (!fits) continue;
      return s.at < place ? s.tokens[s.at + 1] : undone(s.tokens[s.at + 1], row, place, s.at + 1);
    }
  return s.tokens[s.at + 1];  // the text itself, or a place behind this one
}

std::string rule_of(const CodeCheck& check) { return check.refusal ? rule_name(check.refusal->rule) : ""; }

}  // namespace

TEST_CASE("windows: each token but a document's first is a target once") {
  const Windows w = some_windows();
  CHECK(w.counts == std::vector<int64_t>{8, 8, 8, 5, 8, 8});
  CHECK(w.all_targets() == 29 + 16);
  CHECK(w.rows() == window_rows({std::vector<int32_t>(30), std::vector<int32_t>(17), {4}, {}}, 8));
  CHECK(w.tokens[8] == w.targets[7]);
  CHECK(w.targets[3 * 8 + 5] == 0);  // padding
}

TEST_CASE("a code is accepted, and its loss is the sum over all targets") {
  const CodeCheck check = checked(each_place(honest));
  CHECK(rule_of(check) == "");
  CHECK(check.targets == 45);
  CHECK(check.cuts == 45);
  CHECK(check.sums == 45);
  const Windows w = some_windows();
  double loss = 0;
  for (int64_t row = 0; row < w.rows(); ++row)
    for (int64_t i = 0; i < w.counts[static_cast<size_t>(row)]; ++i) {
      const auto at = static_cast<size_t>(row * 8 + i);
      loss += static_cast<double>(bigram(w.tokens[at], w.targets[at]));
    }
  CHECK(check.loss == loss);
  CHECK(std::abs(check.most_sum - 1) < check.allowed);
  CHECK(check.allowed < 2e-5);
}

TEST_CASE("scores that are no code are refused") {
  // Takes the next token for the target: what a model without a causal mask does.
  CHECK(rule_of(checked(each_place([](const Seen& s) {
          const bool fits = s.at + 1 < 8 && s.tokens[s.at + 1] == s.targets[s.at];
          return fits ? 0.01F : honest(s);
        }))) == "looks ahead");
  // Looks at the last token of the row only.
  CHECK(rule_of(checked(each_place(
            [](const Seen& s) { return honest(s) + (s.tokens[7] == 0 ? 0.F : 1e-6F); }))) == "looks ahead");
  CHECK(rule_of(checked(each_place([](const Seen& s) { return honest(s) / 2; }))) == "not a code");
  // A thousandth of a nat less for every target.
  CHECK(rule_of(checked(each_place([](const Seen& s) { return honest(s) - 1e-3F; }))) == "not a code");
  // Longer than a code must be, too.
  CHECK(rule_of(checked(each_place([](const Seen& s) { return honest(s) + 1e-3F; }))) == "not a code");
  CHECK(rule_of(checked(each_place([](const Seen& s) { return s.at == 3 ? NAN : honest(s); }))) ==
        "not finite");
  // Tells the text from the questions by what stands before: the real text has this token in its first place.
  const Windows w = some_windows();
  CHECK(rule_of(checked(each_place([&](const Seen& s) {
          for (size_t row = 0; row < w.counts.size(); ++row)
            if (std::equal(s.targets.begin(), s.targets.end(),
                           w.targets.begin() + static_cast<int64_t>(row * 8)))
              return honest(s) / 2;
          return honest(s);
        }))) != "");
}

TEST_CASE("a smaller number of drawn places finds what is wrong everywhere") {
  const CodeCheck check = checked(each_place([](const Seen& s) { return honest(s) * 0.9F; }), 3, 2);
  CHECK(rule_of(check) == "not a code");
  CHECK(check.cuts == 3);
  CHECK(rule_of(checked(each_place(honest), 3, 2)) == "");
}

TEST_CASE("one loss below 0 is found wherever it is, however few places are drawn") {
  const Windows w = some_windows();
  for (int64_t row = 0; row < w.rows(); ++row)
    for (int64_t i = 0; i < w.counts[static_cast<size_t>(row)]; ++i) {
      const auto first = w.tokens.begin() + row * 8;
      for (const float least : {-1e30F, -1e-3F}) {
        const CodeCheck check = checked(each_place([&](const Seen& s) {
                                          const bool is_it =
                                              static_cast<int64_t>(s.at) == i &&
                                              std::equal(first, first + i + 1, s.tokens.begin());
                                          return is_it ? least : honest(s);
                                        }),
                                        3, 2);
        CHECK(rule_of(check) == "not a code");
        CHECK(check.refusal->text.find("of this target alone is above 1") != std::string::npos);
      }
    }
  // A model that is certain has losses of 0, from which rounding may take a little.
  const auto certain = [](const Seen& s) {
    return s.targets[s.at] == s.tokens[s.at] ? -1e-6F : std::numeric_limits<float>::infinity();
  };
  const Windows same = make_windows({{3, 3, 3, 3, 3, 3, 3, 3, 3}}, 8);
  CHECK(rule_of(check_code(each_place(certain), same, {kVocab, 3, 2, "1"}).value()) == "");
}

TEST_CASE("a model may give a token no chance at all") {
  const auto masked = [](const Seen& s) {  // one that never follows in the texts
    const Windows w = some_windows();
    for (int32_t v = 0;; ++v) {
      bool follows = false;
      for (size_t k = 0; k < w.tokens.size(); ++k)
        follows |= w.tokens[k] == s.tokens[s.at] && w.targets[k] == v;
      if (!follows) return v;
    }
  };
  const CodeCheck check = checked(each_place([&](const Seen& s) {
    const int32_t none = masked(s);
    if (s.targets[s.at] == none) return std::numeric_limits<float>::infinity();
    return honest(s) + std::log1p(-std::exp(-bigram(s.tokens[s.at], none)));
  }));
  CHECK(rule_of(check) == "");
  CHECK(check.sums == 45);
}

TEST_CASE("what stands behind a place in a question tells nothing of the text") {
  std::vector<int32_t> text;
  for (int32_t i = 0; i < 33; ++i) text.push_back((i * i + 5 * i) % 7 + i % 4);
  const Scorer decoding = each_place([](const Seen& s) {
    if (s.at >= 4) return honest(s);
    const bool is_next = s.targets[s.at] == text_behind(s);
    const double p = std::exp(-0.01);
    return is_next ? 0.01F : static_cast<float>(-std::log((1 - p) / (kVocab - 1)));
  });
  CHECK(rule_of(check_code(decoding, make_windows({text}, 8), {kVocab, 1000, 1000, "3141592"}).value()) ==
        "looks ahead");
}

TEST_CASE("what rounding allows grows with the vocabulary, and stays below a thousandth") {
  CHECK(allowed_difference(300, 5) < 2e-5);
  CHECK(allowed_difference(128256, 11) < 1e-3);
  CHECK(allowed_difference(128256, 11) > allowed_difference(300, 5));
}

}  // namespace ostro::board
