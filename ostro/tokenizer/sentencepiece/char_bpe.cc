#include "ostro/tokenizer/sentencepiece/char_bpe.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "ostro/tokenizer/sentencepiece/words.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr int kMostPasses = 64;  // an ordered vocabulary needs two passes

// The symbols that a token can begin (or end) with: nearly always one.
class EdgeSymbols {
 public:
  explicit EdgeSymbols(size_t tokens) : one_(tokens, kNoToken) {}

  // Returns true if the symbol is new for the token.
  bool add(uint32_t token, uint32_t symbol) {
    if (one_[token] == symbol) return false;
    if (one_[token] == kNoToken) {
      one_[token] = symbol;
      return true;
    }
    std::vector<uint32_t>& more = more_[token];
    if (std::find(more.begin(), more.end(), symbol) != more.end()) return false;
    more.push_back(symbol);
    return true;
  }

  std::vector<uint32_t> of(uint32_t token) const {
    std::vector<uint32_t> out;
    if (one_[token] != kNoToken) out.push_back(one_[token]);
    const auto it = more_.find(token);
    if (it != more_.end()) out.insert(out.end(), it->second.begin(), it->second.end());
    return out;
  }

 private:
  std::vector<uint32_t> one_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> more_;
};

}  // namespace

void CharacterTable::insert(uint32_t code_point, uint32_t symbol) {
  uint16_t& page = pages_[code_point >> 8];
  if (page == 0) {
    page = static_cast<uint16_t>(symbols_.size() / 256);
    symbols_.resize(symbols_.size() + 256, kNoToken);
  }
  symbols_[page * 256u + (code_point & 255)] = symbol;
}

CharBpe::CharBpe(Parts parts) : parts_(std::move(parts)), pairs_(parts_.merges.size()) {
  for (const Merge& m : parts_.merges) pairs_.insert(m.left, m.right, {m.rank, m.result});
  all_bytes_ = parts_.byte_fallback && std::none_of(parts_.byte_ids.begin(), parts_.byte_ids.end(),
                                                    [](uint32_t id) { return id == kNoToken; });
  for (uint8_t byte = 0; byte < 0x80; ++byte) {
    const char text = static_cast<char>(byte);
    ascii_[byte] = character_at({&text, 1}, 0);
  }
  word_stops_.add(static_cast<uint8_t>(kSpaceSymbol[0]));
  find_neighbours();
  for (int byte = 0; byte < 256 && !parts_.cut_out.empty(); ++byte) {
    if (parts_.cut_out.step(ByteTrie::kRoot, static_cast<char>(byte)) != ByteTrie::kNone)
      cut_out_begins_.add(static_cast<uint8_t>(byte));
  }
}

