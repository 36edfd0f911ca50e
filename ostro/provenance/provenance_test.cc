#include "ostro/provenance/provenance.h"

#include <doctest/doctest.h>

#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/provenance/compared_files.h"
#include "ostro/provenance/written_files.h"

namespace ostro::provenance {
namespace {

Provenance merged_model() {
  Provenance out;
  out.made = Made::kMerge;
  out.numerics = "1";
  out.files["config.json"] = {2, sha256_hex("{}")};
  out.weights = {"hf", "bf16", 5000, {}, sha256_hex("base"), sha256_hex("tokenizer")};
  out.sources = {
      {"adapter", sha256_hex("state"), 20, sha256_hex("head"), sha256_hex("genesis"), R"({"format":"hf"})"},
      {"base", sha256_hex("base"), 0, {}, {}, {}}};
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a provenance is read as it was written, and in no other form") {
  const std::string text = provenance_text(merged_model());
  CHECK(parse_provenance(text, "p").value() == merged_model());
  CHECK(text.starts_with(R"({"files":{"config.json":{"bytes":2,"sha256":")"));
  CHECK(text.ends_with("}\n"));
  const auto message = [](const std::string& changed) {
    const auto read = parse_provenance(changed, "p");
    return read.ok() ? std::string("read") : read.error().message();
  };
  CHECK(message(text + "\n") == "p: is not canonical JSON with one line feed; it was edited");
  CHECK(message(replaced(text, "\"step\":20", "\"step\": 20")).ends_with("it was edited"));
  CHECK(message(replaced(text, "\"step\":20", "\"step\":-1")).find("\"step\" is not an integer") !=
        std::string::npos);
  CHECK(message(replaced(text, "\"merge\"", "\"magic\"")) ==
        "p: \"made\" is \"magic\", which this format does not have");
  CHECK(message(replaced(text, "\"role\":\"base\"", "\"role\":\"aunt\"")).find("is \"aunt\"") !=
        std::string::npos);
  CHECK(message(replaced(text, "\"numerics\"", "\"extra\":1,\"numerics\"")) ==
        "p: \"extra\" is no member of this format");
  // A name that leads out of the directory is not opened.
  for (const char* name : {"../config.json", "/config.json", "a/../../b", "s3://b/k", "provenance.json", "."})
    CHECK(message(replaced(text, "\"config.json\"", fmt::format("\"{}\"", name))) ==
          fmt::format("p: \"files\" has the name \"{}\"", name));
}

TEST_CASE("a later format is not read, and is no damage") {
  const std::string text = provenance_text(merged_model());
  const auto later = parse_provenance(replaced(text, "\"format_version\":1", "\"format_version\":2"), "p");
  REQUIRE(!later.ok());
  CHECK(later.error().code() == ErrorCode::kUnsupported);
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("m"));
  CHECK_FALSE(read_provenance(fs, "m").value());
}

TEST_CASE("what an origin was made from is read back") {
  const Source source{"model", sha256_hex("s"), 7, sha256_hex("h"), sha256_hex("g"), {}};
  CHECK(made_from(R"({"files":{},"from":)" + from_json(source) + "}", "o").value() == source);
  CHECK_FALSE(made_from(R"({"files":{}})", "o").value());
  CHECK_FALSE(made_from(R"({"from":{"state":"x","step":1}})", "o").ok());
}

TEST_CASE("files are hashed as they are written, under the names that they get") {
  io::MemoryFileSystem memory;
  check_ok(memory.make_dirs("out/more"));
  check_ok(memory.make_dirs("output"));
  WrittenFiles fs(memory, "./out/");
  check_ok(io::write_file_atomically(fs, "out/a", "first"));
  check_ok(io::write_file_atomically(fs, "out/a", "abc"));
  check_ok(io::write_file_atomically(fs, "out/more/b", ""));
  check_ok(io::write_file_atomically(fs, "output/c", "beside"));
  const std::map<std::string, FileDigest> files = {{"a", {3, sha256_hex("abc")}},
                                                   {"more/b", {0, sha256_hex("")}}};
  CHECK(fs.files() == files);
  CHECK(memory.read_file("out/a").value() == "abc");
}

TEST_CASE("what is written is compared with what is there, and nothing is changed") {
  io::MemoryFileSystem memory;
  check_ok(memory.make_dirs("there"));
  const auto put = [&](const std::string& name, const std::string& text) {
    check_ok(io::write_file_atomically(memory, "there/" + name, text));
  };
  put("same", "abc"), put("other", "abc"), put("short", "ab"), put("long", "abcd");
  std::string seen;
  ComparedFiles fs(memory, "again", "there",
                   [&](const std::string& name, int64_t offset, std::span<const std::byte> written,
                       std::span<const std::byte> there) {
                     seen += fmt::format("{} at {}: {}, {}; ", name, offset, written.size(), there.size());
                   });
  CHECK_FALSE(fs.exists("again/same").value());
  CHECK(fs.list("again").value().empty());
  for (const char* name : {"same", "short", "long", "missing"})
    check_ok(io::write_file_atomically(fs, fmt::format("again/{}", name), "abc"));
  check_ok(io::write_file_atomically(fs, "again/other", [](io::WritableFile& file) -> Status {
    RETURN_IF_ERROR(file.append("a"));
    return file.append("xc");
  }));
  CHECK(seen == "short at 0: 3, 2; other at 1: 2, 2; ");
  const auto& files = fs.files();
  CHECK(files.at("same").same());
  CHECK(files.at("other").first_difference == 1);
  CHECK(files.at("other").begin == "a");
  CHECK(files.at("short").there == 2);
  CHECK(files.at("short").first_difference == -1);
  CHECK_FALSE(files.at("short").same());
  CHECK_FALSE(files.at("long").same());
  CHECK(files.at("missing").there == -1);
  // Written again, as the companions of an import are: the last counts.
  check_ok(io::write_file_atomically(fs, "again/other", "abc"));
  CHECK(files.at("other").same());
  CHECK(memory.read_file("there/long").value() == "abcd");
  CHECK_FALSE(io::write_file_atomically(fs, "there/same", "x").ok());
  CHECK_FALSE(fs.remove("there/same").ok());
}

}  // namespace
}  // namespace ostro::provenance
