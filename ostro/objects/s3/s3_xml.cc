#include "ostro/objects/s3/s3_xml.h"

#include <fmt/core.h>

#include <pugixml.hpp>

#include "ostro/objects/web/http_text.h"

namespace ostro::objects {
namespace {

Error bad_page(const std::string& what) { return corrupt(fmt::format("the answer is no listing: {}", what)); }

}  // namespace

S3Message parse_s3_message(std::string_view body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return {};
  const pugi::xml_node error = document.child("Error");
  return {error.child_value("Code"), error.child_value("Message")};
}

std::string xml_value(std::string_view body, const char* root, const char* child) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return "";
  return document.child(root).child_value(child);
}

Result<S3UploadsPage> parse_s3_uploads(std::string_view body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size()) || !document.child("ListMultipartUploadsResult"))
    return corrupt("the answer is no ListMultipartUploadsResult");
  const pugi::xml_node root = document.child("ListMultipartUploadsResult");
  S3UploadsPage out;
  for (const pugi::xml_node entry : root.children("Upload"))
    if (const auto begun = parse_iso_date(entry.child_value("Initiated")))
      out.uploads.push_back({entry.child_value("Key"), entry.child_value("UploadId"), *begun});
  if (root.child("IsTruncated").text().as_bool()) {
    out.next_key = root.child_value("NextKeyMarker");
    out.next_upload = root.child_value("NextUploadIdMarker");
  }
  return out;
}

Result<S3Page> parse_s3_page(std::string_view body, std::string_view prefix) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(body.data(), body.size(), pugi::parse_default | pugi::parse_ws_pcdata);
  if (!parsed) return bad_page(fmt::format("{} at byte {}", parsed.description(), parsed.offset));
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return bad_page("it has no ListBucketResult");
  const auto below = [prefix](std::string_view key) -> std::optional<std::string> {
    if (!key.starts_with(prefix)) return std::nullopt;
    return std::string(key.substr(prefix.size()));
  };
  S3Page page;
  for (const pugi::xml_node entry : root.children("Contents")) {
    const auto name = below(entry.child_value("Key"));
    const auto modified = parse_iso_date(entry.child_value("LastModified"));
    const int64_t size = entry.child("Size").text().as_llong(-1);
    if (!name || !modified || size < 0)
      return bad_page(fmt::format("the entry of \"{}\" has no valid Key, Size or LastModified",
                                  entry.child_value("Key")));
    if (name->empty()) continue;  // an empty object that marks the folder itself
    page.listing.files.push_back({*name, {size, *modified, entry.child_value("ETag")}});
  }
  for (const pugi::xml_node entry : root.children("CommonPrefixes")) {
    auto name = below(entry.child_value("Prefix"));
    if (!name || !name->ends_with('/'))
      return bad_page(fmt::format("the prefix \"{}\" is not a folder", entry.child_value("Prefix")));
    name->pop_back();
    if (!name->empty()) page.listing.folders.push_back(std::move(*name));  // empty: keys with "//"
  }
  if (root.child("IsTruncated").text().as_bool()) {
    page.next_token = root.child_value("NextContinuationToken");
    if (page.next_token.empty()) return bad_page("it is cut, and has no NextContinuationToken");
  }
  return page;
}

}  // namespace ostro::objects