// Fills neighbours_. A merge puts two symbols side by side: one that the left token can end with, and one
// that the right token can begin with. If no merge does this for two symbols, no token contains them side by
// side. The first and last symbols of all tokens are found by passes over the merges until nothing changes;
// if that takes more than kMostPasses passes, text is not cut at all.
void CharBpe::find_neighbours() {
  uint32_t tokens = 0;
  for (const Merge& m : parts_.merges) tokens = std::max({tokens, m.left + 1, m.right + 1, m.result + 1});
  EdgeSymbols first(tokens), last(tokens);
  const auto enters = [&](uint32_t symbol) {
    if (symbol < tokens) first.add(symbol, symbol), last.add(symbol, symbol);
  };
  for (uint32_t c = 0; c < 0x110000; ++c) enters(parts_.characters.find(c));
  if (parts_.byte_fallback) std::for_each(parts_.byte_ids.begin(), parts_.byte_ids.end(), enters);
  enters(parts_.unknown);

  bool changed = true;
  for (int pass = 0; changed; ++pass) {
    if (pass == kMostPasses) {
      cuts_ = false;
      return;
    }
    changed = false;
    for (const Merge& m : parts_.merges) {
      for (const uint32_t symbol : first.of(m.left)) changed |= first.add(m.result, symbol);
      for (const uint32_t symbol : last.of(m.right)) changed |= last.add(m.result, symbol);
    }
  }
  const uint32_t space = parts_.characters.find(read_code_point(kSpaceSymbol.data()).value);
  // If characters can be dropped, U+2581 may get another neighbour, so words cannot be used.
  words_ = space != kNoToken && (parts_.unknown != kNoToken || all_bytes_);
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (const Merge& m : parts_.merges) {
    for (const uint32_t left : last.of(m.left))
      for (const uint32_t right : first.of(m.right)) found.emplace_back(left, right);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  neighbours_ = MergeTable(found.size());
  std::vector<bool> joins(tokens);
  for (const auto& [left, right] : found) {
    neighbours_.insert(left, right, {0, 0});
    joins[left] = joins[right] = true;
    if (right == space && left != space) words_ = false;
  }
  for (uint8_t byte = 0; byte < 0x80; ++byte) {
    // Byte tokens are put before a pending unknown symbol (see make_row). So they separate words only if
    // there are no unknown characters.
    const Character& c = ascii_[byte];
    const bool parts = c.entry == Entry::kSymbol || (c.entry == Entry::kBytes && all_bytes_);
    if (parts && c.first < parts_.first_virtual && (c.first >= tokens || !joins[c.first]))
      word_stops_.add(byte);
    for (uint8_t next = 0; next < 0x80; ++next) ascii_cuts_[byte][next] = can_cut(c, ascii_[next]);
  }
}

CharBpe::Character CharBpe::character_at(std::string_view text, size_t i) const {
  const CodePoint c = read_code_point(text.data() + i);
  const uint32_t symbol = parts_.characters.find(c.value);
  if (symbol != kNoToken) return {Entry::kSymbol, symbol, symbol, c.length};
  if (parts_.byte_fallback) {
    const auto id = [&](size_t at) { return parts_.byte_ids[static_cast<uint8_t>(text[at])]; };
    bool all = true;
    for (size_t at = i; at < i + c.length && !all_bytes_; ++at) all = all && id(at) != kNoToken;
    if (all) return {Entry::kBytes, id(i), id(i + c.length - 1), c.length};
  }
  if (parts_.unknown == kNoToken) return {Entry::kNothing, kNoToken, kNoToken, c.length};
  return {Entry::kUnknown, parts_.unknown, parts_.unknown, c.length};
}

bool CharBpe::can_cut(const Character& before, const Character& after) const {
  if (!cuts_ || before.entry == Entry::kNothing || after.entry == Entry::kNothing) return false;
  return neighbours_.find(before.last, after.first).rank == kNoToken;
}

// Builds the row of symbols of a text. As in Hugging Face, an unknown symbol is not added at once. It is
// added when the next character with its own symbol comes, so byte tokens in between are placed before it.
// This matters only for a vocabulary with tokens for some bytes but not for all.
void CharBpe::make_row(std::string_view text, std::vector<uint32_t>& row) const {
  row.clear();
  bool unknown_waits = false;
  const auto add_unknown = [&] {
    if (unknown_waits) row.push_back(parts_.unknown);
    unknown_waits = false;
  };
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.entry == Entry::kSymbol) {
      add_unknown();
      row.push_back(c.first);
    } else if (c.entry == Entry::kBytes) {
      for (size_t at = i; at < i + c.length; ++at)
        row.push_back(parts_.byte_ids[static_cast<uint8_t>(text[at])]);
    } else if (c.entry == Entry::kUnknown) {
      if (!parts_.fuse_unknown) add_unknown();
      unknown_waits = true;
    }
    i += c.length;
  }
  add_unknown();
}

