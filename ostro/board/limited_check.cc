#include "ostro/board/limited_check.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "ostro/base/forked_process.h"
#include "ostro/base/log.h"
#include "ostro/base/object_cache.h"
#include "ostro/base/out_of_memory.h"
#include "ostro/base/process_limits.h"
#include "ostro/chain/canonical.h"

namespace ostro::board {
namespace {

using nlohmann::json;

constexpr int kOutOfMemoryStatus = 97;  // of the process, where a thread finds no memory

std::string written(const json& answer) {
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

json error_json(const Error& error, bool is_of_memory) {
  return {{"code", static_cast<int>(error.code())}, {"error", error.message()}, {"memory", is_of_memory}};
}

json result_json(const CheckResult& result, const Track& track) {
  json refusals = json::array();
  for (const Refusal& refusal : result.refusals)
    refusals.push_back({static_cast<int>(refusal.rule), refusal.text});
  return {{"head", result.head},
          {"state", result.state},
          {"bundle", result.bundle},
          {"step", result.step},
          {"refusals", std::move(refusals)},
          {"flops", chain::hex_float(result.flops)},
          {"is_foreign", result.is_foreign},
          {"bits_per_byte", chain::hex_float(result.bits_per_byte)},
          {"challenge", result.challenge},
          {"replayed", result.replayed ? json{result.replayed->replayed, result.replayed->steps} : json()},
          {"text", check_text(result, track)}};
}

Result<LimitedCheck> read_result(const json& answer) {
  LimitedCheck out;
  CheckResult& result = out.outcome;
  result.head = answer.at("head"), result.state = answer.at("state"), result.bundle = answer.at("bundle");
  result.step = answer.at("step"), result.is_foreign = answer.at("is_foreign");
  result.challenge = answer.at("challenge");
  for (const json& refusal : answer.at("refusals"))
    result.refusals.push_back({static_cast<Rule>(refusal.at(0).get<int>()), refusal.at(1)});
  if (const json& done = answer.at("replayed"); done.is_array()) {
    result.replayed.emplace();
    result.replayed->replayed = done.at(0), result.replayed->steps = done.at(1);
  }
  ASSIGN_OR_RETURN(result.flops, chain::parse_hex_float(answer.at("flops").get<std::string>()));
  ASSIGN_OR_RETURN(result.bits_per_byte,
                   chain::parse_hex_float(answer.at("bits_per_byte").get<std::string>()));
  out.text = answer.at("text");
  return out;
}

// In the process of its own. What it prints are warnings and progress.
std::string check_here(const Context& context, const Track& track, const Board* board,
                       const CheckRequest& request, const ProcessLimits& limits) {
  end_on_out_of_memory(kOutOfMemoryStatus);
  // The kernel cache is only read here, so that nothing that an entry leads to stays in it.
  static LogSink before;
  before = set_log_sink([](LogLevel level, std::string_view line) {
    if (!line.starts_with("compiled kernels are not kept")) before(level, line);
  });
  try {
    if (const Status limited = limit_process(limits); !limited.ok())
      return written(error_json(limited.error(), false));
    const auto result = check_entry(context, track, board, request);
    context.progress.end();
    if (result.ok()) return written(result_json(*result, track));
    // Calls of the system fail in their own way where the limit leaves them no memory.
    const bool no_memory = result.error().message().ends_with(std::strerror(ENOMEM));
    return written(error_json(result.error(), no_memory));
  } catch (const std::bad_alloc& e) {
    return written(error_json(out_of_memory_error(e), true));
  }
}

Error limit_reached(const std::string& entry, const std::string& what, const char* option) {
  return io_error(fmt::format("the check of {} was ended: {}; {} raises the limit", entry, what, option));
}

Error out_of_addresses(const std::string& entry, const CheckLimits& limits, const std::string& said) {
  return limit_reached(
      entry,
      fmt::format("it found no memory, with a limit of {:.1f} GiB of addresses{}{}",
                  static_cast<double>(limits.addresses) / (int64_t{1} << 30), said.empty() ? "" : ": ", said),
      "--addresses GIB");
}

}  // namespace

Result<LimitedCheck> check_limited(const Context& context, const Track& track, const Board* board,
                                   const CheckRequest& request, const CheckLimits& limits) {
  ASSIGN_OR_RETURN(const PrivateFolder scratch, PrivateFolder::make(temporary_dir(), "ostro-check-"));
  ProcessLimits of_process{limits.cpu_seconds, limits.addresses, {}};
  const WritingLimit writing = writing_limit();
  if (writing != WritingLimit::kNone) of_process.writable = {scratch.path().string()};
  if (writing == WritingLimit::kNone)
    log_warning(
        "this kernel has no Landlock, so what the check writes is not limited; check entries of strangers in "
        "a container");
  if (writing == WritingLimit::kAllButTruncation)
    log_warning(
        "the Landlock of this kernel does not keep the check from cutting off files (Linux 6.2 does); check "
        "entries of strangers in a container");
  ASSIGN_OR_RETURN(ForkedProcess process, ForkedProcess::start([&] {
                     ::setenv("TMPDIR", scratch.path().c_str(), 1);
                     return check_here(context, track, board, request, of_process);
                   }));
  const auto end = process.wait_for(limits.time);
  if (!end)
    return limit_reached(
        request.entry,
        fmt::format("it took longer than {} s", std::chrono::duration<double>(limits.time).count()),
        "--time SECONDS");
  const int status = end->status;
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU))
    return limit_reached(request.entry,
                         fmt::format("it used more than {} s of processor time", limits.cpu_seconds),
                         "--cpu_time SECONDS");
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemoryStatus)
    return out_of_addresses(request.entry, limits, "");
  const json answer = json::parse(end->answer, nullptr, false);
  if (!answer.is_object())
    return io_error(
        fmt::format("the process that checked {} ended without an answer ({}); what it printed may say why",
                    request.entry,
                    WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                        : fmt::format("exit code {}", WEXITSTATUS(status))));
  if (!answer.contains("error")) return read_result(answer);
  const std::string said = answer.at("error");
  if (answer.at("memory").get<bool>()) return out_of_addresses(request.entry, limits, said);
  return Error(static_cast<ErrorCode>(answer.at("code").get<int>()), said);
}

}  // namespace ostro::board
