#include "ostro/cluster_check/agent.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ostro/base/host_name.h"
#include "ostro/base/machine.h"
#include "ostro/chain/record.h"
#include "ostro/chain/version.h"
#include "ostro/cluster_check/agent_places.h"
#include "ostro/cluster_check/link_probe.h"
#include "ostro/run/loop/selftest.h"

namespace ostro::cluster_check {
namespace {

using AgentJson = nlohmann::json;

constexpr std::chrono::seconds kProbePatience{100};

int64_t unix_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The address of this machine to which ssh came; empty: it says none.
std::string own_address() {
  const char* connection = std::getenv("SSH_CONNECTION");
  std::istringstream in(connection == nullptr ? "" : connection);
  std::string client, client_port, server;
  in >> client >> client_port >> server;
  return server;
}

class Agent {
 public:
  Agent(const Context& context, std::string version) : context_(context), version_(std::move(version)) {}

  Result<AgentJson> answer(const AgentJson& asked) {
    const std::string what = asked.value("do", "");
    if (what == "facts") return facts();
    if (what == "time") return AgentJson{{"time_ns", unix_nanoseconds()}};
    if (what == "selftest") return selftest();
    if (what == "device") return device(asked.value("device", ""));
    if (what == "path") return answer_path(context_.fs, asked);
    if (what == "variables") return set_variables(asked);
    if (what == "store") return answer_store(asked);
    if (what == "read") return answer_read(context_.fs, asked);
    if (what == "disk") return answer_disk(context_.fs, asked);
    if (what == "listen") return listen(asked);
    if (what == "send") return send(asked);
    if (what == "taken") return taken();
    return invalid_argument(
        fmt::format("\"{}\" is no question of this version; copy one program to all machines", what));
  }

 private:
  AgentJson facts() const {
    const auto threads = default_threads();
    return {{"host", host_name()},
            {"address", own_address()},
            {"processor", processor_name()},
            {"threads", threads.ok() ? *threads : 0},
            {"memory", total_memory()},
            {"version", version_},
            {"source_commit", chain::source_commit()},
            {"binary_sha256", chain::binary_sha256()},
            {"numerics", chain::kNumericsVersion}};
  }

  Result<AgentJson> selftest() const {
    ASSIGN_OR_RETURN(const auto engine, context_.engine());
    ASSIGN_OR_RETURN(const run::SelftestHashes hashes, run::selftest_hashes(*engine, 1));
    return AgentJson{
        {"floats", hashes.floats}, {"integers", hashes.integers}, {"engine", engine->info().name}};
  }

  Result<AgentJson> device(const std::string& name) const {
    ASSIGN_OR_RETURN(const auto engine, context_.on(name).engine());
    return AgentJson{{"engine", engine->info().name}};
  }

  Result<AgentJson> listen(const AgentJson& asked) {
    dist::Reach reach;
    reach.bind = asked.value("address", "");
    const std::string ports = asked.value("ports", ""), advertise = asked.value("advertise", "");
    if (!ports.empty()) {
      ASSIGN_OR_RETURN(reach.ports, parse_ports(ports));
    }
    if (!advertise.empty()) {
      ASSIGN_OR_RETURN(reach.advertised, dist::parse_advertised(advertise));
    }
    ASSIGN_OR_RETURN(LinkListener listener, LinkListener::open(reach, asked.value("key", "")));
    const HostPort place = listener.place();
    taken_ = std::async(std::launch::async, [one = std::make_shared<LinkListener>(std::move(listener))] {
      return one->take(kProbePatience);
    });
    return AgentJson{{"address", place.host}, {"port", place.port}};
  }

  Result<AgentJson> send(const AgentJson& asked) const {
    ASSIGN_OR_RETURN(const double seconds,
                     probe_link(asked.value("address", ""), asked.value("port", 0), asked.value("key", ""),
                                asked.value("bytes", int64_t{0}), kProbePatience, asked.value("advice", "")));
    return AgentJson{{"seconds", seconds}};
  }

  Result<AgentJson> taken() {
    if (!taken_.valid()) return invalid_argument("nothing was listened for");
    RETURN_IF_ERROR(taken_.get());
    return AgentJson::object();
  }

  const Context& context_;
  const std::string version_;
  std::future<Status> taken_;
};

}  // namespace

void run_agent(const Context& context, const std::string& version, std::FILE* in, std::FILE* out) {
  Agent agent(context, version);
  std::array<char, 1 << 16> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), in) != nullptr) {
    const auto asked = AgentJson::parse(line.data(), nullptr, /*allow_exceptions=*/false);
    const Result<AgentJson> answer =
        asked.is_object() ? agent.answer(asked) : invalid_argument("a question is a JSON object in a line");
    const AgentJson told = answer.ok() ? *answer : AgentJson{{"error", answer.error().message()}};
    fmt::print(out, "{}\n", told.dump(-1, ' ', false, AgentJson::error_handler_t::replace));
    std::fflush(out);
  }
}

}  // namespace ostro::cluster_check
