#include "ostro/tokenizer/model/text_ends.h"

#include <doctest/doctest.h>

#include "ostro/tokenizer/files/trainer.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {
namespace {

using Ids = std::vector<uint32_t>;

// A byte-level BPE whose post-processor puts token 0 in front of a text, as Llama 3's does.
Tokenizer with_bos(bool adds) {
  bool given = false;
  const auto document = [&given](std::string& text) -> Result<bool> {
    text = "one two three four five six one two three";
    return !std::exchange(given, true);
  };
  TrainOptions options;
  options.vocab_size = 280;
  options.special_tokens = {"<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"};
  options.eos_token = "<|end_of_text|>";
  const Tokenizer plain = train(document, options).value();
  return plain.with_beginning(adds ? Ids{0} : Ids{}).value();
}

TEST_CASE("texts begin as the tokenizer has it, once") {
  const Tokenizer t = with_bos(true);
  const Ids text = t.encode("one two");
  const TextEnds ends = text_ends(t).value();
  Ids ids = text;
  CHECK(ends.begin(ids) == 1);
  CHECK(ids.front() == 0);
  CHECK(ends.begin(ids) == 0);
  CHECK(ids.size() == text.size() + 1);
  CHECK(ends.eos == 1);
  CHECK(ends.stops == Ids{1});
  CHECK(prompt_ids(t, "one two").value() == std::vector<int32_t>(ids.begin(), ids.end()));
  CHECK(prompt_ids(t, "<|begin_of_text|>one two").value() == std::vector<int32_t>(ids.begin(), ids.end()));
  CHECK(prompt_ids(t, "").value() == std::vector<int32_t>{0});
  CHECK(text_ends(t, false)->before.empty());
  // A file that says the same as the post-processor is read back.
  const Tokenizer again = Tokenizer::from_json(t.to_json(), "again").value();
  CHECK(again.spec().prefix == Ids{0});
  CHECK(again.encode("one", {.add_special_tokens = true}).front() == 0);
}

TEST_CASE("without a post-processor a text begins with nothing, unless data.enforce_bos asks for it") {
  Tokenizer t = with_bos(false);
  CHECK(text_ends(t)->before.empty());
  CHECK(text_ends(t, true)->before == Ids{0});
  CHECK(prompt_ids(t, "").value() == std::vector<int32_t>{0});  // as lm-evaluation-harness has it
  // The texts of its run had none: a document comes behind the end of another.
  t.set_begins_texts(false);
  CHECK(prompt_ids(t, "").value() == std::vector<int32_t>{1});
  t.set_begins_texts(true);
  CHECK(prompt_ids(t, "one").value().front() == 0);
  const Tokenizer bytes =
      train([](std::string&) -> Result<bool> { return false; }, {.vocab_size = 257}).value();
  CHECK(
      text_ends(bytes, true).error().message().starts_with("data.enforce_bos: the tokenizer names no token"));
  CHECK(prompt_ids(bytes, "").value() == std::vector<int32_t>{0});  // its <|endoftext|>
}

TEST_CASE("generation ends after each token that is named") {
  Tokenizer t = with_bos(true);
  t.set_more_stops({2, 1});
  CHECK(text_ends(t).value().stops == Ids{2, 1});  // the second is the end of text
  CHECK(t.generation_config_json().find("\"eos_token_id\": [") != std::string::npos);
}

}  // namespace
}  // namespace ostro::tokenizer
