#include "ostro/bundle/parts/manifest.h"

#include <doctest/doctest.h>

#include "ostro/base/sha256.h"

namespace ostro::bundle {
namespace {

std::string hash_of(std::string_view text) { return sha256_hex(text); }

BundleManifest small_manifest() {
  BundleManifest m;
  m.chain = {hash_of("genesis"),
             hash_of("head"),
             20,
             hash_of("state"),
             "1",
             R"([{"difference":{"a":{"from":1,"to":2}},"step":10}])",
             R"({"fork":null,"maker":null,"origin":null})"};
  m.files = {{"config.json", {3, hash_of("abc")}}, {"record/chain.jsonl", {0, hash_of("")}}};
  m.ledger = {{"train", {hash_of("root"), {7, 2}}}};
  m.checkpoints = {10, 20};
  m.license = "apache-2.0";
  m.license_files = {"licenses/LICENSE"};
  m.made_by = R"({"published":{"version":"0.1"},"trained":[]})";
  return m;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("bundle.json has one text, and gives the same manifest") {
  BundleManifest m = small_manifest();
  for (const bool whole : {true, false}) {
    m.has_moments = whole;
    if (!whole) m.license.reset(), m.ledger.clear(), m.checkpoints.clear();
    const std::string text = manifest_text(m);
    CHECK(text.back() == '\n');
    const auto back = parse_manifest(text, "B/bundle.json");
    REQUIRE_MESSAGE(back.ok(), back.error().message());
    CHECK(*back == m);
    CHECK(manifest_text(*back) == text);
  }
}

TEST_CASE("no byte of bundle.json can change without another manifest or an error") {
  const BundleManifest m = small_manifest();
  const std::string text = manifest_text(m);
  for (size_t i = 0; i < text.size(); ++i)
    for (const int bit : {0, 1, 5}) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      const auto parsed = parse_manifest(other, "B/bundle.json");
      CHECK((!parsed.ok() || !(*parsed == m)));
    }
  CHECK(!parse_manifest(text + "\n", "B/bundle.json").ok());
  CHECK(!parse_manifest(text.substr(0, text.size() - 1), "B/bundle.json").ok());
}

TEST_CASE("what a bundle.json may not say is refused with its field") {
  const std::string text = manifest_text(small_manifest());
  const auto says = [&](const std::string& from, const std::string& to, const char* words,
                        ErrorCode code = ErrorCode::kCorrupt) {
    const auto parsed = parse_manifest(replaced(text, from, to), "B/bundle.json");
    REQUIRE(!parsed.ok());
    CHECK(parsed.error().code() == code);
    CHECK_MESSAGE(parsed.error().message().find(words) != std::string::npos, parsed.error().message());
  };
  says(R"("format_version":1)", R"("format_version":2)", "is later than", ErrorCode::kUnsupported);
  says(R"("ostro bundle")", R"("ostro run")", "\"format\"");
  says(hash_of("state"), "00", "\"state\"");
  says("[10,20]", "[20,10]", "\"checkpoints\"");
  says(R"("config.json":)", R"("SHA256SUMS":)", "SHA256SUMS");
  says(R"("config.json":)", R"("bundle.json.sig":)", "bundle.json.sig");
  says(R"("step":20)", R"("step":-1)", "\"step\"");
  for (const char* name :
       {"\"../train\"", "\"/train\"", "\"s3://b/k\"", "\"a\\u0000b\"", "\"a\\\\b\"", "\"\""})
    says(R"("train":{)", std::string(name) + ":{", "no component");
  says(R"({"amends")", R"({"a":1,"amends")", "canonical");
  says(R"({"amends")", R"({ "amends")", "canonical");
}

TEST_CASE("SHA256SUMS has bundle.json and all that it lists, sorted by path") {
  const BundleManifest m = small_manifest();
  const std::string text = manifest_text(m);
  CHECK(sums_text(m.files, text, kManifestFile) == hash_of(text) + "  bundle.json\n" + hash_of("abc") +
                                                       "  config.json\n" + hash_of("") +
                                                       "  record/chain.jsonl\n");
  CHECK(is_listed("README.md"));
  CHECK(is_listed("record/bundle.json"));
  CHECK(!is_listed("bundle.json"));
  CHECK(!is_listed("bundle.json.tsr"));
  CHECK(!is_listed("SHA256SUMS"));
}

}  // namespace ostro::bundle
