// S3Client: the part of the S3 protocol that is needed here: object information, ranges of objects, listings;
// conditional writes, uploads in parts, copies within the server, removals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/objects/web/credentials.h"
#include "ostro/objects/web/http.h"
#include "ostro/objects/web/retry.h"

namespace ostro::objects {

// Keys, endpoint and limits of a server.
struct S3Options {
  CredentialPlaces credentials;
  std::string region = "us-east-1";
  // "http://host:port", with buckets as path components; empty: Amazon's server of the region
  std::string endpoint;
  std::string ca_bundle;
  int64_t stall_seconds = 30;
  int64_t lease_seconds = 30;               // of a lock: how long a holder that is silent keeps it
  int64_t copy_bytes = int64_t{512} << 20;  // that the server copies in one request; at least kS3PartBytes
  RetryPolicy retry;
};

// Reads the variables of credential_places() and region_of(), AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL),
// AWS_CA_BUNDLE, AWS_MAX_ATTEMPTS, OSTRO_S3_STALL_SECONDS and OSTRO_S3_LEASE_SECONDS
// through `get`, which returns "" for a variable that is not set. Errors name the variable.
Result<S3Options> s3_options(const std::function<std::string(const char*)>& get);
// Those of this process's environment.
Result<S3Options> s3_options_of_process();

// "s3://bucket/key"; the key has no "/" at its ends and may be empty.
struct S3Path {
  std::string bucket, key;
  std::string url() const { return key.empty() ? "s3://" + bucket : "s3://" + bucket + "/" + key; }
};
// Parses a URL that begins with s3://; kInvalidArgument when it names no bucket.
Result<S3Path> parse_s3_path(const std::string& url);

struct S3Object {
  int64_t size = 0;
  int64_t modified = 0;  // seconds since 1970
  std::string etag;
  std::string write_id = {};  // of the write that made it; not in listings
  int64_t answered = 0;       // when the server said so, by its own clock, seconds since 1970; 0: not known
};

struct S3Listing {
  struct File {
    std::string name;
    S3Object object;
  };
  std::vector<File> files;           // files directly in the folder
  std::vector<std::string> folders;  // names up to the next "/"
};

// When a write takes place. Where it does not, because another process has written, the error is kBusy.
struct S3Condition {
  enum Kind { kAlways, kAbsent, kUnchanged } kind = kAlways;
  std::string etag = {};  // kUnchanged: the ETag that the object must have
};

// Adds the header field that asks for it.
void add_condition(HttpRequest& request, const S3Condition& condition);

inline constexpr int64_t kS3PartBytes = int64_t{8} << 20;  // a part of an upload, all but the last
inline constexpr int64_t kS3SlowSeconds = 600;  // in which a server that copies may say next to nothing

// Reads and writes objects. Every call repeats failures that may be temporary, as RetryPolicy says: no
// connection, resets, timeouts, status 408, 429 and 5xx, bodies and ranges that were not asked for. If it
// still fails, the error names the object, the range, the last failure and the number of attempts. Status
// 403, other refusals and 404 (kNotFound) are errors at once, and so are 501 and 505 (kUnsupported). Keys
// that have expired are read again, once a request. Thread-safe.
//
// A write has an id, which the object keeps as x-amz-meta-ostro-write. When the answer to a conditional write
// is lost, repeating it fails, because the object is there: the id then says whose write that was.
class S3Client {
 public:
  // `http` and `clock` must outlive the client.
  S3Client(S3Options options, HttpClient& http, RetryClock& clock)
      : options_(std::move(options)),
        http_(http),
        clock_(clock),
        credentials_(options_.credentials, http, clock) {}

  // Asked before each attempt of a request that changes the object at `path`, so also before each repeat: an
  // error is the request's result. `adds`: what is there stays in any case, since the request puts an object
  // only where none is, or a part of an upload. Locks and the end of an upload are not asked about. Set it
  // before the first request.
  using MayChange = std::function<Status(const S3Path& path, bool adds)>;
  void ask_before_changes(MayChange may_change) { may_change_ = std::move(may_change); }

