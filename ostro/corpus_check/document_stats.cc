#include "ostro/corpus_check/document_stats.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "ostro/io/read/codecs.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::corpus_check {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double repeated_lines(std::string_view text) {
  std::unordered_set<std::string_view> seen;
  int64_t repeated = 0, all = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      all += static_cast<int64_t>(line.size());
      if (!seen.insert(line).second) repeated += static_cast<int64_t>(line.size());
    }
    begin = end + 1;
  }
  return share(repeated, all);
}

}  // namespace

DocumentStats text_stats(std::string_view text) {
  DocumentStats out;
  out.bytes = static_cast<int64_t>(text.size());
  int64_t letters = 0, digits = 0, spaces = 0, symbols = 0, non_ascii = 0, marks = 0;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(text.data() + i);
    i += c.length;
    ++out.characters;
    const uint8_t kind = tokenizer::code_point_class(c.value);
    const bool space = (kind & tokenizer::kSpace) != 0;
    spaces += space ? 1 : 0;
    letters += (kind & tokenizer::kLetter) != 0 ? 1 : 0;
    digits += (kind & tokenizer::kNumber) != 0 ? 1 : 0;
    symbols += !space && (kind & (tokenizer::kLetter | tokenizer::kNumber | tokenizer::kWord)) == 0 ? 1 : 0;
    non_ascii += c.value >= 0x80 ? 1 : 0;
    marks +=
        c.value == '#' || c.value == 0x2026 || (c.value == '.' && text.substr(i).starts_with("..")) ? 1 : 0;
    out.words += !space && !in_word ? 1 : 0;
    in_word = !space;
  }
  out.letters = share(letters, out.characters);
  out.digits = share(digits, out.characters);
  out.spaces = share(spaces, out.characters);
  out.symbols = share(symbols, out.characters);
  out.non_ascii = share(non_ascii, out.characters);
  out.mean_word_length = share(out.characters - spaces, out.words);
  out.symbol_ratio = share(marks, out.words);
  out.repeated_lines = repeated_lines(text);
  return out;
}

Result<DocumentStats> document_stats(std::string_view text) {
  DocumentStats out = text_stats(text);
  ASSIGN_OR_RETURN(const io::Bytes packed, io::compress({.kind = io::Compression::kZstd, .level = 1},
                                                        std::as_bytes(std::span(text))));
  out.compressed = share(static_cast<int64_t>(packed.size()), out.bytes);
  return out;
}

StatsHistograms::StatsHistograms() {
  using S = const DocumentStats&;
  const Histogram size = Histogram::sizes(), whole = Histogram::linear(0, 1, 50);
  entries = {
      {"bytes", "bytes", [](S s) { return static_cast<double>(s.bytes); }, size},
      {"tokens", "tokens", [](S s) { return static_cast<double>(s.tokens); }, size},
      {"words", "words", [](S s) { return static_cast<double>(s.words); }, size},
      {"mean word length", "characters", [](S s) { return s.mean_word_length; },
       Histogram::linear(0, 25, 50)},
      {"letters", "share of characters", [](S s) { return s.letters; }, whole},
      {"digits", "share of characters", [](S s) { return s.digits; }, whole},
      {"white space", "share of characters", [](S s) { return s.spaces; }, whole},
      {"symbols", "share of characters", [](S s) { return s.symbols; }, whole},
      {"beyond ASCII", "share of characters", [](S s) { return s.non_ascii; }, whole},
      {"# and ellipses", "for each word", [](S s) { return s.symbol_ratio; }, whole},
      {"repeated lines", "share of bytes", [](S s) { return s.repeated_lines; }, whole},
      {"compressed size", "share of bytes", [](S s) { return s.compressed; }, Histogram::linear(0, 1.5, 50)},
  };
}

void StatsHistograms::add(const DocumentStats& stats) {
  for (Entry& e : entries)
    if (const double value = e.value(stats); value >= 0) e.histogram.add(value);
}

}  // namespace ostro::corpus_check
