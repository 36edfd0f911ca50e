#include "ostro/publication/parts/manifest.h"

#include <doctest/doctest.h>

#include "ostro/base/sha256.h"

namespace ostro::publication {
namespace {

std::string digits_of(std::string_view text) { return sha256_hex(text); }

PublicationManifest small_publication() {
  PublicationManifest m;
  m.lab = "rates", m.question = "Which?", m.plan = "rates.yaml";
  m.lab_hash = digits_of("lab"), m.journal = digits_of("journal"), m.registry = digits_of("registry");
  m.steps["texts"] = {"source", digits_of("f"), digits_of("c"), "", "MIT", {{"../a.txt", digits_of("a"), 1}}};
  m.steps["base[rate=1]"] = {"train", digits_of("g"), digits_of("d"), "bundles/base-rate-1"};
  m.files = {{"rates.yaml", {3, digits_of("abc")}}, {"rates.lab/journal.jsonl", {0, digits_of("")}}};
  m.made_by = R"({"version":"0.1"})";
  return m;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("publication.json has one text, and gives the same manifest") {
  PublicationManifest m = small_publication();
  for (const bool registered : {true, false}) {
    if (!registered) m.registry.clear();
    const std::string text = manifest_text(m);
    const auto back = parse_manifest(text, "P/publication.json");
    REQUIRE_MESSAGE(back.ok(), back.error().message());
    CHECK(*back == m);
    CHECK(manifest_text(*back) == text);
  }
}

TEST_CASE("no byte of publication.json can change without another manifest or an error") {
  const PublicationManifest m = small_publication();
  const std::string text = manifest_text(m);
  for (size_t i = 0; i < text.size(); ++i)
    for (const int bit : {0, 1, 5}) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      const auto parsed = parse_manifest(other, "P/publication.json");
      CHECK((!parsed.ok() || !(*parsed == m)));
    }
}

TEST_CASE("what a publication.json may not say is refused with its field") {
  const std::string text = manifest_text(small_publication());
  const auto refused = [&](const std::string& from, const std::string& to, const char* words) {
    const auto parsed = parse_manifest(with(text, from, to), "P/publication.json");
    REQUIRE(!parsed.ok());
    CHECK_MESSAGE(parsed.error().message().find(words) != std::string::npos, parsed.error().message());
  };
  refused("ostro publication", "ostro bundle", "\"format\" is \"ostro bundle\"");
  refused("\"format_version\":1", "\"format_version\":2", "later than the 1");
  refused("\"plan\":\"rates.yaml\"", "\"plan\":\"../rates.yaml\"", "\"plan\" is \"../rates.yaml\"");
  refused("bundles/base-rate-1", "bundles/../texts", "\"bundle\" is");
  refused("bundles/base-rate-1", "site", "\"bundle\" is");
  refused("\"rates.lab/journal.jsonl\"", "\"bundles/a/chain.jsonl\"", "must not have");
  refused("\"rates.lab/journal.jsonl\"", "\"publication.json.sig\"", "must not have");
  refused("\"lab\":", "\"more\":1,\"lab\":", "is not the canonical JSON");
  refused("\"kind\":\"source\"", "\"kind\":\"train\"", "is not the canonical JSON");
}

}  // namespace ostro::publication
