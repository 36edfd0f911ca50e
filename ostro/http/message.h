// Request, Response: what a client asks a Server for, and what it gets.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace ostro::http {

struct Request {
  std::string path;                            // "/facts.json", without the query
  std::map<std::string, std::string> query;    // "?a=b", decoded
  std::map<std::string, std::string> headers;  // names in small letters; of several the last one
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

using Handler = std::function<Response(const Request&)>;

}  // namespace ostro::http
