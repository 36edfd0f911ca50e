#include "ostro/tokenizer/files/companions.h"

#include <doctest/doctest.h>

#include "ostro/base/log_capture_for_test.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::tokenizer {
namespace {

using Ids = std::vector<uint32_t>;

// A directory with a tokenizer.json of 257 tokens and nothing else.
struct Directory {
  io::MemoryFileSystem fs;
  Directory() {
    check_ok(fs.make_dirs("d"));
    const auto trained = train([](std::string&) -> Result<bool> { return false; },
                               {.vocab_size = 258, .special_tokens = {"<|endoftext|>", "<x>"}});
    check_ok(save_tokenizer(fs, *trained, "d/tokenizer.json"));
  }
  void put(const std::string& name, const std::string& text) {
    check_ok(io::write_file_atomically(fs, "d/" + name, text));
  }
  Result<Tokenizer> load() { return load_tokenizer(fs, "d"); }
};

// Expected: what transformers 5.23 makes of the same files.
TEST_CASE("tokens are named in all places of a directory") {
  for (const auto& [name, text] :
       {std::pair<std::string, std::string>{
            "tokenizer_config.json",
            R"({"added_tokens_decoder": {"258": {"content": "<|a|>", "special": true}}})"},
        {"added_tokens.json", R"({"<|a|>": 258})"},
        {"tokenizer_config.json", R"({"extra_special_tokens": ["<|a|>"]})"},
        {"tokenizer_config.json", R"({"extra_special_tokens": {"image_token": "<|a|>"}})"},
        {"tokenizer_config.json", R"({"additional_special_tokens": ["<|a|>"]})"},
        {"special_tokens_map.json", R"({"additional_special_tokens": [{"content": "<|a|>"}]})"}}) {
    CAPTURE(name + text);
    Directory d;
    d.put(name, text);
    const auto t = d.load();
    REQUIRE_MESSAGE(t.ok(), t.error().message());
    CHECK(t->vocab_size() == 259);
    CHECK(t->encode("<|a|>").front() == 258);
    CHECK(t->encode("<|a|>").size() == 1);
  }
}

TEST_CASE("the legacy files count only without added_tokens_decoder") {
  Directory d;
  d.put("special_tokens_map.json", R"({"eos_token": "<x>"})");
  d.put("added_tokens.json", R"({"<|b|>": 258})");
  d.put("tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  CHECK(d.load()->eos_id() == 1);
  CHECK(d.load()->token_to_id("<|b|>") == 258);
  d.put("tokenizer_config.json", R"({"eos_token": "<|endoftext|>", "added_tokens_decoder": {}})");
  CHECK(d.load()->eos_id() == 0);
  CHECK_FALSE(d.load()->token_to_id("<|b|>"));
}

TEST_CASE("properties that a file gives a token count, and ids that are skipped are told") {
  Directory d;
  d.put("tokenizer_config.json",
        R"({"added_tokens_decoder": {"1": {"content": "<x>", "lstrip": true, "special": true},
                                     "300": {"content": "<|a|>", "special": true}}})");
  LogCapture log;
  const Tokenizer t = d.load().value();
  CHECK(t.encode("a  <x>").size() == 2);
  CHECK(t.token_to_id("<|a|>") == 258);
  CHECK(log.lines.find("\"<|a|>\" is named with id 300, and gets id 258") != std::string::npos);
  CHECK(Tokenizer::from_json(t.to_json(), "again")->hash() == t.hash());
  d.put("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {}}})");
  CHECK(d.load().error().message().find("added_tokens_decoder: \"x\" is not a token id") !=
        std::string::npos);
}

TEST_CASE("where generation ends, and how the texts of a run begin") {
  Directory d;
  CHECK(text_ends(*d.load())->stops == Ids{0});
  d.put("config.json", R"({"eos_token_id": [1, 0]})");
  CHECK(text_ends(*d.load())->stops == Ids{1, 0});
  d.put("generation_config.json", R"({"eos_token_id": [1, 7000]})");
  CHECK(text_ends(*d.load())->stops == Ids{1, 0});
  d.put("generation_config.json", "no JSON");
  CHECK(text_ends(*d.load())->stops == Ids{1, 0});
  d.put("tokenizer_config.json", d.load()->tokenizer_config_json(0, false));
  CHECK(d.load()->begins_texts() == false);
}

}  // namespace
}  // namespace ostro::tokenizer
