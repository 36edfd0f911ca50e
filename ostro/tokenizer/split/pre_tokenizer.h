// PreTokenizer: the pre-tokenizer of a tokenizer.json, which cuts normalized text into the pieces that the
// model encodes. Immutable, so threads may share it.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/split/simple_pattern.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::tokenizer {

class PreTokenizer {
 public:
  // Reads the "pre_tokenizer" of a tokenizer.json. null gives one that does not cut. Errors:
  // kUnsupported for a step or a pattern that Ostro does not know, kCorrupt for fields of a wrong type; the
  // message shows the value.
  static Result<PreTokenizer> from_json(const nlohmann::json& json);

  // True if pieces are bytes for a byte-level model (the last step is ByteLevel), not characters.
  bool byte_level() const { return byte_level_; }

  // Calls f(piece) for every piece of valid UTF-8 text; no piece is empty. `at_start`: the text is at the
  // start of the document. `buffers` holds changed text while f runs; use one per thread.
  using Buffers = std::vector<std::string>;
  using Sink = std::function<void(std::string_view piece)>;
  void run(std::string_view text, bool at_start, Buffers& buffers, const Sink& f) const;

 private:
  // The treatment of the matches of a pattern and of the text between them.
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
  enum class Prepend { kAlways, kFirst, kNever };
  struct SplitAt {  // pieces are matches of a pattern, or with `invert` the text between
    SimplePattern pattern;
    Behavior behavior;
    bool invert;
  };
  struct SplitBy {  // one of the known splitting patterns; its matches cover the whole text
    Splitter splitter;
  };
  struct SplitClass {  // single characters, or with kContiguous runs of them, that have one of these
                       // norm_bits
    uint16_t bits;
    Behavior behavior;
  };
  struct Whitespace {  // words, and runs of characters that are neither word nor space
    bool words;        // false: only spaces separate pieces
  };
  struct Metaspace {
    std::string replacement;
    Prepend prepend;
    bool split;
  };
  struct ByteLevel {
    bool prefix, split;
  };
  using Step = std::variant<SplitAt, SplitBy, SplitClass, Whitespace, Metaspace, ByteLevel>;
  static Result<Step> read_step(const nlohmann::json& json);
  static Result<Step> read_split(const nlohmann::json& json);
  static Result<Behavior> read_behavior(const nlohmann::json& json);
  static Result<Step> read_metaspace(const nlohmann::json& json);
  struct Runner;

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace ostro::tokenizer
