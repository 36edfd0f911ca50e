// Normalizer: the normalizer of a tokenizer.json, which changes the text before the text is split. Immutable,
// so threads may share it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/normalize/charsmap.h"
#include "ostro/tokenizer/split/simple_pattern.h"
#include "ostro/tokenizer/unicode/unicode_forms.h"

namespace ostro::tokenizer {

class Normalizer {
 public:
  // Reads the "normalizer" of a tokenizer.json. null gives a normalizer that changes nothing.
  // Errors: kUnsupported for a step that Ostro does not know, kCorrupt for fields of a wrong type; the
  // message shows the value.
  static Result<Normalizer> from_json(const nlohmann::json& json);

  bool empty() const { return steps_.empty(); }

  // The normalized form of valid UTF-8 text. Without steps this is `text` itself. Otherwise it is stored in
  // `buffers`, which must not change while the result is in use.
  std::string_view apply(std::string_view text, std::string (&buffers)[2]) const;

 private:
  struct Lowercase {};
  struct StripAccents {};
  struct Strip {
    bool left, right;
  };
  struct Prepend {
    std::string text;
  };
  struct Replace {
    SimplePattern pattern;
    std::string by;
  };
  using Step = std::variant<Form, Lowercase, StripAccents, Strip, Prepend, Replace, Charsmap>;
  static Result<Step> read_step(const nlohmann::json& json);
  static void run(const Step& step, std::string_view text, std::string& out);

  std::vector<Step> steps_;
};

}  // namespace ostro::tokenizer
