// S3Client's uploads in parts.
#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/base/parallel.h"
#include "ostro/objects/s3/s3_client.h"
#include "ostro/objects/s3/s3_xml.h"
#include "ostro/objects/web/http_text.h"

namespace ostro::objects {
namespace {

constexpr int kPartsAtATime = 4;
constexpr int kAbortsAtATime = 8;

}  // namespace

S3Client::Judge S3Client::gives(const S3Condition& condition, const char* root, const char* name,
                                std::string& out) const {
  return [this, condition, root, name, &out](const HttpResponse& r) -> Verdict {
    Verdict verdict = written(r, condition);
    if (verdict.what != Verdict::kGood) return verdict;
    out = xml_value(r.body, root, name);
    if (out.empty()) return {Verdict::kRetry, fmt::format("the answer has no {}", name)};
    return verdict;
  };
}

Result<std::string> S3Client::begin_upload(const S3Path& path, const std::string& write_id) {
  HttpRequest post = new_request("POST", path, "uploads=");
  post.headers.emplace_back("Content-Type: application/octet-stream");
  post.headers.push_back("x-amz-meta-ostro-write: " + write_id);
  std::string upload;
  RETURN_IF_ERROR(request(std::move(post), fmt::format("{}: beginning an upload", path.url()),
                          gives({}, "InitiateMultipartUploadResult", "UploadId", upload),
                          may_change(path, /*adds=*/true)));
  return upload;
}

Result<std::string> S3Client::put_part(const S3Path& path, const std::string& upload, int64_t number,
                                       std::span<const std::byte> bytes) {
  HttpRequest put = new_request(
      "PUT", path, fmt::format("partNumber={}&uploadId={}", number, percent_encoded(upload, false)));
  put.body = bytes;
  put.headers.emplace_back("Content-Type: application/octet-stream");
  ASSIGN_OR_RETURN(
      const HttpResponse response,
      request(
          std::move(put), fmt::format("{}: writing part {}, {} bytes", path.url(), number, bytes.size()),
          [&](const HttpResponse& r) { return written(r, {}); }, may_change(path, /*adds=*/true)));
  return header(response, "etag");
}

Result<std::string> S3Client::copy_part(const S3Path& path, const std::string& upload, int64_t number,
                                        int64_t parts, const S3Object& there) {
  const S3Condition unchanged{S3Condition::kUnchanged, there.etag};
  // Parts of one size: the last may not be small, since others follow it.
  const int64_t begin = there.size / parts * (number - 1),
                end = number == parts ? there.size : there.size / parts * number;
  HttpRequest put = new_request(
      "PUT", path, fmt::format("partNumber={}&uploadId={}", number, percent_encoded(upload, false)));
  put.headers.emplace_back("Content-Type: application/octet-stream");
  put.headers.push_back(
      fmt::format("x-amz-copy-source: /{}/{}", path.bucket, percent_encoded(path.key, true)));
  put.headers.push_back("x-amz-copy-source-if-match: " + there.etag);
  if (parts > 1) put.headers.push_back(fmt::format("x-amz-copy-source-range: bytes={}-{}", begin, end - 1));
  put.stall_seconds = kS3SlowSeconds;
  std::string etag;
  RETURN_IF_ERROR(request(std::move(put),
                          fmt::format("{}: copying bytes [{}, {}), which are there", path.url(), begin, end),
                          gives(unchanged, "CopyPartResult", "ETag", etag), may_change(path, /*adds=*/true)));
  return etag;
}

Result<std::string> S3Client::finish_upload(const S3Path& path, const std::string& upload,
                                            const std::vector<std::string>& part_etags,
                                            const S3Condition& condition, const std::string& write_id) {
  std::string body = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < part_etags.size(); ++i)
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, part_etags[i]);
  body += "</CompleteMultipartUpload>";
  HttpRequest post = new_request("POST", path, "uploadId=" + percent_encoded(upload, false));
  post.body = std::as_bytes(std::span(body));
  post.headers.emplace_back("Content-Type: application/xml");
  post.stall_seconds = kS3SlowSeconds;
  add_condition(post, condition);
  std::string etag;
  const auto response = request(
      std::move(post), fmt::format("{}: finishing an upload of {} parts", path.url(), part_etags.size()),
      [&](const HttpResponse& r) -> Verdict {
        Verdict verdict = written(r, condition);
        // The upload is gone: perhaps it was finished by a request whose answer was lost.
        if (verdict.what == Verdict::kFail && verdict.code == ErrorCode::kNotFound)
          return {Verdict::kFail, verdict.why, ErrorCode::kBusy};
        if (verdict.what != Verdict::kGood) return verdict;
        // Finishing takes a while, and the status is sent before: an error is in the body then.
        etag = xml_value(r.body, "CompleteMultipartUploadResult", "ETag");
        if (etag.empty())
          return {Verdict::kRetry, "the answer has no ETag: " + parse_s3_message(r.body).code};
        return verdict;
      },
      may_change(path, condition.kind == S3Condition::kAbsent));
  if (!response.ok()) return settle(path, write_id, response.error());
  return etag;
}

