// S3Client's writes of whole objects: conditional, and settled when an answer was lost.
#include <fmt/core.h>

#include "ostro/objects/s3/s3_client.h"
#include "ostro/objects/web/http_text.h"

namespace ostro::objects {

void add_condition(HttpRequest& request, const S3Condition& condition) {
  if (condition.kind == S3Condition::kAbsent) request.headers.emplace_back("If-None-Match: *");
  if (condition.kind == S3Condition::kUnchanged) request.headers.push_back("If-Match: " + condition.etag);
}

S3Client::Verdict S3Client::written(const HttpResponse& response, const S3Condition& condition) const {
  if (response.status / 100 == 2 && response.failure.empty()) return {};
  Verdict verdict = refusal(response, /*reads=*/false);
  if (condition.kind == S3Condition::kAlways) return verdict;
  // 409: another conditional write to the object is under way.
  if (response.status == 409) return {Verdict::kRetry, verdict.why};
  if (response.status == 412 || (response.status == 404 && condition.kind == S3Condition::kUnchanged))
    return {Verdict::kFail, fmt::format("status {}", response.status), ErrorCode::kBusy};
  if (verdict.code == ErrorCode::kUnsupported)
    verdict.why += "; a run needs a server with conditional writes (If-Match, If-None-Match)";
  return verdict;
}

// A condition did not hold. If the object is of this very write, it was done, and the answer was lost.
Result<std::string> S3Client::settle(const S3Path& path, const std::string& write_id, const Error& error) {
  if (error.code() != ErrorCode::kBusy) return error;
  const Result<S3Object> there = head(path);
  if (there.ok() && there->write_id == write_id) return there->etag;
  if (there.ok())
    return busy(fmt::format("{}: another process has written it since it was read", path.url()));
  if (there.error().code() != ErrorCode::kNotFound) return there.error();
  return busy(fmt::format("{}: was removed by another process", path.url()));
}

Result<std::string> S3Client::put(const S3Path& path, std::span<const std::byte> bytes,
                                  const S3Condition& condition, const std::string& write_id) {
  if (static_cast<int64_t>(bytes.size()) <= 2 * kS3PartBytes)
    return put_whole(path, bytes, condition, write_id,
                     may_change(path, condition.kind == S3Condition::kAbsent));
  return put_parts(path, bytes, condition, write_id, /*there=*/nullptr);
}

Result<std::string> S3Client::put_lock(const S3Path& path, std::string_view text,
                                       const S3Condition& condition, const std::string& write_id) {
  return put_whole(path, std::as_bytes(std::span(text)), condition, write_id, {});
}

Result<std::string> S3Client::put_whole(const S3Path& path, std::span<const std::byte> bytes,
                                        const S3Condition& condition, const std::string& write_id,
                                        const MayGoOn& may_go_on) {
  HttpRequest put = new_request("PUT", path, "");
  put.body = bytes;
  put.headers.emplace_back("Content-Type: application/octet-stream");
  put.headers.push_back("x-amz-meta-ostro-write: " + write_id);
  add_condition(put, condition);
  const auto response = request(
      std::move(put), fmt::format("{}: writing {} bytes", path.url(), bytes.size()),
      [&](const HttpResponse& r) { return written(r, condition); }, may_go_on);
  if (!response.ok()) return settle(path, write_id, response.error());
  return header(*response, "etag");
}

Status S3Client::copy(const S3Path& from, const S3Path& to) {
  HttpRequest put = new_request("PUT", to, "");
  put.headers.emplace_back("Content-Type: application/octet-stream");
  put.headers.push_back(
      fmt::format("x-amz-copy-source: /{}/{}", from.bucket, percent_encoded(from.key, true)));
  put.stall_seconds = kS3SlowSeconds;
  const auto response = request(
      std::move(put), fmt::format("{}: copying {}", to.url(), from.url()),
      [&](const HttpResponse& r) -> Verdict {
        Verdict verdict = written(r, {});
        // An error that came after the status had been sent is in the body.
        if (verdict.what == Verdict::kGood && r.body.find("<Error>") != std::string::npos)
          return {Verdict::kRetry, r.body};
        return verdict;
      },
      may_change(to, /*adds=*/false));
  return response.ok() ? Status() : Status(response.error());
}

Status S3Client::remove(const S3Path& path) {
  const auto response = request(
      new_request("DELETE", path, ""), fmt::format("{}: removing", path.url()),
      [&](const HttpResponse& r) { return written(r, {}); }, may_change(path, /*adds=*/false));
  if (response.ok() || response.error().code() == ErrorCode::kNotFound) return {};
  return response.error();
}

}  // namespace ostro::objects
