// Pre-tokenisation: cuts text into the pieces that BPE works on, as the regular expressions of the GPT-2
// and Llama-3 families do, by hand-written state machines (a regex engine would cost half the encoding
// time and bring its own Unicode release).
#pragma once

#include <cstddef>
#include <string_view>

namespace ostro::tokenizer {

enum class Splitter {
  kNone,    // the text is one piece
  kGpt2,    // kGpt2Pattern
  kLlama3,  // kLlama3Pattern
};

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The end of the piece that begins at `begin` (< text.size()); text must be valid UTF-8.
size_t piece_end(Splitter splitter, std::string_view text, size_t begin);

// Calls f(piece) for every piece of valid UTF-8 text, in order; together they are the text.
template <typename F>
void for_each_piece(Splitter splitter, std::string_view text, F&& f) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(splitter, text, begin);
    f(text.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace ostro::tokenizer
