// RelayCaller: a worker's side of the relay that a coordinator is for workers that do not reach each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "ostro/dist/relay.h"

namespace ostro::cluster {

// Calls through the coordinator at a host (a name or an address) and port; the job's secret is proved to it.
// Nothing is encrypted on the way to the coordinator: what the workers say to each other may be. Thread-safe.
class RelayCaller final : public dist::Relay {
 public:
  RelayCaller(std::string host, int port, std::string secret)
      : host_(std::move(host)), port_(port), secret_(std::move(secret)) {}
  // From now on each second attempt of a call, the first to begin with, goes to the address in numbers that
  // this gives: no name server is asked for one that a member is connected to. Not while others call.
  void follow(std::function<std::string()> address) { address_ = std::move(address); }
  Result<std::unique_ptr<dist::RelayCall>> call(const std::string& group, int64_t own, int64_t peer) override;

 private:
  const std::string host_;
  const int port_;
  const std::string secret_;
  std::function<std::string()> address_;  // may be empty
};

}  // namespace ostro::cluster
