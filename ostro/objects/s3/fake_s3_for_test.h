// FakeS3, FakeClock: an S3 server as a function, and a clock that only sleeping moves, for tests.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ostro/objects/web/http.h"
#include "ostro/objects/web/retry.h"

namespace ostro::objects {

// Read `now` and `sleeps` when no request is under way: prefetches run in threads of their own.
class FakeClock final : public RetryClock {
 public:
  int64_t now_ms() override {
    const std::lock_guard lock(mutex_);
    return now;
  }
  void sleep_ms(int64_t ms, std::stop_token) override {
    const std::lock_guard lock(mutex_);
    now += ms;
    sleeps.push_back(ms);
  }
  int64_t outside_ms() override {
    const std::lock_guard lock(mutex_);
    return now + asleep;
  }
  // The machine stands still, and what measures its own time does not see that.
  void stand_still(int64_t ms) {
    const std::lock_guard lock(mutex_);
    asleep += ms;
  }
  int64_t now = 0, asleep = 0;
  std::vector<int64_t> sleeps;

 private:
  std::mutex mutex_;
};

// Answers for the endpoint http://s3 from `objects` ("bucket/key" to content), in pages of `page` entries.
// The next answers go through `faults` first, one each. Thread-safe.
class FakeS3 final : public HttpClient {
 public:
  std::map<std::string, std::string> objects;
  std::map<std::string, std::string> write_ids;               // of objects
  std::map<std::string, std::map<int, std::string>> uploads;  // "bucket/key" to the parts of its upload
  std::string date;                                           // of answers to HEAD, when not empty
  std::string ignored;                                        // a condition that is not looked at: "If-Match"
  std::vector<std::string> unfinished;                        // keys of old uploads, in pages of two
  std::function<void(const std::string& line)> before;  // is told each line of the log before it is done
  size_t page = 3;
  std::deque<std::function<void(HttpResponse&)>> faults;
  std::vector<std::string> log;  // "GET bucket/key bytes=0-3"
  std::vector<HttpRequest> requests;

  HttpResponse perform(const HttpRequest& request) override {
    const std::lock_guard lock(mutex_);
    requests.push_back(request);
    HttpResponse response = answer(request);
    if (!faults.empty()) {
      const auto fault = std::move(faults.front());
      faults.pop_front();
      fault(response);
    }
    return response;
  }

  static std::string etag(const std::string& content) {
    return "\"" + std::to_string(std::hash<std::string>()(content)) + "\"";
  }

