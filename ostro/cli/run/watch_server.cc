#include "ostro/cli/run/watch_server.h"

#include "ostro/http/prometheus_text.h"
#include "ostro/monitor/run_metrics.h"
#include "ostro/page/html/run_page.h"
#include "ostro/run/report/run_status.h"

namespace ostro::cli {
namespace {

constexpr const char* kHtml = "text/html; charset=utf-8";

http::Response unavailable(const Error& error) {
  return {503, "text/plain; charset=utf-8", error.message() + "\n"};
}

}  // namespace

WatchServer::WatchServer(const Context& context, std::string run_directory, std::string token)
    : context_(context),
      run_directory_(std::move(run_directory)),
      gate_(std::move(token)),
      pace_(std::chrono::milliseconds(1000)) {}

http::Response WatchServer::page() {
  const auto begin = Pace::Clock::now();
  if (!pace_.is_due(begin)) return page_;
  auto html = page::run_page(context_.fs, run_directory_, context_.models, page::PageKind::kLive);
  page_ = html.ok() ? http::Response{200, kHtml, std::move(*html)} : unavailable(html.error());
  pace_.drawn(begin, Pace::Clock::now());
  return page_;
}

http::Response WatchServer::answer(const http::Request& request) {
  if (auto refusal = gate_.refusal(request)) return *refusal;
  if (request.path == "/") return page();
  if (request.path == "/health") return {200, "text/plain; charset=utf-8", "ok\n"};
  if (request.path == "/facts.json") {
    const auto status = run::read_status(context_, run_directory_);
    if (!status.ok()) return unavailable(status.error());
    return {200, "application/json", run::status_json(*status)};
  }
  if (request.path == "/metrics")
    return {200, http::kPrometheusType,
            monitor::run_metrics_text(monitor::read_figures(context_.fs, run_directory_))};
  return {404, "text/plain; charset=utf-8", "this server has /, /facts.json, /metrics and /health\n"};
}

}  // namespace ostro::cli
