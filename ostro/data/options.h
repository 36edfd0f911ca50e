// The `data:` section: which texts are read, how they become tokens, and in which order they are seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::data {

struct DataOptions {
  std::string tokenizer = "tokenizer.json";  // file, or directory that holds one
  std::string cache_dir = "cache";
  std::vector<std::string> train_urls;  // globs and directories
  std::vector<std::string> validation_urls;
  double validation_fraction = 0.01;
  std::string text_key = "text";
  config::Alternatives<bool, int64_t> shuffle{true};  // true: whole set, false, or sequences an era
  bool enforce_eos = true;
  bool block_cross_document_attention = false;

  void visit_options(config::OptionTable& table);
  // Errors name the key, its value and what is allowed.
  Status validate() const;
};

}  // namespace ostro::data
