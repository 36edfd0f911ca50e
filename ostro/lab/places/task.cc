#include "ostro/lab/places/task.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ostro/base/host_name.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

constexpr const char* kTaskFile = "task.json";

nlohmann::json source_json(const data::SourceFile& file) {
  return {file.path, static_cast<int>(file.format), static_cast<int>(file.list), file.size, file.mtime_ns};
}

data::SourceFile source_of(const nlohmann::json& json) {
  return {.path = json.at(0),
          .format = static_cast<data::FileFormat>(json.at(1).get<int>()),
          .list = static_cast<data::Split>(json.at(2).get<int>()),
          .size = json.at(3),
          .mtime_ns = json.at(4)};
}

nlohmann::json made_json(const Made& made) {
  nlohmann::json out = {{"fingerprint", made.fingerprint},
                        {"content", made.content},
                        {"folder", made.folder},
                        {"files", nlohmann::json::array()},
                        {"pinned", made.pinned}};
  for (const data::SourceFile& file : made.files) out["files"].push_back(source_json(file));
  return out;
}

Made made_of(const nlohmann::json& json) {
  Made out{json.at("fingerprint"), json.at("content"), json.at("folder"), {}, json.at("pinned")};
  for (const auto& file : json.at("files")) out.files.push_back(source_of(file));
  return out;
}

}  // namespace

TaskFiles::TaskFiles(const std::string& lab_directory, const std::string& folder)
    : TaskFiles(io::join_path(io::absolute_path(lab_directory),
                              fmt::format("jobs/{}/{}", io::base_name(folder), kTaskFile))) {}

TaskFiles::TaskFiles(const std::string& task_file)
    : directory(io::parent_path(task_file)),
      task(task_file),
      answer(io::join_path(directory, "answer.json")),
      stop(io::join_path(directory, "stop")),
      lock(io::join_path(directory, "lock")),
      environment(io::join_path(directory, "environment")),
      log(io::join_path(io::parent_path(io::parent_path(directory)),
                        fmt::format("logs/{}.txt", io::base_name(directory)))) {}

std::string new_attempt() {
  const Nonce nonce = new_nonce();
  return sha256_hex(std::string_view(nonce.data(), nonce.size()));
}

Status write_task(io::FileSystem& fs, const TaskFiles& files, const StepTask& task) {
  nlohmann::json out = {{"attempt", task.attempt},
                        {"plan", task.plan},
                        {"sanity", task.sanity},
                        {"step", task.step},
                        {"fingerprint", task.fingerprint},
                        {"folder", task.folder},
                        {"where", task.where},
                        {"registration", task.seeds.registration},
                        {"beacon", task.seeds.beacon},
                        {"made", nlohmann::json::object()},
                        {"argv", task.argv},
                        {"version", task.version}};
  for (const auto& [name, made] : task.made) out["made"][name] = made_json(made);
  try {
    return io::write_file_atomically(fs, files.task, out.dump());
  } catch (const nlohmann::json::exception& error) {
    return invalid_argument(fmt::format(
        "step {}: a path or a word of its command is no UTF-8 ({}), so no other machine can be told; rename "
        "it, or run this with --place local",
        task.step, error.what()));
  }
}

Result<std::optional<StepTask>> read_task(io::FileSystem& fs, const TaskFiles& files) {
  const auto text = fs.read_file(files.task);
  if (!text.ok() && text.error().code() == ErrorCode::kNotFound) return std::optional<StepTask>();
  if (!text.ok()) return text.error();
  try {
    const auto json = nlohmann::json::parse(*text);
    StepTask task{.attempt = json.at("attempt"),
                  .plan = json.at("plan"),
                  .sanity = json.at("sanity"),
                  .step = json.at("step"),
                  .fingerprint = json.at("fingerprint"),
                  .folder = json.at("folder"),
                  .where = json.value("where", ""),
                  .seeds = {json.at("registration"), json.at("beacon")},
                  .made = {},
                  .argv = json.at("argv"),
                  .version = json.value("version", "")};
    for (const auto& [name, made] : json.at("made").items()) task.made[name] = made_of(made);
    return std::optional(std::move(task));
  } catch (const nlohmann::json::exception& error) {
    return corrupt(fmt::format("{}: is no task of a step ({}); remove it, and run the lab again", files.task,
                               error.what()));
  }
}

Status write_answer(io::FileSystem& fs, const TaskFiles& files, const TaskAnswer& answer) {
  const nlohmann::json out = {{"attempt", answer.attempt},
                              {"performed", performed_text(answer.performed)},
                              {"unsandboxed", answer.unsandboxed}};
  return io::write_file_atomically(fs, files.answer,
                                   out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::optional<TaskAnswer> read_answer(io::FileSystem& fs, const TaskFiles& files,
                                      const std::string& attempt) {
  const auto text = fs.read_file(files.answer);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value("attempt", "") != attempt) return std::nullopt;
  auto performed = parse_performed(json.value("performed", ""));
  if (!performed) return std::nullopt;
  return TaskAnswer{attempt, std::move(*performed), json.value("unsandboxed", "")};
}

Status sandboxed_there(io::FileSystem& fs, const TaskFiles& files) {
  ASSIGN_OR_RETURN(const std::optional<StepTask> task, read_task(fs, files));
  const auto answer = task ? read_answer(fs, files, task->attempt) : std::nullopt;
  return answer && !answer->unsandboxed.empty() ? Status(unsupported(answer->unsandboxed)) : Status();
}

Result<std::unique_ptr<io::FileLock>> lock_task(io::FileSystem& fs, const TaskFiles& files) {
  return fs.lock(files.lock, fmt::format("process {} of {}", ::getpid(), host_name()));
}

}  // namespace ostro::lab
