#include "ostro/tokenizer/files/files.h"

#include <doctest/doctest.h>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/tokenizer/model/id_text.h"

namespace ostro::tokenizer {
namespace {

TEST_CASE("train from files, save, load; tokenizer_config.json names the eos token") {
  io::MemoryFileSystem files;
  check_ok(files.make_dirs("d"));
  check_ok(io::write_file_atomically(files, "d/a.txt", "the cat the hat"));
  TrainOptions options;
  options.vocab_size = 262;
  options.special_tokens = {"<|endoftext|>", "<|eot_id|>"};
  const auto tokenizer = train(documents_of_files(files, {"d/a.txt", "d/a.txt"}), options);
  REQUIRE(tokenizer.ok());
  check_ok(save_tokenizer(files, *tokenizer, "d/tokenizer.json"));
  CHECK(load_tokenizer(files, "d")->canonical_json() == tokenizer->canonical_json());
  CHECK(load_tokenizer(files, "d/tokenizer.json")->eos_id() == 0);

  check_ok(io::write_file_atomically(files, "d/tokenizer_config.json",
                                     R"({"eos_token": {"content": "<|eot_id|>"}})"));
  CHECK(load_tokenizer(files, "d")->eos_id() == 1);
  check_ok(io::write_file_atomically(files, "d/tokenizer_config.json", R"({"eos_token": "<none>"})"));
  CHECK(load_tokenizer(files, "d").error().message().find("<none>") != std::string::npos);
  CHECK(load_tokenizer(files, "missing.json").error().code() == ErrorCode::kNotFound);
  CHECK_FALSE(train(documents_of_files(files, {"d/b.txt"}), options).ok());
}

TEST_CASE("long files come in parts that together are the file") {
  io::MemoryFileSystem files;
  std::string text = "first";
  for (int i = 0; i < 400; ++i) text += i % 7 == 0 ? "x\nline " : i % 50 < 20 ? " 1234567 " : "\n\n";
  check_ok(files.make_dirs("d"));
  check_ok(io::write_file_atomically(files, "d/a.txt", text));
  check_ok(io::write_file_atomically(files, "d/empty.txt", ""));
  check_ok(io::write_file_atomically(files, "d/b.txt", "end"));
  for (const size_t part_bytes : {1, 10, 64, 100, 100000}) {
    auto source = documents_of_files(files, {"d/a.txt", "d/empty.txt", "d/b.txt"}, part_bytes);
    std::string document, all;
    size_t parts = 0;
    for (Result<bool> more = source(document); more.ok() && *more; more = source(document)) {
      CHECK_FALSE(document.empty());
      all += document;
      ++parts;
    }
    CHECK(all == text + "end");
    CHECK((part_bytes < 1000 ? parts > 5 : parts == 2));
  }
}

TEST_CASE("ids as text") {
  CHECK(format_ids(std::vector<uint32_t>{1, 20, 3}, false) == "1 20 3");
  CHECK(format_ids(std::vector<uint32_t>{1, 20}, true) == "[1, 20]");
  CHECK(format_ids({}, true) == "[]");
  CHECK(*parse_ids("1 20\t3 ") == std::vector<uint32_t>{1, 20, 3});
  CHECK(*parse_ids(" [1, 20,3] ") == std::vector<uint32_t>{1, 20, 3});
  CHECK(parse_ids("[]")->empty());
  CHECK(parse_ids("")->empty());
  for (const char* bad : {"1,2", "[1 2]", "[1", "1]", "x", "-1", "4294967296", "[1,]", "[,1]", "[1] 2"}) {
    CHECK_FALSE(parse_ids(bad).ok());
  }
}

TEST_CASE("texts to lines of ids and back") {
  TrainOptions options;
  options.vocab_size = 257;
  const auto tokenizer = train([](std::string&) -> Result<bool> { return false; }, options);
  const std::string text = "ab\n\n\xC3\xA9";
  const std::string lines = encode_text(*tokenizer, text, false, false, {});
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);
  CHECK(*decode_lines(*tokenizer, lines, false) == text + "\n");
  const std::string whole = encode_text(*tokenizer, text, true, true, {});
  CHECK(std::count(whole.begin(), whole.end(), '\n') == 1);
  CHECK(*decode_lines(*tokenizer, whole, false) == text + "\n");
  CHECK_FALSE(decode_lines(*tokenizer, "1 x", false).ok());
}

}  // namespace
}  // namespace ostro::tokenizer
