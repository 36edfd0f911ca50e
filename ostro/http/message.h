// Request, Response: what a client asks a Server for, and what it gets.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ostro::http {

struct Request {
  std::string path = {};                            // "/facts.json", without the query
  std::map<std::string, std::string> query = {};    // "?a=b", decoded
  std::map<std::string, std::string> headers = {};  // names in small letters; of several the last one
  std::string method = "GET";                       // as it came; GET or HEAD where Limits::body is 0
  std::string body = {};                            // empty where there is none
  bool body_too_large = false;                      // it is longer than Limits::body, and left out here
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides those that every answer has
};

using Handler = std::function<Response(const Request&)>;

}  // namespace ostro::http
