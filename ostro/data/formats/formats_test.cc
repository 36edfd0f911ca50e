#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ostro/data/formats/formats.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/formats/shared_chat_template.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::data {
namespace {

// Bytes, merges of a few words and two special tokens.
struct FormatFixture {
  io::MemoryFileSystem fs;
  std::optional<tokenizer::Tokenizer> tok;

  FormatFixture() {
    std::vector<std::string> texts(20, "hello there, general world. hello again");
    auto next = [texts, i = size_t{0}](std::string& out) mutable -> Result<bool> {
      if (i == texts.size()) return false;
      out = texts[i++];
      return true;
    };
    auto trained =
        tokenizer::train(next, {.vocab_size = 300, .special_tokens = {"<|endoftext|>", "<|end|>"}});
    REQUIRE(trained.ok());
    check_ok(fs.make_dirs("t"));
    check_ok(tokenizer::save_tokenizer(fs, *trained, "t/tokenizer.json"));
    auto loaded = tokenizer::load_tokenizer(fs, "t");
    REQUIRE(loaded.ok());
    tok.emplace(std::move(*loaded));
  }

  Result<FormattedRow> format(const RowFormat& options, std::string row, bool enforce_eos = true) {
    ASSIGN_OR_RETURN(const auto formatter,
                     make_row_formatter(fs, options, "data.format", "t", *tok, {.enforce_eos = enforce_eos}));
    tokenizer::Encoder encoder(*tok);
    Row r;
    r.bytes = std::move(row);
    return formatter->format(r, encoder);
  }
  std::string text_of_targets(const FormattedRow& row) {
    std::vector<uint32_t> ids;
    for (size_t i = 0; i < row.ids.size(); ++i)
      if (row.weights.empty() || row.weights[i] > 0) ids.push_back(row.ids[i]);
    return *tok->decode_bytes(ids);
  }
};

constexpr const char* kMarked =
    "{% for m in messages %}{{ m.role }}:\n{% if m.role == 'assistant' %}{% generation %}{{ m.content "
    "}}<|end|>"
    "{% endgeneration %}{% else %}{{ m.content }}<|end|>{% endif %}{{ '\\n' }}{% endfor %}";
constexpr const char* kUnmarked =
    "{% for m in messages %}{{ m.role }}:\n{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}assistant:\n{% endif %}";
constexpr const char* kRow =
    R"({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "world <|end|>"},
        {"role": "user", "content": "again"}, {"role": "assistant", "content": "\u00e9"}]})";

}  // namespace

// What TRL makes of the same rows: the post-processor's tokens in front, the eos behind, each once.
TEST_CASE("formats: texts and pairs begin as the tokenizer does, conversations as their template says") {
  FormatFixture f;
  f.tok.emplace(f.tok->with_beginning({1}).value());
  const auto begins = [&](const FormattedRow& row) { return row.ids[0] == 1 && row.ids[1] != 1; };
  const auto text = f.format(TextFormat{}, R"({"text": "hello there"})").value();
  CHECK(begins(text));
  CHECK(*f.tok->decode_bytes(text.ids) == "<|end|>hello there<|endoftext|>");
  const auto once = f.format(TextFormat{}, R"({"text": "<|end|>hello there<|endoftext|>"})").value();
  CHECK(once.ids == text.ids);
  const auto pair = f.format(SupervisedFormat{}, R"({"prompt": "hello", "response": " world"})").value();
  CHECK(begins(pair));
  CHECK(pair.weights[0] == 0);
  CHECK(f.text_of_targets(pair) == " world<|endoftext|>");
  ChatFormat chat;
  chat.chat_template = kMarked;
  CHECK(*f.tok->decode_bytes(f.format(chat, kRow).value().ids) == f.format(chat, kRow).value().content);
}

// SentencePiece's piece for one space: its decoder leaves it out at the beginning of a text only.
TEST_CASE("formats: a space that is a token of its own counts in an answer") {
  FormatFixture f;
  f.tok.emplace(
      tokenizer::Tokenizer::from_json(R"({"added_tokens": [], "pre_tokenizer": null, "post_processor": null,
      "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                     {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
      "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                  {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
      "model": {"type": "BPE", "vocab": {"\u2581": 0, "a": 1, "b": 2, "<": 3}, "merges": []}})",
                                      "spaces")
          .value());
  const auto row = f.format(SupervisedFormat{}, R"({"prompt": "a", "response": "b < a"})", false).value();
  CHECK(row.ids == std::vector<uint32_t>{0, 1, 2, 0, 3, 0, 1});
  CHECK(row.weights == std::vector<float>{0, 0, 1, 1, 1, 1, 1});
}

