// split, for_each_piece: cut text into the pieces that BPE works on. They give the same pieces as the regular
// expressions of published tokenizers, but with hand-written state machines. A regex engine would take most
// of the encoding time, and it would bring its own Unicode version.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace ostro::tokenizer {

enum class Splitter {
  kNone,    // the text is one piece
  kGpt2,    // GPT-2, GPT-NeoX, OLMo 1: the built-in pattern of ByteLevel
  kLlama3,  // Llama 3, Marin, OLMo 2, cl100k
  kCl100k,  // cl100k as tiktoken has it now; differs where digits or spaces end a text
  kQwen2,   // Qwen 2, 2.5 and 3: each digit is a piece
  kQwen35,  // Qwen 3.5: marks belong to words
  kTekken,  // Mistral's Tekken: words end before capitals, each digit is a piece
  kO200k,   // o200k, Llama 4: words end before capitals and keep their contractions
};

struct KnownPattern {
  Splitter splitter;
  std::string_view name;
  std::string_view regex;  // exactly as tokenizer.json files have it
};

// The patterns of all splitters but kNone.
std::span<const KnownPattern> known_patterns();

// The splitter for a regular expression with exactly this text, or nothing if it is unknown.
std::optional<Splitter> splitter_of_pattern(std::string_view regex);

// The regular expression of a splitter; "" for kNone.
std::string_view pattern_of(Splitter splitter);

// Cuts valid UTF-8 text from `begin` (< text.size()) on. Writes the ends of the next pieces to `ends`, as
// many as fit, and returns their number.
size_t split(Splitter splitter, std::string_view text, size_t begin, std::span<size_t> ends);

// The last position where text can be cut in two without changing the pieces of any pattern: before an ASCII
// letter that begins a line. 0 if there is none. The text may be malformed UTF-8.
size_t last_cut(std::string_view text);

// Calls f(piece) for every piece of valid UTF-8 text, in order. The pieces cover the whole text.
template <typename F>
void for_each_piece(Splitter splitter, std::string_view text, F&& f) {
  size_t ends[32];
  for (size_t begin = 0; begin < text.size();) {
    const size_t count = split(splitter, text, begin, ends);
    for (size_t i = 0; i < count; begin = ends[i++]) f(text.substr(begin, ends[i] - begin));
  }
}

}  // namespace ostro::tokenizer
