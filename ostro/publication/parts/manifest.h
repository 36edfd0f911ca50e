// PublicationManifest: publication.json, which says what a published lab holds
// (docs/reference/formats/publication.md).
//
// A value and pure functions. The text is canonical JSON (docs/reference/formats/chain.md, "Lines") and a
// line feed, so a publication.json has one text, over which it is signed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/bundle/parts/manifest.h"

namespace ostro::publication {

inline constexpr const char* kManifestFile = "publication.json";
inline constexpr const char* kPageFile = "README.md";
inline constexpr const char* kBundlesFolder = "bundles";
inline constexpr const char* kSiteFolder = "site";
inline constexpr const char* kRecordFile = "site/report/record.sqlite";

// A file of a source; the file itself is not published.
struct PublishedFile {
  std::string path, sha256;  // the path as seen from the plan's folder
  int64_t bytes = 0;
  bool operator==(const PublishedFile&) const = default;
};

struct PublishedStep {
  std::string kind, fingerprint, content;
  std::string bundle = {};                  // of a run: the folder of its bundle; empty: it has none
  std::string licence = {};                 // of a source
  std::vector<PublishedFile> sources = {};  // of a source, in the order in which they are read
  bool operator==(const PublishedStep&) const = default;
};

struct PublicationManifest {
  std::string lab, question;
  std::string plan;                              // path of the plan's file
  std::string lab_hash;                          // over fingerprints and contents of all steps
  std::string journal;                           // hash of its last line
  std::string registry;                          // the same; empty: nothing was registered
  std::map<std::string, PublishedStep> steps;    // by name
  std::map<std::string, bundle::FileSum> files;  // by path, without the files of bundles
  std::string made_by = "{}";                    // canonical JSON: the program that published
  bool operator==(const PublicationManifest&) const = default;
};

// Whether the path lies in a bundle, whose own manifest lists it.
bool is_in_bundle(std::string_view path);
// Whether publication.json lists the path: a file that is neither in a bundle nor made of its text.
bool is_listed(std::string_view path);

std::string manifest_text(const PublicationManifest& manifest);
// Reads the text of the file at `path`. Errors: kCorrupt, with the field, or for a text that is not
// canonical; kUnsupported for a later format.
Result<PublicationManifest> parse_manifest(std::string_view text, const std::string& path);

}  // namespace ostro::publication
