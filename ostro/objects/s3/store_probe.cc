#include "ostro/objects/s3/store_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "ostro/io/files/path.h"
#include "ostro/objects/s3/write_id.h"

namespace ostro::objects {
namespace {

constexpr int kProbeAttempts = 3;
constexpr int64_t kProbeMs = 30'000;
constexpr std::string_view kProbeText = "a check of the cluster\n";
constexpr const char* kTagOfNone = "\"00000000000000000000000000000000\"";

std::string server_of(const S3Options& options) {
  return options.endpoint.empty() ? fmt::format("Amazon's server of {}", options.region) : options.endpoint;
}

class Probe {
 public:
  Probe(S3Client& client, const S3Path& folder, const std::string& name)
      : client_(client), folder_(folder), path_(below(name)), server_(server_of(client.options())) {}

  Result<StoreProbe> run(const std::string& marker) {
    StoreProbe out{.server = server_};
    RETURN_IF_ERROR(conditional_writes());
    const Status read = reads();
    if (read.ok() && !marker.empty()) {
      const auto there = client_.head(below(marker));
      if (!there.ok() && there.error().code() != ErrorCode::kNotFound) return cleaned(there.error());
      out.seen = there.ok();
    }
    if (!read.ok()) return cleaned(read.error());
    if (const Status gone = client_.remove(path_); !gone.ok()) return advised(gone.error());
    const auto there = client_.head(path_);
    if (there.ok())
      return io_error(fmt::format("{}: is still there after {} was told to remove it", path_.url(), server_));
    if (there.error().code() != ErrorCode::kNotFound) return advised(there.error());
    out.keys = client_.credentials().place();
    return out;
  }

 private:
  S3Path below(const std::string& name) const { return {folder_.bucket, io::join_path(folder_.key, name)}; }

  Result<std::string> write(const S3Condition& condition, const std::string& id) {
    return client_.put(path_, std::as_bytes(std::span(kProbeText)), condition, id);
  }

  // What is left of a probe that failed goes, if it can.
  Error cleaned(const Error& error) {
    (void)client_.remove(path_);
    return advised(error);
  }

  Error advised(const Error& error) const {
    const std::string& said = error.message();
    const auto has = [&](const char* words) { return said.find(words) != std::string::npos; };
    std::string advice;
    if (has("NoSuchBucket") || error.code() == ErrorCode::kNotFound)
      advice = fmt::format("is there a bucket {} at {}? Make it (aws s3 mb s3://{}), or name another one",
                           folder_.bucket, server_, folder_.bucket);
    else if (has("had no keys"))
      advice = "give this machine keys (docs/reference/sources.md)";
    else if (has("status 403") || has("status 401"))
      advice = fmt::format(
          "the keys need s3:ListBucket of {}, and s3:GetObject, s3:PutObject and s3:DeleteObject below {}",
          folder_.bucket, folder_.url());
    else if (has("given up after"))
      advice = fmt::format("does this machine reach {} (AWS_ENDPOINT_URL, proxies, a firewall)?", server_);
    return advice.empty() ? error : Error(error.code(), fmt::format("{}; {}", said, advice));
  }

  Error refuse(const std::string& what) const {
    return unsupported(
        fmt::format("{}: the server {} {}, so two processes could write one run at a time without seeing it; "
                    "use a server with conditional writes, or a run directory on a disk",
                    path_.url(), server_, what));
  }

  Status conditional_writes() {
    const std::string id = new_write_id();
    const auto put = write({S3Condition::kAbsent}, id);
    if (!put.ok()) return advised(put.error());
    const auto there = client_.head(path_);
    if (!there.ok()) return cleaned(there.error());
    if (there->write_id != id) return cleaned(refuse("keeps no metadata (x-amz-meta-ostro-write)"));
    for (const S3Condition& fails :
         {S3Condition{S3Condition::kAbsent}, {S3Condition::kUnchanged, kTagOfNone}}) {
      const auto again = write(fails, new_write_id());
      if (again.ok())
        return cleaned(refuse(
            fmt::format("ignores {}", fails.kind == S3Condition::kAbsent ? "If-None-Match" : "If-Match")));
      if (again.error().code() != ErrorCode::kBusy) return cleaned(again.error());
    }
    return {};
  }

  // Errors are not advised yet.
  Status reads() {
    const auto there = client_.head(path_);
    if (!there.ok()) return there.error();
    std::string text(kProbeText.size(), '\0');
    if (there->size != static_cast<int64_t>(text.size()))
      return corrupt(
          fmt::format("{}: has {} bytes, and {} were written", path_.url(), there->size, text.size()));
    RETURN_IF_ERROR(client_.get(path_, 0, std::as_writable_bytes(std::span(text)), *there));
    if (text != kProbeText) return corrupt(fmt::format("{}: has other bytes than were written", path_.url()));
    const auto listed = client_.list(folder_, /*first_only=*/true);
    if (!listed.ok()) return listed.error();
    if (listed->files.empty() && listed->folders.empty())
      return corrupt(
          fmt::format("{}: its listing has nothing, and {} was written", folder_.url(), path_.url()));
    return {};
  }

  S3Client& client_;
  const S3Path folder_, path_;
  const std::string server_;
};

}  // namespace

Result<StoreProbe> probe_store(S3Client& client, const S3Path& folder, const std::string& name,
                               const std::string& marker) {
  return Probe(client, folder, name).run(marker);
}

Result<StoreProbe> probe_store_from_environment(const std::string& url, const std::string& name,
                                                const std::string& marker) {
  ASSIGN_OR_RETURN(const S3Path folder, parse_s3_path(url));
  ASSIGN_OR_RETURN(S3Options options, s3_options_of_process());
  options.retry.attempts = std::min(options.retry.attempts, kProbeAttempts);
  options.retry.max_total_ms = std::min(options.retry.max_total_ms, kProbeMs);
  const auto http = curl_client(
      {.region = options.region, .ca_bundle = options.ca_bundle, .stall_seconds = options.stall_seconds});
  S3Client client(options, *http, system_retry_clock());
  return probe_store(client, folder, name, marker);
}

}  // namespace ostro::objects
