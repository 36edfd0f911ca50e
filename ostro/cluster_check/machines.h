// Machines: the programs on all machines of a check, which are asked by lines (agent.h), and the report about
// them. For one thread.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ostro/cluster/ssh/line_process.h"
#include "ostro/cluster_check/check_cluster.h"

namespace ostro::cluster_check {

using CheckJson = nlohmann::json;

inline constexpr std::chrono::seconds kStartPatience{60}, kShortPatience{20}, kLinkPatience{120},
    kLongPatience{900};

// 64 digits that no other check has.
std::string new_key();

class Machines {
 public:
  // Both must outlive it.
  Machines(const Context& context, const CheckRequest& request);

  const Context& context() const { return context_; }
  const CheckRequest& request() const { return request_; }
  ClusterReport& report() { return out_; }

  // Starts all programs, and asks them for their facts; all are started before the first is waited for.
  void start();
  // Ends them.
  void end();
  void problem(size_t i, const std::string& text);
  void note(size_t i, const std::string& text);
  // Calls use(i) for those that can be asked.
  void each(const char* what, const std::function<void(size_t)>& use);
  // A machine that does not answer is asked nothing more.
  bool ask(size_t i, const CheckJson& question);
  // An error is a problem, unless `as_note` says that a run can start nevertheless.
  std::optional<CheckJson> answer(size_t i, std::chrono::seconds patience, const std::string& about,
                                  const std::string& as_note = "");

 protected:
  const Context& context_;
  const CheckRequest& request_;
  std::vector<std::optional<cluster::LineProcess>> processes_;
  ClusterReport out_;
};

}  // namespace ostro::cluster_check
