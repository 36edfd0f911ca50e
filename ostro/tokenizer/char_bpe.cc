#include "ostro/tokenizer/char_bpe.h"

#include <algorithm>
#include <unordered_map>

#include "ostro/tokenizer/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kWindow = size_t{1} << 20;  // bytes of a unit that are merged at once
constexpr int kMostPasses = 64;              // a vocabulary that is ordered at all needs two

// The symbols that tokens can begin (or end) with: nearly always one.
class EdgeSymbols {
 public:
  explicit EdgeSymbols(size_t tokens) : one_(tokens, kNoSymbol) {}

  // Returns whether the symbol is new for the token.
  bool add(uint32_t token, uint32_t symbol) {
    if (one_[token] == symbol) return false;
    if (one_[token] == kNoSymbol) {
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
    if (one_[token] != kNoSymbol) out.push_back(one_[token]);
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
    symbols_.resize(symbols_.size() + 256, kNoSymbol);
  }
  symbols_[page * 256u + (code_point & 255)] = symbol;
}

CharBpe::CharBpe(Parts parts) : parts_(std::move(parts)), pairs_(parts_.merges.size()) {
  for (const Merge& m : parts_.merges) pairs_.insert(m.left, m.right, {m.rank, m.result});
  all_bytes_ = parts_.byte_fallback && std::none_of(parts_.byte_ids.begin(), parts_.byte_ids.end(),
                                                    [](uint32_t id) { return id == kNoSymbol; });
  find_neighbours();
}

// A merge joins two tokens; what it puts side by side are a symbol that the left one can end with and a
// symbol that the right one can begin with. So a place between two symbols that no merge brings together is
// never inside a token.
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
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (const Merge& m : parts_.merges) {
    for (const uint32_t left : last.of(m.left))
      for (const uint32_t right : first.of(m.right)) found.emplace_back(left, right);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  neighbours_ = SymbolPairs(found.size());
  for (const auto& [left, right] : found) neighbours_.insert(left, right, {0, 0});
}

CharBpe::Character CharBpe::character_at(std::string_view text, size_t i) const {
  const CodePoint c = read_code_point(text.data() + i);
  const uint32_t symbol = parts_.characters.find(c.value);
  if (symbol != kNoSymbol) return {Entry::kSymbol, symbol, symbol, c.length};
  if (parts_.byte_fallback) {
    const auto id = [&](size_t at) { return parts_.byte_ids[static_cast<uint8_t>(text[at])]; };
    bool all = true;
    for (size_t at = i; at < i + c.length && !all_bytes_; ++at) all = all && id(at) != kNoSymbol;
    if (all) return {Entry::kBytes, id(i), id(i + c.length - 1), c.length};
  }
  if (parts_.unknown == kNoSymbol) return {Entry::kNothing, kNoSymbol, kNoSymbol, c.length};
  return {Entry::kUnknown, parts_.unknown, parts_.unknown, c.length};
}

bool CharBpe::can_cut(const Character& before, const Character& after) const {
  if (!cuts_ || before.entry == Entry::kNothing || after.entry == Entry::kNothing) return false;
  return neighbours_.find(before.last, after.first).rank == kNoSymbol;
}

// The row of symbols of a text, and where each begins. An unknown symbol is added when the next character
// that has a symbol of its own comes: bytes overtake it, as in Hugging Face (only a vocabulary with some byte
// tokens and not others shows that).
void CharBpe::make_row(std::string_view text, ModelScratch& s) const {
  s.symbols.clear();
  s.starts.clear();
  size_t unknown_at = std::string_view::npos;
  const auto add = [&](uint32_t symbol, size_t at) {
    s.symbols.push_back(symbol);
    s.starts.push_back(static_cast<uint32_t>(at));
  };
  const auto add_unknown = [&] {
    if (unknown_at != std::string_view::npos) add(parts_.unknown, unknown_at);
    unknown_at = std::string_view::npos;
  };
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.entry == Entry::kSymbol) {
      add_unknown();
      add(c.first, i);
    } else if (c.entry == Entry::kBytes) {
      for (size_t at = i; at < i + c.length; ++at) add(parts_.byte_ids[static_cast<uint8_t>(text[at])], at);
    } else if (c.entry == Entry::kUnknown) {
      if (!parts_.fuse_unknown) add_unknown();
      if (unknown_at == std::string_view::npos) unknown_at = i;
    }
    i += c.length;
  }
  add_unknown();
}

void CharBpe::write(const std::vector<uint32_t>& row, size_t count, std::vector<uint32_t>& out) const {
  for (size_t i = 0; i < count; ++i) {
    if (row[i] < parts_.first_virtual) {
      out.push_back(row[i]);
    } else if (parts_.byte_fallback) {
      for (const char byte : parts_.virtual_text[row[i] - parts_.first_virtual])
        out.push_back(parts_.byte_ids[static_cast<uint8_t>(byte)]);
    } else {
      out.push_back(parts_.unknown);
    }
  }
}

// Whether the tokens of `left` and of the rest of `both` stay as they are when they stand side by side.
bool CharBpe::stays_apart(std::string_view left, std::string_view both, ModelScratch& s) const {
  make_row(both, s);
  s.merge.run(pairs_, s.symbols, &s.starts);
  return s.symbols.size() == 2 && s.starts[1] == left.size();
}

