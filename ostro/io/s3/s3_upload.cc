// S3Client's uploads in parts.
#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/base/parallel.h"
#include "ostro/io/s3/s3_client.h"
#include "ostro/io/s3/s3_text.h"
#include "ostro/io/s3/s3_xml.h"

namespace ostro::io {
namespace {

constexpr int kPartsAtATime = 4;

}  // namespace

Result<std::string> S3Client::begin_upload(const S3Path& path, const std::string& write_id) {
  HttpRequest post = new_request("POST", path, "uploads=");
  post.headers.emplace_back("Content-Type: application/octet-stream");
  post.headers.push_back("x-amz-meta-ostro-write: " + write_id);
  std::string upload;
  RETURN_IF_ERROR(request(std::move(post), fmt::format("{}: beginning an upload", path.url()),
                          [&](const HttpResponse& r) -> Verdict {
                            Verdict verdict = written(r, {});
                            if (verdict.what != Verdict::kGood) return verdict;
                            upload = xml_value(r.body, "InitiateMultipartUploadResult", "UploadId");
                            if (upload.empty()) return {Verdict::kRetry, "the answer has no UploadId"};
                            return verdict;
                          }));
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
      request(std::move(put), fmt::format("{}: writing part {}, {} bytes", path.url(), number, bytes.size()),
              [&](const HttpResponse& r) { return written(r, {}); }));
  return header(response, "etag");
}

// Part 1 is what the object has now.
Result<std::string> S3Client::copy_part(const S3Path& path, const std::string& upload) {
  HttpRequest put =
      new_request("PUT", path, fmt::format("partNumber=1&uploadId={}", percent_encoded(upload, false)));
  put.headers.emplace_back("Content-Type: application/octet-stream");
  put.headers.push_back(
      fmt::format("x-amz-copy-source: /{}/{}", path.bucket, percent_encoded(path.key, true)));
  std::string etag;
  RETURN_IF_ERROR(request(std::move(put), fmt::format("{}: copying what is there", path.url()),
                          [&](const HttpResponse& r) -> Verdict {
                            Verdict verdict = written(r, {});
                            if (verdict.what != Verdict::kGood) return verdict;
                            etag = xml_value(r.body, "CopyPartResult", "ETag");
                            if (etag.empty()) return {Verdict::kRetry, "the answer has no ETag"};
                            return verdict;
                          }));
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
      });
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
                                        bool after_copy) {
  ASSIGN_OR_RETURN(const std::string upload, begin_upload(path, write_id));
  const int64_t size = static_cast<int64_t>(bytes.size()), first = after_copy ? 1 : 0;
  std::vector<std::string> etags(static_cast<size_t>(first + (size + kS3PartBytes - 1) / kS3PartBytes));
  const Status sent =
      parallel_for(static_cast<int64_t>(etags.size()), kPartsAtATime, [&](int64_t i) -> Status {
        std::string& etag = etags[static_cast<size_t>(i)];
        if (i < first) {
          ASSIGN_OR_RETURN(etag, copy_part(path, upload));
          return {};
        }
        const int64_t begin = (i - first) * kS3PartBytes;
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

Result<std::string> S3Client::extend(const S3Path& path, const std::string& etag,
                                     std::span<const std::byte> bytes, const std::string& write_id) {
  return put_parts(path, bytes, {S3Condition::kUnchanged, etag}, write_id, /*after_copy=*/true);
}

Status S3Client::abort_old_uploads(const S3Path& folder, int64_t seconds) {
  HttpRequest get = new_request("GET", {folder.bucket, ""},
                                "prefix=" + percent_encoded(folder.key + "/", false) + "&uploads=");
  get.max_body = int64_t{16} << 20;
  ASSIGN_OR_RETURN(const HttpResponse response,
                   request(std::move(get), fmt::format("{}: listing uploads", folder.url()),
                           [&](const HttpResponse& r) { return written(r, {}); }));
  ASSIGN_OR_RETURN(const auto unfinished, parse_s3_uploads(response.body));
  const auto now = parse_http_date(header(response, "date"));
  for (const S3Unfinished& one : unfinished)
    if (now && one.begun + seconds < *now) abort_upload({folder.bucket, one.key}, one.upload);
  return {};
}

}  // namespace ostro::io
