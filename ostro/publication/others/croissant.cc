// croissant.json: the files of the sources, which are named by their hashes and not published.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/publication/others/others.h"

namespace ostro::publication {
namespace {

using CroissantJson = nlohmann::ordered_json;

// The terms of Croissant 1.0 that this file uses.
CroissantJson context() {
  return {{"@language", "en"},
          {"@vocab", "https://schema.org/"},
          {"citeAs", "cr:citeAs"},
          {"column", "cr:column"},
          {"conformsTo", "dct:conformsTo"},
          {"cr", "http://mlcommons.org/croissant/"},
          {"rai", "http://mlcommons.org/croissant/RAI/"},
          {"data", {{"@id", "cr:data"}, {"@type", "@json"}}},
          {"dataType", {{"@id", "cr:dataType"}, {"@type", "@vocab"}}},
          {"dct", "http://purl.org/dc/terms/"},
          {"examples", {{"@id", "cr:examples"}, {"@type", "@json"}}},
          {"extract", "cr:extract"},
          {"field", "cr:field"},
          {"fileProperty", "cr:fileProperty"},
          {"fileObject", "cr:fileObject"},
          {"fileSet", "cr:fileSet"},
          {"format", "cr:format"},
          {"includes", "cr:includes"},
          {"isLiveDataset", "cr:isLiveDataset"},
          {"jsonPath", "cr:jsonPath"},
          {"key", "cr:key"},
          {"md5", "cr:md5"},
          {"parentField", "cr:parentField"},
          {"path", "cr:path"},
          {"recordSet", "cr:recordSet"},
          {"references", "cr:references"},
          {"regex", "cr:regex"},
          {"repeated", "cr:repeated"},
          {"replace", "cr:replace"},
          {"sc", "https://schema.org/"},
          {"separator", "cr:separator"},
          {"source", "cr:source"},
          {"subField", "cr:subField"},
          {"transform", "cr:transform"}};
}

std::string media_type(const std::string& path) {
  const auto ends = [&](const char* end) { return path.ends_with(end); };
  if (ends(".jsonl") || ends(".ndjson")) return "application/jsonlines";
  if (ends(".json")) return "application/json";
  if (ends(".parquet")) return "application/x-parquet";
  if (ends(".html") || ends(".htm")) return "text/html";
  if (ends(".gz")) return "application/gzip";
  return ends(".zst") ? "application/zstd" : "text/plain";
}

}  // namespace

std::string croissant(const PublicationManifest& m, const std::string& licence) {
  CroissantJson files = CroissantJson::array(), licences = CroissantJson::array();
  int64_t number = 0;
  for (const auto& [name, step] : m.steps) {
    if (step.kind != "source") continue;
    if (std::find(licences.begin(), licences.end(), CroissantJson(step.licence)) == licences.end())
      licences.push_back(step.licence);
    for (const PublishedFile& file : step.sources)
      files.push_back({{"@type", "cr:FileObject"},
                       {"@id", fmt::format("file-{}", ++number)},
                       {"name", fmt::format("{}: {}", name, file.path)},
                       {"contentUrl", file.path},
                       {"contentSize", fmt::format("{} B", file.bytes)},
                       {"encodingFormat", media_type(file.path)},
                       {"sha256", file.sha256}});
  }
  CroissantJson out = {{"@context", context()},
                       {"@type", "sc:Dataset"},
                       {"conformsTo", "http://mlcommons.org/croissant/1.0"},
                       {"name", m.lab},
                       {"description", m.question},
                       {"license", licences},
                       {"version", "1.0.0"},
                       {"citeAs", "sha256:" + m.lab_hash},
                       {"distribution", files}};
  if (licences.empty() && !licence.empty()) out["license"] = licence;
  return out.dump(1) + "\n";
}

}  // namespace ostro::publication
