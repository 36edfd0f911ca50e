// Serving a model that is loaded.
#include <fmt/format.h>

#include <mutex>

#include "loaded.h"
#include "ostro/serve/model_server.h"
#include "ostro/serve/options/opened_options.h"
#include "ostro/shell/shared/waits.h"

namespace ostro::native {
namespace {

void check_drain(double seconds) {
  constexpr double kMost = 86'400;
  if (!(seconds >= 0 && seconds <= kMost))
    throw Failure(fmt::format("drain {}: use 0 to {}", seconds, kMost));
}

class ServerHere final : public Server {
 public:
  ServerHere(std::shared_ptr<Model> model, std::unique_ptr<serve::ModelServer> server, std::string url)
      : model_(std::move(model)), server_(std::move(server)), url_(std::move(url)) {}

  const std::string& url() const override { return url_; }
  bool stop(double seconds) override {
    check_drain(seconds);
    const std::lock_guard lock(mutex_);
    if (!server_) return true;
    const bool all = server_->drain(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)));
    server_.reset();
    return all;
  }

 private:
  std::shared_ptr<Model> model_;
  std::mutex mutex_;  // another call of stop() waits
  std::unique_ptr<serve::ModelServer> server_;
  std::string url_;
};

}  // namespace

std::unique_ptr<Server> serve(const std::shared_ptr<Model>& model, const ServeOptions& options,
                              const std::vector<std::pair<std::string, std::string>>& adapters) {
  check(serve::check_options(options));
  std::vector<serve::NamedAdapter> named;
  for (const auto& [name, path] : adapters) named.push_back({name, path});
  check(serve::check_adapters(named, "--adapter"));
  const auto& loaded = dynamic_cast<const LoadedHere&>(*model);
  const http::Address address = value(http::parse_address(options.listen));
  auto opened = value(serve::open_options(context_on("cpu").fs, options));
  serve::ServerLimits limits;
  limits.waiting = static_cast<size_t>(options.waiting);
  const cli::Waits for_its_threads;  // signals are for the threads of Python
  auto server = value(serve::ModelServer::start(address, std::move(opened.keys), limits));
  check(server->serve(loaded.served_beside(named, options.running, options.cache_pages),
                      std::move(opened.receipts)));
  std::string url = fmt::format("http://{}/v1", host_and_port(address.host, server->port()));
  return std::make_unique<ServerHere>(model, std::move(server), std::move(url));
}

}  // namespace ostro::native