// BPE of a long unit in windows, exactly. BPE always carries out the smallest of the joins that are possible
// at the time (by rank, then place), and a join only looks at two neighbours. So in a row of tokens each of
// which is what BPE makes of its own text, the first join across a border between two of them happens in the
// whole row if and only if it happens when these two stand alone: a row is the BPE of its text if and only if
// every two neighbours are that of theirs. Within a window this holds; between windows it is tested. False
// when a test fails: then the caller merges the unit as a whole.
bool CharBpe::encode_windows(std::string_view unit, ModelScratch& s, std::vector<uint32_t>& out) const {
  if (parts_.byte_fallback && !all_bytes_) return false;
  const auto begins_character = [&](size_t at) { return (static_cast<uint8_t>(unit[at]) & 0xC0) != 0x80; };
  std::string_view last;  // text of the last token given out
  for (size_t begin = 0;;) {
    size_t end = std::min(unit.size(), begin + kWindow);
    while (end < unit.size() && !begins_character(end)) --end;
    make_row(unit.substr(begin, end - begin), s);
    s.merge.run(pairs_, s.symbols, &s.starts);
    std::vector<uint32_t> row = s.symbols, starts = s.starts;
    if (!last.empty()) {
      if (row.size() < 2 || !begins_character(begin + starts[1])) return false;
      const std::string_view both(last.data(), last.size() + starts[1]);
      if (!stays_apart(last, both, s)) return false;
    }
    if (end == unit.size()) {
      write(row, row.size(), out);
      return true;
    }
    // A quarter of the window is left to the next one, so that its end has no say in what is given out.
    const auto is_border = [&](size_t i) {
      return row[i] != parts_.unknown && row[i - 1] != parts_.unknown &&
             begins_character(begin + starts[i]) && begins_character(begin + starts[i - 1]);
    };
    size_t cut = row.size() * 3 / 4;
    while (cut > 1 && !is_border(cut)) --cut;
    if (cut <= 1) return false;
    write(row, cut, out);
    last = unit.substr(begin + starts[cut - 1], starts[cut] - starts[cut - 1]);
    begin += starts[cut];
  }
}

void CharBpe::encode_unit(std::string_view unit, ModelScratch& s, std::vector<uint32_t>& out) const {
  if (unit.size() > kWindow) {
    const size_t before = out.size();
    if (encode_windows(unit, s, out)) return;
    out.resize(before);
  }
  make_row(unit, s);
  s.merge.run(pairs_, s.symbols);
  write(s.symbols, s.symbols.size(), out);
}

// Cuts text into units and encodes them.
void CharBpe::encode_run(std::string_view text, ModelScratch& s, std::vector<uint32_t>& out) const {
  size_t unit = 0;  // where the present unit begins
  Character before{Entry::kNothing, kNoSymbol, kNoSymbol, 0};
  // An unknown symbol that is not in the row yet, see make_row: bytes overtake it and others fuse with it.
  bool unknown_waits = false;
  const auto finish = [&](size_t end) {
    if (end == unit) return;
    if (end - unit == before.length && before.entry == Entry::kSymbol &&
        before.first < parts_.first_virtual) {
      out.push_back(before.first);
    } else {
      const std::string_view piece = text.substr(unit, end - unit);
      s.memory.encode(piece, out, [&](std::vector<uint32_t>& ids) { encode_unit(piece, s, ids); });
    }
    unit = end;
  };
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    const bool overtakes =
        unknown_waits && c.entry != Entry::kSymbol && (parts_.byte_fallback || parts_.fuse_unknown);
    if (i > unit && !overtakes && can_cut(before, c)) finish(i);
    if (c.entry != Entry::kBytes && c.entry != Entry::kNothing) unknown_waits = c.entry == Entry::kUnknown;
    before = c;
    i += c.length;
  }
  finish(text.size());
}

void CharBpe::encode(std::string_view piece, ModelScratch& s, std::vector<uint32_t>& out) const {
  if (!parts_.whole.empty()) {
    const uint32_t id = parts_.whole.find(piece);
    if (id != ByteTrie::kNone) return out.push_back(id);
  }
  const size_t begin = out.size();
  size_t done = 0;
  for (size_t i = 0; !parts_.cut_out.empty() && i < piece.size();) {
    const ByteTrie::Match match = parts_.cut_out.longest(piece, i);
    if (match.end == i) {
      i += read_code_point(piece.data() + i).length;
      continue;
    }
    encode_run(piece.substr(done, i - done), s, out);
    out.push_back(match.value);
    i = done = match.end;
  }
  encode_run(piece.substr(done), s, out);
  if (parts_.first_virtual != kNoSymbol && !parts_.byte_fallback) {
    // SentencePiece joins unknown pieces after merging, not before.
    const auto both_unknown = [this](uint32_t a, uint32_t b) {
      return a == parts_.unknown && b == parts_.unknown;
    };
    out.erase(std::unique(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), both_unknown),
              out.end());
  }
}

}  // namespace ostro::tokenizer