  Result<S3Object> head(const S3Path& path);
  // Fills `out` with the bytes from `begin` on. `object` is a result of head() or list(); kCorrupt when the
  // object has another ETag now.
  Status get(const S3Path& path, int64_t begin, std::span<std::byte> out, const S3Object& object,
             std::stop_token stop = {});
  // The entries directly in a folder (key "": the bucket), from all pages of the listing. With `first_only`,
  // at most the first entry.
  Result<S3Listing> list(const S3Path& folder, bool first_only = false);

  // Writes an object, large ones in parts. Returns its ETag. Of an upload that fails nothing is left.
  Result<std::string> put(const S3Path& path, std::span<const std::byte> bytes, const S3Condition& condition,
                          const std::string& write_id);
  // As put(), of the object of a lock, which decides about other writes.
  Result<std::string> put_lock(const S3Path& path, std::string_view text, const S3Condition& condition,
                               const std::string& write_id);
  // Adds bytes at the end of an object of at least kS3PartBytes, which must still have this ETag and size.
  // The server copies what is there. Returns the new ETag.
  Result<std::string> extend(const S3Path& path, const S3Object& there, std::span<const std::byte> bytes,
                             const std::string& write_id);
  // The parts of put(), for content that comes bit by bit. Parts count from 1; all but the last have
  // kS3PartBytes.
  Result<std::string> begin_upload(const S3Path& path, const std::string& write_id);
  Result<std::string> put_part(const S3Path& path, const std::string& upload, int64_t number,
                               std::span<const std::byte> bytes);
  Result<std::string> finish_upload(const S3Path& path, const std::string& upload,
                                    const std::vector<std::string>& part_etags, const S3Condition& condition,
                                    const std::string& write_id);
  void abort_upload(const S3Path& path, const std::string& upload);
  // Aborts uploads below a folder that were begun more than `seconds` ago: their parts cost money. Error:
  // kUnsupported, of a server that does not list them.
  Status abort_old_uploads(const S3Path& folder, int64_t seconds);

  // Copies an object of at most 5 GiB within the server.
  Status copy(const S3Path& from, const S3Path& to);
  // No error when there is none.
  Status remove(const S3Path& path);

  // Ends all requests, those to come too, with an error; for the end of the process.
  void stop() {
    stop_.request_stop();
    credentials_.stop();
  }

  const S3Options& options() const { return options_; }
  RetryClock& clock() { return clock_; }
  const Credentials& credentials() const { return credentials_; }

 private:
  // The judgement of an answer.
  struct Verdict {
    enum { kGood, kRetry, kFail } what = kGood;
    std::string why;  // "status 503 (SlowDown: ...)"
    ErrorCode code = ErrorCode::kIo;
  };
  using Judge = std::function<Verdict(const HttpResponse&)>;
  using MayGoOn = std::function<Status()>;
  Result<HttpResponse> request(HttpRequest request, const std::string& what, const Judge& judge,
                               const MayGoOn& may_go_on = {});
  MayGoOn may_change(const S3Path& path, bool adds) const {
    return [this, path, adds] { return may_change_ ? may_change_(path, adds) : Status(); };
  }
  Verdict refusal(const HttpResponse& response, bool reads = true) const;
  // Good when the status is a success. A condition that does not hold is kBusy.
  Verdict written(const HttpResponse& response, const S3Condition& condition) const;
  // written(), and the element `name` of the answer `root` goes to `out`: an answer without it is asked for
  // again.
  Judge gives(const S3Condition& condition, const char* root, const char* name, std::string& out) const;
  HttpRequest new_request(const char* method, const S3Path& path, const std::string& query) const;
  Result<std::string> put_whole(const S3Path& path, std::span<const std::byte> bytes,
                                const S3Condition& condition, const std::string& write_id,
                                const MayGoOn& may_go_on);
  // `there`: if not null, what the object has comes first.
  Result<std::string> put_parts(const S3Path& path, std::span<const std::byte> bytes,
                                const S3Condition& condition, const std::string& write_id,
                                const S3Object* there);
  // Part `number`, from 1, of `parts` that are what the object has.
  Result<std::string> copy_part(const S3Path& path, const std::string& upload, int64_t number, int64_t parts,
                                const S3Object& there);
  Result<std::string> settle(const S3Path& path, const std::string& write_id, const Error& error);

  const S3Options options_;
  HttpClient& http_;
  RetryClock& clock_;
  Credentials credentials_;
  MayChange may_change_;
  std::stop_source stop_;
};

}  // namespace ostro::objects
