// Family: families of decoders as data: the values of `model.type`. Any thread may read them.
#pragma once

#include <string_view>
#include <vector>

namespace ostro::models {

struct DecoderOptions;

// One family. Lives as long as the process.
struct Family {
  std::string_view name;   // the value of `model.type`
  std::string_view title;  // "Gemma 3"
  // Sets the values that differ from DecoderOptions' own.
  void (*defaults)(DecoderOptions&);
  // Keys that a configuration may set beside those that every family has.
  std::vector<std::string_view> keys;
  // More such keys, true or false, that came when there were runs without them. Their value was false for all
  // of these, so the canonical form of a configuration leaves them out as long as they are false.
  std::vector<std::string_view> later_keys = {};

  // Returns whether a configuration of this family may set the key.
  bool shows(std::string_view key) const;
};

// Llama first, then `decoder`, which shows every key.
const std::vector<Family>& families();
// The family of this name; the process aborts when there is none.
const Family& family_of(std::string_view name);
// The family of this name; nullptr when there is none.
const Family* find_family(std::string_view name);

}  // namespace ostro::models
