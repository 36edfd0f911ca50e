// provenance.json, or signed provenance.intoto.jsonl: what was made of what, by which program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/chain/genesis_json.h"
#include "ostro/publication/others/others.h"
#include "ostro/tokenizer/unicode/base64.h"

namespace ostro::publication {
namespace {

using StatementJson = nlohmann::json;

constexpr const char* kPayloadType = "application/vnd.in-toto+json";

StatementJson digest(const std::string& sha256) { return {{"sha256", sha256}}; }

}  // namespace

std::string provenance_statement(const PublicationManifest& m) {
  StatementJson subjects = StatementJson::array(), sources = StatementJson::array(),
                steps = StatementJson::object();
  for (const auto& [path, sum] : m.files)
    subjects.push_back({{"name", path}, {"digest", digest(sum.sha256)}});
  for (const auto& [name, step] : m.steps) {
    steps[name] = {{"kind", step.kind}, {"fingerprint", step.fingerprint}, {"content", step.content}};
    for (const PublishedFile& file : step.sources)
      sources.push_back({{"name", file.path}, {"digest", digest(file.sha256)}});
  }
  const StatementJson made_by = StatementJson::parse(m.made_by, nullptr, /*allow_exceptions=*/false);
  return chain::canonical_text(
      {{"_type", "https://in-toto.io/Statement/v1"},
       {"subject", subjects},
       {"predicateType", "https://slsa.dev/provenance/v1"},
       {"predicate",
        {{"buildDefinition",
          {{"buildType", "tag:ostro,2026:lab/1"},
           {"externalParameters", {{"plan", m.plan}, {"lab_hash", m.lab_hash}}},
           {"internalParameters", {{"steps", steps}}},
           {"resolvedDependencies", sources}}},
         {"runDetails", {{"builder", {{"id", "tag:ostro,2026:ostro"}, {"version", made_by}}}}}}}});
}

// https://github.com/secure-systems-lab/dsse, protocol version 1.0.0: what is signed names the type, too.
std::string signed_envelope(const std::string& statement, const bundle::SigningKey& key) {
  const std::string text = fmt::format("DSSEv1 {} {} {} {}", std::string(kPayloadType).size(), kPayloadType,
                                       statement.size(), statement);
  return chain::canonical_text(
             {{"payloadType", kPayloadType},
              {"payload", tokenizer::base64_encode(statement)},
              {"signatures", StatementJson::array({{{"keyid", key.public_key().fingerprint()},
                                                    {"sig", tokenizer::base64_encode(key.sign(text))}}})}}) +
         "\n";
}

std::map<std::string, std::string> texts_for_others(const PublicationManifest& m, const lab::LabState& state,
                                                    const std::string& licence,
                                                    const std::optional<bundle::SigningKey>& key) {
  const std::string statement = provenance_statement(m);
  return {{"ro-crate-metadata.json", research_crate(m, state, licence)},
          {"croissant.json", croissant(m, licence)},
          key ? std::pair<const std::string, std::string>{"provenance.intoto.jsonl",
                                                          signed_envelope(statement, *key)}
              : std::pair<const std::string, std::string>{"provenance.json", statement + "\n"}};
}

}  // namespace ostro::publication
