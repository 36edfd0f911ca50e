#include "ostro/io/json/file_header.h"

#include <doctest/doctest.h>

namespace ostro::io {
namespace {

constexpr FileHeader kHeader = {"ostro thing", 3};

std::string error_of(const nlohmann::json& root) {
  const Status status = check_header(JsonFields(root, "a.json"), kHeader);
  return status.ok() ? "" : status.error().message();
}

TEST_CASE("file header: a version that is read, and every way to be another file") {
  nlohmann::ordered_json json = begin_file(kHeader);
  json["more"] = 1;
  CHECK(json.dump() == R"({"format":"ostro thing","format_version":3,"more":1})");
  nlohmann::json read = nlohmann::json::parse(json.dump());
  CHECK(error_of(read) == "");
  read["format_version"] = 1;
  CHECK(error_of(read) == "");
  read["format_version"] = 4;
  CHECK(error_of(read) == "a.json: \"format_version\" 4 is later than the 3 this version reads");
  read["format_version"] = 0;
  CHECK(error_of(read).starts_with("a.json: \"format_version\" is not an integer in 1.."));
  read["format"] = "ostro run";
  CHECK(error_of(read) == "a.json: \"format\" is \"ostro run\", not \"ostro thing\"");
  CHECK(error_of({{"format_version", 3}}) == "a.json: \"format\" is missing");
  CHECK(error_of(nlohmann::json::array()) == "a.json: not a JSON object");
}

TEST_CASE("file header: every changed byte of a file with a checksum is noticed") {
  const std::string plain = begin_file(kHeader).dump(2), sealed = add_checksum(plain);
  CHECK(nlohmann::json::parse(sealed)["checksum"].get<std::string>().size() == 64);
  CHECK(*remove_checksum(sealed, "a.json") == plain);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] ^= 1;
    CHECK_FALSE(remove_checksum(changed, "a.json").ok());
    CHECK_FALSE(remove_checksum(sealed.substr(0, i), "a.json").ok());
  }
}

}  // namespace
}  // namespace ostro::io
