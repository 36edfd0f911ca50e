#include "ostro/chain/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include "ostro/base/machine.h"
#include "ostro/base/run_program.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/chain/clock_text.h"
#include "ostro/chain/source_commit.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/json/file_header.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::chain {
namespace {

using OrderedJson = nlohmann::ordered_json;
using io::JsonFields;

constexpr io::FileHeader kFileHeader = {"ostro run", kRecordFormat};

// "AMD EPYC 9B45, 16 cores, 128 GB, AVX512-BF16": what decides how fast a run is.
std::string machine_name() {
  std::string out =
      fmt::format("{}, {} cores", processor_name(), std::max(1U, std::thread::hardware_concurrency()));
  if (const int64_t bytes = total_memory(); bytes > 0)
    out += fmt::format(", {:.0f} GB", static_cast<double>(bytes) * 1e-9);
  const std::string flags = value_in("/proc/cpuinfo", "flags").value_or("") + " ";
  for (const auto& [flag, name] : {std::pair{" amx_bf16 ", "AMX"},
                                   {" avx512_bf16 ", "AVX512-BF16"},
                                   {" avx512f ", "AVX-512"},
                                   {" avx2 ", "AVX2"}})
    if (flags.find(flag) != std::string::npos) return out + ", " + name;
  return out;
}

OrderedJson to_json(const Session& session) {
  OrderedJson json;
  json["argv"] = session.argv;
  json["directory"] = session.directory;
  json["source_commit"] = session.source_commit;
  if (!session.binary_sha256.empty()) json["binary_sha256"] = session.binary_sha256;
  json["compiler"] = session.compiler;
  json["cpu"] = session.cpu;
  json["started"] = session.started;
  json["ended"] = session.ended.empty() ? OrderedJson() : OrderedJson(session.ended);
  json["outcome"] = session.outcome;
  json["from_step"] = session.from_step;
  json["to_step"] = session.to_step;
  if (!session.seconds.empty()) json["seconds"] = session.seconds;
  return json;
}

// A string, or "" for null.
Result<std::string> optional_string(const JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const nlohmann::json* value, fields.get(key));
  if (value->is_null()) return std::string();
  return fields.string(key);
}