void S3Client::abort_upload(const S3Path& path, const std::string& upload) {
  const auto done = request(new_request("DELETE", path, "uploadId=" + percent_encoded(upload, false)),
                            fmt::format("{}: aborting an upload", path.url()),
                            [&](const HttpResponse& r) { return written(r, {}); });
  // What is left costs money until the bucket's rules remove it, and does no harm else.
  if (!done.ok() && done.error().code() != ErrorCode::kNotFound) log_warning(done.error().message());
}

Result<std::string> S3Client::put_parts(const S3Path& path, std::span<const std::byte> bytes,
                                        const S3Condition& condition, const std::string& write_id,
                                        const S3Object* there) {
  ASSIGN_OR_RETURN(const std::string upload, begin_upload(path, write_id));
  const int64_t size = static_cast<int64_t>(bytes.size());
  const int64_t copied = there == nullptr ? 0 : (there->size + options_.copy_bytes - 1) / options_.copy_bytes;
  std::vector<std::string> etags(static_cast<size_t>(copied + (size + kS3PartBytes - 1) / kS3PartBytes));
  const Status sent =
      parallel_for(static_cast<int64_t>(etags.size()), kPartsAtATime, [&](int64_t i) -> Status {
        std::string& etag = etags[static_cast<size_t>(i)];
        if (i < copied) {
          ASSIGN_OR_RETURN(etag, copy_part(path, upload, i + 1, copied, *there));
          return {};
        }
        const int64_t begin = (i - copied) * kS3PartBytes;
        const auto part = bytes.subspan(static_cast<size_t>(begin),
                                        static_cast<size_t>(std::min(kS3PartBytes, size - begin)));
        ASSIGN_OR_RETURN(etag, put_part(path, upload, i + 1, part));
        return {};
      });
  Result<std::string> finished =
      sent.ok() ? finish_upload(path, upload, etags, condition, write_id) : Result<std::string>(sent.error());
  if (!finished.ok()) abort_upload(path, upload);
  return finished;
}

Result<std::string> S3Client::extend(const S3Path& path, const S3Object& there,
                                     std::span<const std::byte> bytes, const std::string& write_id) {
  return put_parts(path, bytes, {S3Condition::kUnchanged, there.etag}, write_id, &there);
}

Status S3Client::abort_old_uploads(const S3Path& folder, int64_t seconds) {
  for (S3UploadsPage page;;) {
    // The signature requires the parameters in bytewise order of their names.
    std::string query =
        page.next_key.empty() ? "" : "key-marker=" + percent_encoded(page.next_key, false) + "&";
    query += "prefix=" + percent_encoded(folder.key + "/", false);
    if (!page.next_upload.empty()) query += "&upload-id-marker=" + percent_encoded(page.next_upload, false);
    HttpRequest get = new_request("GET", {folder.bucket, ""}, query + "&uploads=");
    get.max_body = int64_t{16} << 20;
    const std::string what = fmt::format("{}: listing uploads", folder.url());
    ASSIGN_OR_RETURN(const HttpResponse response,
                     request(std::move(get), what, [&](const HttpResponse& r) { return written(r, {}); }));
    const std::string last_key = page.next_key, last_upload = page.next_upload;
    ASSIGN_OR_RETURN(page, parse_s3_uploads(response.body));
    const auto now = parse_http_date(header(response, "date"));
    const auto& found = page.uploads;
    RETURN_IF_ERROR(
        parallel_for(static_cast<int64_t>(found.size()), kAbortsAtATime, [&](int64_t i) -> Status {
          const S3Unfinished& one = found[static_cast<size_t>(i)];
          if (now && one.begun + seconds < *now) abort_upload({folder.bucket, one.key}, one.upload);
          return {};
        }));
    if (page.next_key.empty()) return {};
    if (page.next_key == last_key && page.next_upload == last_upload)
      return corrupt(fmt::format("{}: the server gives the marker \"{}\" again", what, last_key));
  }
}

}  // namespace ostro::objects
