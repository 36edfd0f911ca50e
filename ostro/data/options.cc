#include "ostro/data/options.h"

#include <fmt/core.h>

namespace ostro::data {

using config::Effect;
using config::option_error;

void DataOptions::visit_options(config::OptionTable& t) {
  t.add(&tokenizer, "tokenizer", Effect::kBits, "path",
        "Hugging Face tokenizer.json, or a directory that holds one")
      .other("other_tokenizer.json")
      .by_content();
  t.add(&cache_dir, "cache_dir", Effect::kOutput, "path", "where the token store is built")
      .other("other_cache");
  t.add(&train_urls, "train_urls", Effect::kBits, "globs",
        "training texts: files, directories or globs (** crosses folders); .jsonl, .jsonl.gz and .jsonl.zst "
        "hold a "
        "document a line, any other file is one document")
      .other("[\"other/**/*.txt\"]")
      .by_content();
  t.add(&validation_urls, "validation_urls", Effect::kBits, "globs",
        "held-out texts; empty: see validation_fraction")
      .other("[\"held_out/**/*.txt\"]")
      .by_content();
  t.add(&validation_fraction, "validation_fraction", Effect::kBits, "fraction of documents",
        "share of the training documents held out, chosen by their hash, when there are no validation_urls");
  t.add(&text_key, "text_key", Effect::kBits, "", "field of a JSON line that holds the text")
      .other("content");
  t.add(&shuffle, "shuffle", Effect::kBits, "sequences",
        "true: a new permutation of the whole set every epoch; false: stored order; a number: permute within "
        "stretches of so many sequences")
      .other("64");
  t.add(&enforce_eos, "enforce_eos", Effect::kBits, "",
        "end every document with the tokenizer's end-of-text token");
  t.add(&block_cross_document_attention, "block_cross_document_attention", Effect::kBits, "",
        "let a token attend to its own document only");
  t.refuse("cache_options", "the token store needs no tuning; see data.cache_dir");
  t.refuse("configs", "mixtures of several data sets are not supported; list all files in data.train_urls");
  t.refuse("train_weights",
           "mixtures of several data sets are not supported; list all files in data.train_urls");
}

Status DataOptions::validate() const {
  if (tokenizer.empty())
    return option_error("data.tokenizer", "is empty; name a tokenizer.json or its directory");
  if (cache_dir.empty()) return option_error("data.cache_dir", "is empty; name a directory");
  if (train_urls.empty())
    return option_error("data.train_urls", "is empty; list files, directories or globs");
  if (!(validation_fraction >= 0 && validation_fraction < 1))
    return option_error(
        "data.validation_fraction",
        fmt::format("{} is not a fraction; use 0 or more and less than 1", validation_fraction));
  if (text_key.empty()) return option_error("data.text_key", "is empty; name a field of the JSON lines");
  if (const int64_t* era = std::get_if<int64_t>(&shuffle.value); era && *era < 1)
    return option_error("data.shuffle",
                        fmt::format("{} is not a number of sequences; use true, false or 1 and more", *era));
  return {};
}

}  // namespace ostro::data
