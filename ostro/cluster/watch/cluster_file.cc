#include "ostro/cluster/watch/cluster_file.h"

#include <fmt/format.h>

#include "ostro/io/json/file_header.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::cluster {
namespace {

using OrderedJson = nlohmann::ordered_json;
using io::JsonFields;

constexpr io::FileHeader kFileHeader = {"ostro cluster", 1};
constexpr int64_t kMostBytesOfFile = int64_t{16} << 20;
constexpr int64_t kMost = int64_t{1} << 53;

double seconds(int64_t microseconds) { return static_cast<double>(microseconds) * 1e-6; }

OrderedJson to_json(const MemberState& m) {
  OrderedJson json;
  json["member"] = m.member;
  json["rank"] = m.rank < 0 ? OrderedJson() : OrderedJson(m.rank);
  json["host"] = m.host;
  json["pid"] = m.pid;
  json["joined"] = m.joined;
  json["heard"] = m.heard;
  json["epoch"] = m.progress.epoch;
  json["step"] = m.progress.step;
  json["phase"] = m.progress.phase;
  json["compute_seconds"] = seconds(m.progress.compute_microseconds);
  json["wait_seconds"] = seconds(m.progress.wait_microseconds);
  json["leaves"] = m.progress.work;
  json["bytes_sent"] = m.progress.bytes_sent;
  if (m.progress.bytes_between_slices > 0) json["bytes_between_slices"] = m.progress.bytes_between_slices;
  json["slowness"] = m.slowness;
  json["straggles"] = m.straggles;
  return json;
}

Result<double> number(const JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const nlohmann::json* value, fields.get(key));
  if (!value->is_number()) return fields.bad(key, "is not a number");
  return value->get<double>();
}

Result<MemberState> parse_member(const JsonFields& fields) {
  MemberState m;
  ASSIGN_OR_RETURN(m.member, fields.integer("member", 0, kMost));
  ASSIGN_OR_RETURN(const nlohmann::json* rank, fields.get("rank"));
  if (!rank->is_null()) {
    ASSIGN_OR_RETURN(m.rank, fields.integer("rank", 0, kMost));
  }
  ASSIGN_OR_RETURN(m.host, fields.string("host"));
  ASSIGN_OR_RETURN(m.pid, fields.integer("pid", INT64_MIN, INT64_MAX));
  ASSIGN_OR_RETURN(m.joined, number(fields, "joined"));
  ASSIGN_OR_RETURN(m.heard, number(fields, "heard"));
  ASSIGN_OR_RETURN(m.progress.epoch, fields.integer("epoch", 0, kMost));
  ASSIGN_OR_RETURN(m.progress.step, fields.integer("step", 0, kMost));
  ASSIGN_OR_RETURN(m.progress.phase, fields.string("phase"));
  ASSIGN_OR_RETURN(const double compute, number(fields, "compute_seconds"));
  ASSIGN_OR_RETURN(const double wait, number(fields, "wait_seconds"));
  m.progress.compute_microseconds = static_cast<int64_t>(compute * 1e6 + 0.5);
  m.progress.wait_microseconds = static_cast<int64_t>(wait * 1e6 + 0.5);
  ASSIGN_OR_RETURN(m.progress.work, fields.integer("leaves", 0, kMost));
  ASSIGN_OR_RETURN(m.progress.bytes_sent, fields.integer("bytes_sent", 0, kMost));
  if (fields.has("bytes_between_slices")) {
    ASSIGN_OR_RETURN(m.progress.bytes_between_slices, fields.integer("bytes_between_slices", 0, kMost));
  }
  ASSIGN_OR_RETURN(m.slowness, number(fields, "slowness"));
  ASSIGN_OR_RETURN(m.straggles, fields.boolean("straggles"));
  if (!m.progress.sane()) return fields.bad("phase", "or another field of the progress is out of range");
  return m;
}

Result<JobEvent> parse_event(const JsonFields& fields) {
  JobEvent event;
  ASSIGN_OR_RETURN(event.time, number(fields, "time"));
  ASSIGN_OR_RETURN(event.kind, fields.string("kind"));
  ASSIGN_OR_RETURN(event.text, fields.string("text"));
  return event;
}

}  // namespace

std::string cluster_json(const JobState& state) {
  OrderedJson json = io::begin_file(kFileHeader);
  json["job"] = state.job;
  json["started"] = state.started;
  json["written"] = state.written;
  json["host"] = state.host;
  json["pid"] = state.pid;
  json["epoch"] = state.epoch;
  json["goes_on"] = state.goes_on;
  json["size"] = state.size();
  json["mesh"] = state.mesh.empty() ? OrderedJson() : OrderedJson(state.mesh);
  json["members"] = OrderedJson::array();
  for (const MemberState& m : state.members) json["members"].push_back(to_json(m));
  json["events"] = OrderedJson::array();
  for (const JobEvent& e : state.events)
    json["events"].push_back({{"time", e.time}, {"kind", e.kind}, {"text", e.text}});
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Status write_cluster_file(io::FileSystem& fs, const std::string& path, const JobState& state) {
  return fs.write_later(path, cluster_json(state));
}

Result<JobState> read_cluster_file(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMostBytesOfFile));
  ASSIGN_OR_RETURN(const nlohmann::json root, io::parse_json(text, path));
  const JsonFields fields(root, path);
  RETURN_IF_ERROR(io::check_header(fields, kFileHeader));
  JobState state;
  ASSIGN_OR_RETURN(state.job, fields.string("job"));
  ASSIGN_OR_RETURN(state.started, number(fields, "started"));
  ASSIGN_OR_RETURN(state.written, number(fields, "written"));
  ASSIGN_OR_RETURN(state.host, fields.string("host"));
  ASSIGN_OR_RETURN(state.pid, fields.integer("pid", 0, kMost));
  ASSIGN_OR_RETURN(state.epoch, fields.integer("epoch", 0, kMost));
  ASSIGN_OR_RETURN(state.goes_on, fields.boolean("goes_on"));
  ASSIGN_OR_RETURN(const nlohmann::json* mesh, fields.get("mesh"));
  if (!mesh->is_null()) {
    ASSIGN_OR_RETURN(state.mesh, fields.string("mesh"));
  }
  ASSIGN_OR_RETURN(const nlohmann::json* members, fields.array("members"));
  for (size_t i = 0; i < members->size(); ++i) {
    ASSIGN_OR_RETURN(MemberState m,
                     parse_member(JsonFields((*members)[i], fmt::format("{}: members[{}]", path, i))));
    state.members.push_back(std::move(m));
  }
  ASSIGN_OR_RETURN(const nlohmann::json* events, fields.array("events"));
  for (size_t i = 0; i < events->size(); ++i) {
    ASSIGN_OR_RETURN(JobEvent e,
                     parse_event(JsonFields((*events)[i], fmt::format("{}: events[{}]", path, i))));
    state.events.push_back(std::move(e));
  }
  return state;
}

}  // namespace ostro::cluster