TEST_CASE("formats: tools may be JSON text") {
  FormatFixture f;
  ChatFormat chat;
  chat.mask_user_turns = false;
  chat.chat_template = "{% for t in tools or [] %}[{{ t | tojson }}]{% endfor %}{{ messages[0].content }}";
  const auto content = [&](const std::string& tools) -> std::string {
    const auto row =
        f.format(chat, R"({"messages": [{"role": "user", "content": "q"}], "tools": )" + tools + "}");
    return row.ok() ? row->content : row.error().message();
  };
  CHECK(content(R"([{"name": "f"}])") == R"([{"name": "f"}]q)");
  CHECK(content(R"("[{\"name\": \"f\"}]")") == R"([{"name": "f"}]q)");
  CHECK(content(R"("[]")") == "q");
  CHECK(content("null") == "q");
  CHECK(content(R"("abc")").find("\"tools\" is a text, and that: not valid JSON") != std::string::npos);
  CHECK(content(R"(["a"])").find("\"tools\" holds a") != std::string::npos);
  CHECK(content(R"({"name": "f"})").find("not a list of objects") != std::string::npos);
  // A number that nothing reads does no harm.
  CHECK(f.format(chat,
                 R"({"id": 123456789012345678901234567890, "messages": [{"role": "user", "content": "q"}]})")
            .ok());
}

TEST_CASE("formats: text ends with the end-of-text id") {
  FormatFixture f;
  const auto row = f.format(TextFormat{}, R"({"text": "hello there<|end|>"})");
  REQUIRE(row.ok());
  CHECK(row.value().content == "hello there<|end|>");
  CHECK(row.value().weights.empty());
  CHECK(row.value().ids.back() == *f.tok->eos_id());
  CHECK(*f.tok->decode_bytes(row.value().ids) == "hello there<|end|><|endoftext|>");
  CHECK(f.format(TextFormat{}, R"({"text": ""})").value().skip == RowSkip::kEmpty);
  CHECK(f.format(TextFormat{}, R"({"body": ""})").error().message() ==
        "has no field \"text\"; set data.format.text_key to the name of the field");
  CHECK_FALSE(f.format(TextFormat{}, R"({"text": 3})").ok());
  CHECK_FALSE(f.format(TextFormat{}, "{\"text\": ").ok());
  const auto repaired = f.format(TextFormat{}, "{\"text\": \"a\xff\"}");
  CHECK(repaired.value().repaired);
  CHECK(repaired.value().content == "a\xEF\xBF\xBD");
}

TEST_CASE("formats: chat gives loss to what the assistant wrote") {
  FormatFixture f;
  for (const char* source : {kMarked, kUnmarked}) {
    ChatFormat options;
    options.chat_template = source;
    const auto row = f.format(options, kRow);
    REQUIRE(row.ok());
    CHECK(row.value().weights.size() == row.value().ids.size());
    CHECK(f.text_of_targets(row.value()) == "world <|end|><|end|>\u00e9<|end|>");
    CHECK(*f.tok->decode_bytes(row.value().ids) == row.value().content);
    // A special token is one id.
    CHECK(std::count(row.value().ids.begin(), row.value().ids.end(), *f.tok->token_to_id("<|end|>")) == 5);
    options.mask_user_turns = false;
    CHECK(f.format(options, kRow).value().weights.empty());
  }
}

TEST_CASE("formats: chat rows that teach nothing, and ones that are wrong") {
  FormatFixture f;
  ChatFormat options;
  options.chat_template = kMarked;
  CHECK(f.format(options, R"({"messages": []})").value().skip == RowSkip::kEmpty);
  CHECK(f.format(options, R"({"messages": [{"role": "user", "content": "a"}]})").value().skip ==
        RowSkip::kNoLoss);
  CHECK_FALSE(f.format(options, R"({"messages": "a"})").ok());
  CHECK_FALSE(f.format(options, R"({"messages": ["a"]})").ok());
  CHECK_FALSE(f.format(options, R"({"turns": []})").ok());
  options.chat_template = "{% for m in messages %}{{ m.content if loop.last else '-' }}{% endfor %}";
  const auto hidden = f.format(options, kRow);
  REQUIRE_FALSE(hidden.ok());
  CHECK(hidden.error().message().find("{% generation %} ... {% endgeneration %}") != std::string::npos);
  options.chat_template = "{{ messages[0].tool_calls.x }}";
  CHECK(f.format(options, kRow).error().message() ==
        "chat_template: line 1: 'dict object' has no attribute 'tool_calls'");
}

TEST_CASE("formats: where chat templates are found") {
  FormatFixture f;
  CHECK(f.format(ChatFormat{}, kRow).error().message().find("no chat template") != std::string::npos);
  const auto write = [&](const char* path, const std::string& text) {
    auto file = f.fs.create(path);
    REQUIRE(file.ok());
    check_ok((*file)->append(text));
  };
  write("t/tokenizer_config.json",
        R"({"eos_token": "<|end|>", "chat_template": [{"name": "default", "template": "D{{ eos_token }}"},
            {"name": "tool_use", "template": "T{{ tools | length }}{{ extra }}"}]})");
  ChatFormat options;
  options.mask_user_turns = false;
  CHECK(f.format(options, kRow).value().content == "D<|end|>");
  const std::string with_tools =
      R"({"messages": [{"role": "user", "content": ""}], "tools": [{}], "chat_template_kwargs": {"extra": "E"}})";
  CHECK(f.format(options, with_tools).value().content == "T1E");
  write("t/chat_template.jinja", "file");
  CHECK(f.format(options, with_tools).value().content == "file");
  write("t/other.jinja", "{{ 'other' }}");
  options.chat_template = "t/other.jinja";
  CHECK(f.format(options, kRow).value().content == "other");
  options.chat_template = "t/none.jinja";
  CHECK(f.format(options, kRow).error().message().find("t/none.jinja") != std::string::npos);
}

TEST_CASE("formats: the chat template that goes with a model") {
  FormatFixture f;
  DataOptions options;
  options.tokenizer = "t/tokenizer.json";
  options.components["web"].train_urls = {"x"};
  CHECK_FALSE(shared_chat_template(f.fs, options, *f.tok).value().has_value());
  for (const char* name : {"a", "b"}) {
    options.components[name].train_urls = {"x"};
    options.components[name].format = ChatFormat{.chat_template = "{{ messages[0].content }}"};
  }
  const auto shared = shared_chat_template(f.fs, options, *f.tok).value();
  REQUIRE(shared.has_value());
  check_ok(shared->save(f.fs, "t"));
  CHECK(f.fs.read_file("t/chat_template.jinja", 100).value() == "{{ messages[0].content }}");
  options.components["b"].format = ChatFormat{.chat_template = "{{ messages[1].content }}"};
  CHECK_FALSE(shared_chat_template(f.fs, options, *f.tok).value().has_value());
  options.components["b"].train_urls.clear();  // used as it is
  CHECK(shared_chat_template(f.fs, options, *f.tok).value().has_value());
  options.components["a"].format = ChatFormat{};
  CHECK(shared_chat_template(f.fs, options, *f.tok).value()->identity() == shared->identity());
}

TEST_CASE("formats: supervised gives loss to the output") {
  FormatFixture f;
  SupervisedFormat options;
  options.separate_with = "\n";
  const auto row = f.format(options, R"({"prompt": "hello", "response": "again"})");
  REQUIRE(row.ok());
  CHECK(row.value().content == "hello\nagain");
  CHECK(f.text_of_targets(row.value()) == "again<|endoftext|>");
  options.mask_inputs = false;
  CHECK(f.format(options, R"({"prompt": "hello", "response": "again"})").value().weights.empty());
  CHECK(f.format(options, R"({"prompt": "hello", "response": ""})").value().skip == RowSkip::kEmpty);
  CHECK(f.format(options, R"({"prompt": "hello"})").error().message().find("data.format.output_field") !=
        std::string::npos);
}

TEST_CASE("formats: prebuilt ids are checked") {
  FormatFixture f;
  PrebuiltFormat options;
  const auto n = f.tok->vocab_size();
  CHECK(f.format(options, fmt::format("{{\"input_ids\": [0, {}]}}", n - 1)).value().ids ==
        std::vector<uint32_t>{0, n - 1});
  CHECK(f.format(options, fmt::format("{{\"input_ids\": [0, {}]}}", n))
            .error()
            .message()
            .find("another tokenizer") != std::string::npos);
  CHECK_FALSE(f.format(options, R"({"input_ids": [-1]})").ok());
  CHECK_FALSE(f.format(options, R"({"input_ids": [1.0]})").ok());
  CHECK_FALSE(f.format(options, R"({"input_ids": "1"})").ok());
  CHECK(f.format(options, R"({"input_ids": []})").value().skip == RowSkip::kEmpty);
  options.loss_weights_key = "w";
  CHECK(f.format(options, R"({"input_ids": [1, 2], "w": [0, 0.5]})").value().weights ==
        std::vector<float>{0, 0.5f});
  CHECK(f.format(options, R"({"input_ids": [1, 2], "w": [1, 1]})").value().weights.empty());
  CHECK(f.format(options, R"({"input_ids": [1, 2], "w": [0, 0]})").value().skip == RowSkip::kNoLoss);
  for (const char* wrong : {"[1]", "[1, -1]", "[1, 1e300]", "[1, null]", "3"})
    CHECK_FALSE(f.format(options, fmt::format("{{\"input_ids\": [1, 2], \"w\": {}}}", wrong)).ok());
}

TEST_CASE("formats: the identity holds what ids depend on") {
  FormatFixture f;
  const auto identity = [&](const RowFormat& options) {
    const auto formatter = make_row_formatter(f.fs, options, "data.format", "t", *f.tok, {});
    REQUIRE(formatter.ok());
    return formatter.value()->identity();
  };
  ChatFormat a, b;
  a.chat_template = "{{ 'a' }}";
  b.chat_template = "{{ 'b' }}";
  CHECK(identity(a) != identity(b));
  b = a;
  b.pack = false;  // concerns sequences, not rows
  CHECK(identity(a) == identity(b));
  b.mask_user_turns = false;
  CHECK(identity(a) != identity(b));
  CHECK(identity(TextFormat{}) != identity(SupervisedFormat{}));
}

}  // namespace ostro::data
