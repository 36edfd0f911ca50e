#include "ostro/publication/parts/manifest.h"

#include <fmt/format.h>

#include "ostro/chain/genesis_json.h"
#include "ostro/io/files/path.h"
#include "ostro/io/files/plain_path.h"

namespace ostro::publication {
namespace {

using Json = nlohmann::json;
using io::JsonFields;

constexpr const char* kPublicationFormat = "ostro publication";
constexpr int64_t kPublicationVersion = 1;

Json step_json(const PublishedStep& step) {
  Json out = {{"kind", step.kind}, {"fingerprint", step.fingerprint}, {"content", step.content}};
  if (!step.bundle.empty()) out["bundle"] = step.bundle;
  if (step.kind != "source") return out;
  out["licence"] = step.licence;
  out["files"] = Json::array();
  for (const PublishedFile& file : step.sources)
    out["files"].push_back({{"path", file.path}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  return out;
}

Result<PublishedStep> parse_step(const JsonFields& fields) {
  PublishedStep out;
  ASSIGN_OR_RETURN(out.kind, fields.string("kind"));
  ASSIGN_OR_RETURN(out.fingerprint, fields.sha256("fingerprint"));
  ASSIGN_OR_RETURN(out.content, fields.sha256("content"));
  if (fields.has("bundle")) {
    ASSIGN_OR_RETURN(out.bundle, fields.string("bundle"));
    if (!io::is_plain_path(out.bundle) || io::parent_path(out.bundle) != kBundlesFolder)
      return fields.bad("bundle",
                        fmt::format("is \"{}\", which is no folder of {}", out.bundle, kBundlesFolder));
  }
  if (out.kind != "source") return out;
  ASSIGN_OR_RETURN(out.licence, fields.string("licence"));
  ASSIGN_OR_RETURN(const Json* files, fields.array("files"));
  for (const Json& item : *files) {
    const JsonFields file(item, fields.where() + ": files");
    PublishedFile& one = out.sources.emplace_back();
    ASSIGN_OR_RETURN(one.path, file.string("path"));
    ASSIGN_OR_RETURN(one.sha256, file.sha256("sha256"));
    ASSIGN_OR_RETURN(one.bytes, file.integer("bytes", 0, INT64_MAX));
  }
  return out;
}

Status parse_files(const JsonFields& fields, PublicationManifest& out) {
  ASSIGN_OR_RETURN(const JsonFields files, fields.object("files"));
  ASSIGN_OR_RETURN(const Json* all, fields.get("files"));
  for (const auto& [path, value] : all->items()) {
    if (!is_listed(path)) return files.bad(path, "is a file that this list must not have");
    const JsonFields file(value, fmt::format("{}: {}", files.where(), path));
    bundle::FileSum& sum = out.files[path];
    ASSIGN_OR_RETURN(sum.bytes, file.integer("bytes", 0, INT64_MAX));
    ASSIGN_OR_RETURN(sum.sha256, file.sha256("sha256"));
  }
  return {};
}

}  // namespace

bool is_in_bundle(std::string_view path) { return path.starts_with(std::string(kBundlesFolder) + "/"); }

bool is_listed(std::string_view path) {
  return !is_in_bundle(path) && path != bundle::kSumsFile && path != kManifestFile &&
         !path.starts_with(std::string(kManifestFile) + ".");
}

std::string manifest_text(const PublicationManifest& m) {
  Json json = {{"format", kPublicationFormat},
               {"format_version", kPublicationVersion},
               {"lab", m.lab},
               {"question", m.question},
               {"plan", m.plan},
               {"lab_hash", m.lab_hash},
               {"journal", m.journal},
               {"registry", m.registry.empty() ? Json() : Json(m.registry)},
               {"steps", Json::object()},
               {"files", Json::object()},
               {"made_by", Json::parse(m.made_by, nullptr, /*allow_exceptions=*/false)}};
  for (const auto& [name, step] : m.steps) json["steps"][name] = step_json(step);
  for (const auto& [path, sum] : m.files)
    json["files"][path] = {{"bytes", sum.bytes}, {"sha256", sum.sha256}};
  return chain::canonical_text(json) + "\n";
}

Result<PublicationManifest> parse_manifest(std::string_view text, const std::string& path) {
  ASSIGN_OR_RETURN(const Json root, io::parse_json(text, path));
  const JsonFields fields(root, path);
  ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
  if (format != kPublicationFormat)
    return fields.bad("format", fmt::format("is \"{}\", not \"{}\"", format, kPublicationFormat));
  ASSIGN_OR_RETURN(const int64_t version, fields.integer("format_version", 1, INT64_MAX));
  if (version > kPublicationVersion)
    return unsupported(fmt::format("{}: \"format_version\" {} is later than the {} this version reads", path,
                                   version, kPublicationVersion));
  PublicationManifest out;
  ASSIGN_OR_RETURN(out.lab, fields.string("lab"));
  ASSIGN_OR_RETURN(out.question, fields.string("question"));
  ASSIGN_OR_RETURN(out.plan, fields.string("plan"));
  if (!io::is_plain_path(out.plan) || !is_listed(out.plan))
    return fields.bad("plan", fmt::format("is \"{}\", which is no file of this folder", out.plan));
  ASSIGN_OR_RETURN(out.lab_hash, fields.sha256("lab_hash"));
  ASSIGN_OR_RETURN(out.journal, fields.sha256("journal"));
  ASSIGN_OR_RETURN(const Json* registry, fields.get("registry"));
  if (!registry->is_null()) {
    ASSIGN_OR_RETURN(out.registry, fields.sha256("registry"));
  }
  ASSIGN_OR_RETURN(const JsonFields steps, fields.object("steps"));
  ASSIGN_OR_RETURN(const Json* all, fields.get("steps"));
  for (const auto& [name, value] : all->items()) {
    ASSIGN_OR_RETURN(out.steps[name],
                     parse_step(JsonFields(value, fmt::format("{}: {}", steps.where(), name))));
  }
  RETURN_IF_ERROR(parse_files(fields, out));
  ASSIGN_OR_RETURN(const Json* made_by, fields.get("made_by"));
  if (!made_by->is_object()) return fields.bad("made_by", "is not an object");
  out.made_by = chain::canonical_text(*made_by);
  if (manifest_text(out) != text)
    return corrupt(
        fmt::format("{}: is not the canonical JSON of its content (docs/reference/formats/publication.md): "
                    "it was edited, "
                    "or holds fields that this version does not know",
                    path));
  return out;
}

}  // namespace ostro::publication