 private:
  static std::string decoded(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%') {
        out += text[i];
        continue;
      }
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    }
    return out;
  }

  HttpResponse answer(const HttpRequest& request) {
    const std::string root = "http://s3/";
    REQUIRE(request.url.starts_with(root));
    const size_t question = request.url.find('?');
    const std::string path = decoded(request.url.substr(root.size(), question - root.size()));
    std::string range, match;
    for (const std::string& header : request.headers) {
      if (header.starts_with("Range: ")) range = header.substr(7);
      if (header.starts_with("If-Match: ")) match = header.substr(10);
    }
    log.push_back(request.method + " " + path + (range.empty() ? "" : " " + range));
    if (before) before(log.back());
    if (request.method != "GET" && request.method != "HEAD")
      return change(request, path, question == std::string::npos ? "" : request.url.substr(question + 1));
    if (question != std::string::npos) return listing(path, request.url.substr(question + 1));
    const auto found = objects.find(path);
    if (found == objects.end()) return refusal(404, "NoSuchKey", request.method);
    const std::string& content = found->second;
    if (!match.empty() && match != etag(content)) return refusal(412, "PreconditionFailed", request.method);
    HttpResponse response{.status = 200};
    response.headers = {{"etag", etag(content)},
                        {"last-modified", "Mon, 12 Oct 2009 17:50:30 GMT"},
                        {"content-length", std::to_string(content.size())},
                        {"x-amz-meta-ostro-write", write_ids[path]}};
    if (!date.empty()) response.headers["date"] = date;
    if (request.method == "HEAD") return response;
    size_t begin = 0, last = content.size() - 1;
    REQUIRE(sscanf(range.c_str(), "bytes=%zu-%zu", &begin, &last) == 2);
    response.status = 206;
    response.body = content.substr(begin, last + 1 - begin);
    response.headers["content-range"] =
        "bytes " + std::to_string(begin) + "-" + std::to_string(last) + "/" + std::to_string(content.size());
    return response;
  }

  static HttpResponse refusal(int status, const std::string& code, const std::string& method) {
    HttpResponse response{.status = status};
    if (method != "HEAD")
      response.body =
          "<?xml version=\"1.0\"?>\n<Error><Code>" + code + "</Code><Message>No.</Message></Error>";
    return response;
  }

  std::string field(const HttpRequest& request, const std::string& name) const {
    if (name == ignored) return "";
    for (const std::string& header : request.headers)
      if (header.starts_with(name + ": ")) return header.substr(name.size() + 2);
    return "";
  }

  HttpResponse change(const HttpRequest& request, const std::string& path, const std::string& query) {
    if (request.method == "DELETE") {
      if (query.empty()) objects.erase(path);
      if (!query.empty()) uploads.erase(path);
      return {.status = 204};
    }
    std::string body(reinterpret_cast<const char*>(request.body.data()), request.body.size());
    if (query == "uploads=") {
      uploads[path] = {};
      write_ids[path + "?"] = field(request, "x-amz-meta-ostro-write");
      HttpResponse response{.status = 200};
      response.body = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
      return response;
    }
    const std::string source = decoded(field(request, "x-amz-copy-source"));
    if (!source.empty() && !objects.contains(source.substr(1))) return refusal(404, "NoSuchKey", "PUT");
    if (!source.empty()) body = objects[source.substr(1)];
    const std::string source_match = field(request, "x-amz-copy-source-if-match");
    if (!source_match.empty() && source_match != etag(body)) return refusal(412, "PreconditionFailed", "PUT");
    size_t begin = 0, last = 0;
    if (sscanf(field(request, "x-amz-copy-source-range").c_str(), "bytes=%zu-%zu", &begin, &last) == 2)
      body = body.substr(begin, last + 1 - begin);
    HttpResponse response{.status = 200};
    response.headers["etag"] = etag(body);
    response.body = "<CopyPartResult><ETag>" + etag(body) + "</ETag></CopyPartResult>";
    if (query.starts_with("partNumber=")) {
      if (!uploads.contains(path)) return refusal(404, "NoSuchUpload", "PUT");
      uploads[path][std::stoi(query.substr(11))] = body;
      return response;
    }
    const std::string match = field(request, "If-Match");
    const auto there = objects.find(path);
    if (!match.empty() && there == objects.end()) return refusal(404, "NoSuchKey", "PUT");
    if ((!match.empty() && match != etag(there->second)) ||
        (!field(request, "If-None-Match").empty() && there != objects.end()))
      return refusal(412, "PreconditionFailed", "PUT");
    write_ids[path] = field(request, "x-amz-meta-ostro-write");
    if (query.starts_with("uploadId=")) {
      if (!uploads.contains(path)) return refusal(404, "NoSuchUpload", "POST");
      body.clear();
      for (const auto& [number, part] : uploads[path]) body += part;
      uploads.erase(path);
      write_ids[path] = write_ids[path + "?"];
      response.body =
          "<CompleteMultipartUploadResult><ETag>" + etag(body) + "</ETag></CompleteMultipartUploadResult>";
    }
    objects[path] = body;
    return response;
  }

  HttpResponse listing(const std::string& path, const std::string& query) {
    std::map<std::string, std::string> values;
    for (size_t begin = 0; begin < query.size();) {
      const size_t end = std::min(query.find('&', begin), query.size()), equal = query.find('=', begin);
      values[query.substr(begin, equal - begin)] = decoded(query.substr(equal + 1, end - equal - 1));
      begin = end + 1;
    }
    if (values.contains("uploads")) {
      const auto from = std::upper_bound(unfinished.begin(), unfinished.end(), values["key-marker"]);
      const auto end = unfinished.end() - from > 2 ? from + 2 : unfinished.end();
      std::string rows;
      for (auto at = from; at != end; ++at)
        rows += "<Upload><Key>" + *at + "</Key><UploadId>u</UploadId><Initiated>2009-10-12T17:50:30.000Z" +
                "</Initiated></Upload>";
      if (end != unfinished.end())
        rows += "<IsTruncated>true</IsTruncated><NextKeyMarker>" + *std::prev(end) +
                "</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>";
      HttpResponse page_of_uploads{.status = 200};
      page_of_uploads.body = "<ListMultipartUploadsResult>" + rows + "</ListMultipartUploadsResult>";
      if (!date.empty()) page_of_uploads.headers["date"] = date;
      return page_of_uploads;
    }
    const std::string bucket = path.substr(0, path.find('/')) + "/", prefix = bucket + values["prefix"];
    if (objects.lower_bound(bucket) == objects.end()) return refusal(404, "NoSuchBucket", "GET");
    std::map<std::string, std::string> entries;  // listed name to its XML
    for (auto at = objects.lower_bound(prefix); at != objects.end() && at->first.starts_with(prefix); ++at) {
      const std::string key = at->first.substr(bucket.size());
      const size_t slash = key.find('/', values["prefix"].size());
      if (slash != std::string::npos) {
        const std::string folder = key.substr(0, slash + 1);
        entries[folder] = "<CommonPrefixes><Prefix>" + folder + "</Prefix></CommonPrefixes>";
      } else {
        entries[key] = "<Contents><Key>" + key +
                       "</Key><LastModified>2009-10-12T17:50:30.987Z</LastModified>" + "<ETag>" +
                       etag(at->second) + "</ETag><Size>" + std::to_string(at->second.size()) +
                       "</Size></Contents>";
      }
    }
    std::string body = "<?xml version=\"1.0\"?>\n<ListBucketResult>";
    size_t count = 0;
    for (auto at = entries.upper_bound(values["continuation-token"]); at != entries.end(); ++at, ++count) {
      if (count == page) {
        body += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + std::prev(at)->first +
                "</NextContinuationToken>";
        break;
      }
      body += at->second;
    }
    HttpResponse response{.status = 200};
    response.body = body + "</ListBucketResult>";
    return response;
  }

  std::mutex mutex_;
};

}  // namespace ostro::objects
