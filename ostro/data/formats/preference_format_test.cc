#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/sources/pair_parts.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::data {
namespace {

struct PreferenceFixture {
  io::MemoryFileSystem fs;
  std::optional<tokenizer::Tokenizer> tok;

  PreferenceFixture() {
    auto next = [i = 0](std::string& out) mutable -> Result<bool> {
      out = "two and two are four, not five";
      return i++ < 20;
    };
    auto trained = tokenizer::train(next, {.vocab_size = 280});
    REQUIRE(trained.ok());
    check_ok(fs.make_dirs("t"));
    check_ok(tokenizer::save_tokenizer(fs, *trained, "t/tokenizer.json"));
    auto loaded = tokenizer::load_tokenizer(fs, "t");
    REQUIRE(loaded.ok());
    tok.emplace(std::move(*loaded));
  }

  Result<FormattedRow> format(const PreferenceFormat& options, std::string row) {
    ASSIGN_OR_RETURN(const auto formatter, make_row_formatter(fs, options, "f", "t", *tok, {}));
    tokenizer::Encoder encoder(*tok);
    Row r;
    r.bytes = std::move(row);
    return formatter->format(r, encoder);
  }
  std::string refusal(const PreferenceFormat& options, std::string row) {
    const auto made = format(options, std::move(row));
    return made.ok() ? "" : made.error().message();
  }
  // The text of the tokens of a part.
  std::string part(const FormattedRow& row, int which) {
    std::vector<uint32_t> ids;
    for (size_t i = 0; i < row.ids.size(); ++i)
      if (row.weights[i] == static_cast<float>(which)) ids.push_back(row.ids[i]);
    return *tok->decode_bytes(ids);
  }
};

constexpr const char* kMarkedPair =
    "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}{{ m.content }}!"
    "{% endgeneration %}{% else %}{{ m.content }}{% endif %} {% endfor %}";

}  // namespace

TEST_CASE("preference rows: both texts begin as the tokenizer does") {
  PreferenceFixture f;
  f.tok.emplace(f.tok->with_beginning({5}).value());
  const auto row =
      f.format({}, R"({"prompt": "two and two are", "chosen": " four", "rejected": " five"})").value();
  CHECK(std::count(row.ids.begin(), row.ids.end(), 5u) == 2);
  CHECK(row.ids[0] == 5);
  CHECK(row.weights[0] == static_cast<float>(kChosenPrompt));
  const auto second = std::find(row.ids.begin() + 1, row.ids.end(), 5u) - row.ids.begin();
  CHECK(row.weights[static_cast<size_t>(second)] == static_cast<float>(kRejectedPrompt));
}

TEST_CASE("preference rows: texts with a prompt, and with one that is their common beginning") {
  PreferenceFixture f;
  const auto own = f.format({}, R"({"prompt": "two and two are", "chosen": " four", "rejected": " five,"})");
  REQUIRE(own.ok());
  CHECK(f.part(*own, kChosenPrompt) == "two and two are");
  CHECK(f.part(*own, kChosenAnswer) == " four<|endoftext|>");
  CHECK(f.part(*own, kRejectedPrompt) == "two and two are");
  CHECK(f.part(*own, kRejectedAnswer) == " five,<|endoftext|>");
  CHECK(own->ids.size() == own->weights.size());
  const auto shared =
      f.format({}, R"({"chosen": "two and two are four", "rejected": "two and two are five,"})");
  REQUIRE(shared.ok());
  CHECK(shared->ids == own->ids);
  CHECK(shared->weights == own->weights);
  PreferenceFormat named;
  named.chosen_field = "better";
  named.rejected_field = "worse";
  CHECK(f.format(named, R"({"prompt": "two", "better": "a", "worse": "b"})").ok());
}

TEST_CASE("preference rows: conversations, of which the assistant's answers behind the prompt count") {
  PreferenceFixture f;
  PreferenceFormat options;
  options.chat_template = kMarkedPair;
  const std::string begin = R"({"role": "user", "content": "two"}, {"role": "assistant", "content": "and"},
                               {"role": "user", "content": "are"})";
  const std::string good = R"({"role": "assistant", "content": "four"})",
                    bad = R"({"role": "assistant", "content": "five"})";
  const auto own = f.format(
      options, "{\"prompt\": [" + begin + "], \"chosen\": [" + good + "], \"rejected\": [" + bad + "]}");
  REQUIRE_MESSAGE(own.ok(), own.error().message());
  CHECK(f.part(*own, kChosenAnswer) == " four!");  // a token holds the space, too
  CHECK(f.part(*own, kRejectedAnswer) == " five!");
  const auto shared = f.format(
      options, "{\"chosen\": [" + begin + "," + good + "], \"rejected\": [" + begin + "," + bad + "]}");
  REQUIRE_MESSAGE(shared.ok(), shared.error().message());
  CHECK(shared->ids == own->ids);
  CHECK(shared->weights == own->weights);
  CHECK(f.refusal({}, "{\"chosen\": [" + begin + "," + good + "], \"rejected\": [" + begin + "]}")
            .find("the tokenizer has no chat template; set f.chat_template") != std::string::npos);
  CHECK(f.refusal(options, "{\"chosen\": [" + begin + "," + good + "], \"rejected\": [" + begin + "]}") ==
        "field \"rejected\" holds only the beginning that both answers share");
  CHECK(f.refusal(options, "{\"prompt\": [" + begin + "], \"chosen\": [" + good + "], \"rejected\": [" +
                               R"({"role": "user", "content": "five"})" + "]}") ==
        "field \"rejected\" has no message of the assistant after the prompt");
}

TEST_CASE("preference rows that are wrong: the field is named") {
  PreferenceFixture f;
  CHECK(f.refusal({}, R"({"prompt": "a", "chosen": "b"})") ==
        "has no field \"rejected\"; set f.rejected_field to the name of the field");
  CHECK(f.refusal({}, R"({"prompt": "a", "chosen": "b", "rejected": ""})") ==
        "field \"rejected\" is empty; a preference row needs both answers");
  CHECK(f.refusal({}, R"({"prompt": "a", "chosen": "b", "rejected": "b"})") ==
        "fields \"chosen\" and \"rejected\" are equal, so neither is preferred; leave the row out");
  CHECK(
      f.refusal({}, R"({"chosen": "b", "rejected": "c"})").find("has no field \"prompt\" (f.prompt_field)") ==
      0);
  CHECK(f.refusal({}, R"({"prompt": "", "chosen": "b", "rejected": "c"})") == "field \"prompt\" is empty");
  CHECK(f.refusal({}, R"({"prompt": [], "chosen": "b", "rejected": "c"})") ==
        "field \"prompt\" is a list, but \"chosen\" is a text");
  CHECK(f.refusal({}, R"({"prompt": "a", "chosen": "b", "rejected": 7})") ==
        "field \"rejected\" is a int, not a text or a list of messages (f.rejected_field)");
  CHECK(
      f.refusal({}, R"({"prompt": "a", "chosen": "b", "rejected": [{}]})") ==
      "field \"chosen\" is a str, but field \"rejected\" is a list; both must be texts or lists of messages");
}

}  // namespace ostro::data
