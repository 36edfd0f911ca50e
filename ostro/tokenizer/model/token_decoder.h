// TokenDecoder: the decoder of a tokenizer.json, which turns tokens back into text. Immutable, so threads may
// share it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/split/simple_pattern.h"

namespace ostro::tokenizer {

class TokenDecoder {
 public:
  // Reads the "decoder" of a tokenizer.json. null gives a decoder that puts a space between tokens, as
  // Hugging Face does. Errors: kUnsupported for a step that Ostro does not know, kCorrupt for fields of a
  // wrong type; the message shows the value.
  static Result<TokenDecoder> from_json(const nlohmann::json& json);

  // The text of tokens. With `raw`, bytes that are not UTF-8 stay as they are. Otherwise ByteFallback
  // replaces a run of byte tokens that is not UTF-8 by one U+FFFD per byte. ByteLevel leaves such repair to
  // the caller.
  std::string decode(std::vector<std::string> tokens, bool raw) const;

 private:
  struct ByteLevel {};
  struct ByteFallback {};
  struct Fuse {};
  struct Strip {
    std::string content;
    size_t start, stop;
  };
  struct Replace {
    SimplePattern pattern;
    std::string by;
  };
  struct Metaspace {
    std::string replacement;
    bool drops_first;  // in the first token
  };
  using Step = std::variant<ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace>;
  static Result<Step> read_step(const nlohmann::json& json);
  struct Runner;

  std::vector<Step> steps_;
};

}  // namespace ostro::tokenizer