// Replaces virtual symbols in `out`, from `begin` on, by the bytes of their text or by the unknown token.
void CharBpe::replace_virtual(size_t begin, ModelScratch& s, std::vector<uint32_t>& out) const {
  s.ids.assign(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
  out.resize(begin);
  for (const uint32_t id : s.ids) {
    if (id < parts_.first_virtual) {
      out.push_back(id);
    } else if (parts_.byte_fallback) {
      for (const char byte : parts_.virtual_text[id - parts_.first_virtual])
        out.push_back(parts_.byte_ids[static_cast<uint8_t>(byte)]);
    } else {
      out.push_back(parts_.unknown);
    }
  }
}

void CharBpe::encode_unit(std::string_view unit, ModelScratch& s, std::vector<uint32_t>& out) const {
  make_row(unit, s.symbols);
  const size_t begin = out.size();
  s.merge.run(pairs_, s.symbols, out);
  if (!parts_.virtual_text.empty()) replace_virtual(begin, s, out);
}

void CharBpe::encode_run(std::string_view text, ModelScratch& s, std::vector<uint32_t>& out) const {
  if (!words_) return encode_units(text, s, out);
  const auto end_of = [&](size_t begin) { return word_end_at(text, begin); };
  for_each_word(text, s.memory, end_of, [&](std::string_view word, const PieceMemory::Place& place) {
    if (place.known()) return place.append(out);
    const size_t before = out.size();
    encode_units(word, s, out);
    place.keep(std::span(out).subspan(before));
  });
}

// The end of the word that begins at `begin`. A word ends before a U+2581 that follows other text. An ASCII
// character without merges is a word by itself.
size_t CharBpe::word_end_at(std::string_view text, size_t begin) const {
  size_t i = begin;
  while (text.substr(i).starts_with(kSpaceSymbol)) i += kSpaceSymbol.size();
  for (;; ++i) {
    i = word_stops_.find(text, i);
    if (i == text.size()) return i;
    if (text[i] != kSpaceSymbol[0]) return std::max(i, begin + 1);
    if (text.substr(i).starts_with(kSpaceSymbol)) return i;
  }
}

// Cuts text into units and encodes them. A unit ends where can_cut() holds for the characters on both sides,
// unless an unknown symbol is pending, which the next character may overtake or fuse with. A unit of one
// character is its own token; others come from the cache or from encode_unit().
void CharBpe::encode_units(std::string_view text, ModelScratch& s, std::vector<uint32_t>& out) const {
  size_t unit = 0;  // start of the current unit
  Character before{Entry::kNothing, kNoToken, kNoToken, 0};
  // An unknown symbol is pending (see make_row): bytes are placed before it, and further unknown characters
  // may fuse with it.
  bool unknown_waits = false;
  const auto finish = [&](size_t end) {
    if (end == unit) return;
    if (end - unit == before.length && before.entry == Entry::kSymbol &&
        before.first < parts_.first_virtual) {
      out.push_back(before.first);
    } else if (const std::string_view piece = text.substr(unit, end - unit);
               words_ && piece.size() == text.size()) {
      encode_unit(piece, s, out);  // no cache here: the caller stores the word
    } else {
      s.memory.encode(piece, out, [&](std::vector<uint32_t>& ids) { encode_unit(piece, s, ids); });
    }
    unit = end;
  };
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const Character c = byte < 0x80 ? ascii_[byte] : character_at(text, i);
    const bool overtakes =
        unknown_waits && c.entry != Entry::kSymbol && (parts_.byte_fallback || parts_.fuse_unknown);
    if (i > unit && !overtakes) {
      const auto last = static_cast<uint8_t>(text[i - 1]);
      const bool cut = (byte | last) < 0x80 ? ascii_cuts_[last][byte] : can_cut(before, c);
      if (cut) finish(i);
    }
    if (c.entry != Entry::kBytes && c.entry != Entry::kNothing) unknown_waits = c.entry == Entry::kUnknown;
    before = c;
    i += c.length;
  }
  finish(text.size());
}

// Takes out the tokens of `cut_out` from left to right, the longest at each place, and encodes the text
// between them.
void CharBpe::encode(std::string_view piece, ModelScratch& s, std::vector<uint32_t>& out) const {
  if (!parts_.whole.empty()) {
    const uint32_t id = parts_.whole.find(piece);
    if (id != ByteTrie::kNone) return out.push_back(id);
  }
  const size_t begin = out.size();
  size_t done = 0;
  for (size_t i = 0; !parts_.cut_out.empty();) {
    i = cut_out_begins_.find(piece, i);
    if (i == piece.size()) break;
    const ByteTrie::Match match = parts_.cut_out.longest(piece, i);
    if (match.end == i) {
      ++i;
      continue;
    }
    encode_run(piece.substr(done, i - done), s, out);
    out.push_back(match.value);
    i = done = match.end;
  }
  encode_run(piece.substr(done), s, out);
  if (parts_.first_virtual != kNoToken && !parts_.byte_fallback) {
    // SentencePiece joins unknown pieces after merging, not before.
    const auto both_unknown = [this](uint32_t a, uint32_t b) {
      return a == parts_.unknown && b == parts_.unknown;
    };
    out.erase(std::unique(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), both_unknown),
              out.end());
  }
}

}  // namespace ostro::tokenizer