Result<Session> parse_session(const JsonFields& fields) {
  Session session;
  ASSIGN_OR_RETURN(const nlohmann::json* argv, fields.array("argv"));
  for (const nlohmann::json& word : *argv) {
    if (!word.is_string()) return fields.bad("argv", "holds more than strings");
    session.argv.push_back(word.get<std::string>());
  }
  if (fields.has("directory")) {
    ASSIGN_OR_RETURN(session.directory, fields.string("directory"));
  }
  ASSIGN_OR_RETURN(session.source_commit, fields.string("source_commit"));
  if (fields.has("binary_sha256")) {
    ASSIGN_OR_RETURN(session.binary_sha256, fields.string("binary_sha256"));
  }
  ASSIGN_OR_RETURN(session.compiler, fields.string("compiler"));
  ASSIGN_OR_RETURN(session.cpu, fields.string("cpu"));
  ASSIGN_OR_RETURN(session.started, fields.string("started"));
  ASSIGN_OR_RETURN(session.ended, optional_string(fields, "ended"));
  ASSIGN_OR_RETURN(session.outcome, fields.string("outcome"));
  ASSIGN_OR_RETURN(session.from_step, fields.integer("from_step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(session.to_step, fields.integer("to_step", 0, INT64_MAX));
  if (fields.has("seconds")) {
    ASSIGN_OR_RETURN(const nlohmann::json* seconds, fields.get("seconds"));
    if (!seconds->is_object()) return fields.bad("seconds", "is not an object");
    for (const auto& [name, value] : seconds->items()) {
      if (!value.is_number()) return fields.bad("seconds", "holds more than numbers");
      session.seconds[name] = value.get<double>();
    }
  }
  return session;
}

}  // namespace

std::string source_commit() { return OSTRO_SOURCE_COMMIT; }

std::string binary_sha256() {
  static const Result<std::string> hash = []() -> Result<std::string> {
    ASSIGN_OR_RETURN(const std::string file, code_path());
    // The running program's file can be read so even when another one has taken its place.
    return io::file_sha256(io::local_file_system(), file.ends_with(".so") ? file : "/proc/self/exe");
  }();
  return hash.ok() ? *hash : std::string();
}

std::string compiler_name() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

Session begin_session(std::vector<std::string> argv, int64_t from_step) {
  std::error_code gone;  // if the directory was removed, the path stays empty
  std::string directory = std::filesystem::current_path(gone).string();
  return {std::move(argv), std::move(directory),
          source_commit(), binary_sha256(),
          compiler_name(), machine_name(),
          utc_now(),       "",
          "running",       from_step,
          from_step,       {}};
}

void end_session(RunRecord& record, const std::string& outcome, int64_t to_step) {
  OSTRO_CHECK(!record.sessions.empty(), "no session to end");
  Session& session = record.sessions.back();
  session.ended = utc_now();
  session.outcome = outcome;
  session.to_step = to_step;
}

bool add_finding(RunRecord& record, int64_t step, const std::string& text) {
  const bool there =
      std::any_of(record.findings.begin(), record.findings.end(),
                  [&](const CrossCheckFinding& f) { return f.step == step && f.text == text; });
  if (!there) record.findings.push_back({step, utc_now(), text});
  return !there;
}

std::string record_json(const RunRecord& record) {
  OrderedJson json = io::begin_file(kFileHeader);
  json["numerics_version"] = record.numerics_version;
  json["program_hash"] = record.program_hash;
  json["data_hash"] = record.data_hash;
  if (!record.data_hash_now.empty()) json["data_hash_now"] = record.data_hash_now;
  json["tokenizer_hash"] = record.tokenizer_hash;
  json["parent"] = record.parent.empty() ? OrderedJson() : OrderedJson(record.parent);
  json["sessions"] = OrderedJson::array();
  for (const Session& session : record.sessions) json["sessions"].push_back(to_json(session));
  for (const CrossCheckFinding& f : record.findings)
    json["findings"].push_back({{"step", f.step}, {"time", f.time}, {"text", f.text}});
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

double seconds_a_step(const RunRecord& record) {
  double seconds = 0;
  int64_t steps = 0;
  for (const Session& session : record.sessions) {
    for (const auto& [use, spent] : session.seconds) seconds += spent;
    steps += session.to_step - session.from_step;
  }
  return steps > 0 && seconds > 0 ? seconds / static_cast<double>(steps) : 0;
}

SessionTimes session_times(const RunRecord& record) {
  SessionTimes out;
  int64_t steps = 0;
  std::optional<double> least;
  for (const Session& session : record.sessions) {
    if (session.seconds.empty()) continue;  // it was killed, so its times are not known
    const auto of = [&](TimeUse use) {
      const auto found = session.seconds.find(kTimeUseNames[static_cast<size_t>(use)]);
      return found == session.seconds.end() ? 0.0 : found->second;
    };
    const double beginning = of(TimeUse::kStart) + of(TimeUse::kCompile);
    for (const auto& [use, spent] : session.seconds) out.a_step += spent;
    out.a_step -= beginning;
    out.computing += of(TimeUse::kStep);
    steps += session.to_step - session.from_step;
    if (!least || beginning < *least) least = beginning;
  }
  if (steps <= 0 || out.computing <= 0) return {};
  return {*least, out.a_step / static_cast<double>(steps), out.computing / static_cast<double>(steps)};
}

Status write_record(io::FileSystem& fs, const std::string& path, const RunRecord& record) {
  return io::write_file_atomically(fs, path, io::add_checksum(record_json(record)));
}

Result<RunRecord> read_record(io::FileSystem& fs, const std::string& path) {
  constexpr int64_t kLimit = int64_t{64} << 20;
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kLimit));
  ASSIGN_OR_RETURN(const std::string body, io::remove_checksum(text, path));
  ASSIGN_OR_RETURN(const nlohmann::json root, io::parse_json(body, path));
  const JsonFields fields(root, path);
  RETURN_IF_ERROR(io::check_header(fields, kFileHeader));
  RunRecord record;
  ASSIGN_OR_RETURN(record.numerics_version, fields.string("numerics_version"));
  ASSIGN_OR_RETURN(record.program_hash, fields.string("program_hash"));
  ASSIGN_OR_RETURN(record.data_hash, fields.string("data_hash"));
  if (fields.has("data_hash_now")) {
    ASSIGN_OR_RETURN(record.data_hash_now, fields.string("data_hash_now"));
  }
  ASSIGN_OR_RETURN(record.tokenizer_hash, fields.string("tokenizer_hash"));
  ASSIGN_OR_RETURN(record.parent, optional_string(fields, "parent"));
  ASSIGN_OR_RETURN(const nlohmann::json* sessions, fields.array("sessions"));
  for (size_t i = 0; i < sessions->size(); ++i) {
    ASSIGN_OR_RETURN(Session session,
                     parse_session(JsonFields((*sessions)[i], fmt::format("{}: sessions[{}]", path, i))));
    record.sessions.push_back(std::move(session));
  }
  if (!fields.has("findings")) return record;
  ASSIGN_OR_RETURN(const nlohmann::json* findings, fields.array("findings"));
  for (size_t i = 0; i < findings->size(); ++i) {
    const JsonFields one((*findings)[i], fmt::format("{}: findings[{}]", path, i));
    CrossCheckFinding& finding = record.findings.emplace_back();
    ASSIGN_OR_RETURN(finding.step, one.integer("step", 0, INT64_MAX));
    ASSIGN_OR_RETURN(finding.time, one.string("time"));
    ASSIGN_OR_RETURN(finding.text, one.string("text"));
  }
  return record;
}

}  // namespace ostro::chain
