// The step run: any program, with declared inputs and outputs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/below.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/lab/steps/sandbox.h"

namespace ostro::lab {
namespace {

using Hashes = std::map<std::string, std::string>;

Status check_paths(const Step& step) {
  for (const char* parameter : {"files", "outputs"})
    for (const std::string& path : texts_of(step, parameter))
      if (!io::stays_below(path))
        return invalid_argument(fmt::format("{}: {}: use a path without \".\" and \"..\", from {}", parameter,
                                            path,
                                            *parameter == 'f' ? "the plan's folder" : "the folder out"));
  return {};
}

// What the program sees: the plan's files under their names, and of each input "in/NAME". An object of a
// source has the path behind "s3://" there; a copy of it lies beside `folder`.
Result<std::map<std::string, std::string>> shown_to(const Work& work, const std::string& folder) {
  std::map<std::string, std::string> shown;
  for (const std::string& file : texts_of(work.step, "files"))
    shown[file] = io::join_path(work.plan.folder, file);
  for (const auto& [name, input] : work.step.inputs) {
    const Made& made = work.made.at(input);
    const std::string place = "in/" + name;
    if (!made.folder.empty()) shown[place] = made.folder;
    for (const data::SourceFile& file : made.files) {
      const std::string path = work.plan.relative(file.path).substr(io::path_scheme(file.path).size());
      ASSIGN_OR_RETURN(shown[io::join_path(place, io::stays_below(path) ? path : io::base_name(path))],
                       fetched(work.context.fs, folder, file.path));
    }
  }
  return shown;
}

// Runs the program into an empty folder, and hashes what it made there.
Result<Hashes> run_into(const Work& work, const std::map<std::string, std::string>& shown,
                        const std::string& out, const std::string& scratch) {
  io::FileSystem& fs = work.context.fs;
  RETURN_IF_ERROR(fs.remove_all(out));
  RETURN_IF_ERROR(fs.make_dirs(out));
  const config::Node parameters = work.parameters();
  std::vector<std::string> words;
  for (const config::Node& word : parameters.find("program")->items) words.push_back(word.text);
  RETURN_IF_ERROR(run_sandboxed(fs, {.words = words, .shown = shown, .out = out, .scratch = scratch}));
  const std::vector<std::string> outputs = texts_of(work.step, "outputs");
  ASSIGN_OR_RETURN(const std::vector<std::string> files, files_below(fs, out));
  Hashes hashes;
  for (const std::string& file : files) {
    const auto is_declared = [&](const std::string& o) { return file == o || file.starts_with(o + "/"); };
    if (std::none_of(outputs.begin(), outputs.end(), is_declared))
      return invalid_argument(fmt::format("the program wrote out/{}, which outputs do not have", file));
    ASSIGN_OR_RETURN(hashes[file], io::file_sha256(fs, io::join_path(out, file)));
  }
  for (const std::string& output : outputs) {
    ASSIGN_OR_RETURN(const bool is_there, fs.exists(io::join_path(out, output)));
    if (!is_there) return invalid_argument(fmt::format("the program ended without writing out/{}", output));
  }
  return hashes;
}

}  // namespace

Result<Hashes> command_files(const Work& work) {
  RETURN_IF_ERROR(check_paths(work.step));
  Hashes out;
  for (const std::string& file : texts_of(work.step, "files")) {
    ASSIGN_OR_RETURN(out[file], io::file_sha256(work.context.fs, io::join_path(work.plan.folder, file)));
  }
  return out;
}

Result<std::string> make_command(const Work& work, const std::string& folder) {
  const FetchedCopies copies(work.context.fs, folder);
  ASSIGN_OR_RETURN(const Hashes files, command_files(work));
  const std::string again = folder + ".again";
  ASSIGN_OR_RETURN(const auto shown, shown_to(work, folder));
  ASSIGN_OR_RETURN(const Hashes first, run_into(work, shown, folder, folder + ".links"));
  const Result<Hashes> second = run_into(work, shown, again, folder + ".links");
  RETURN_IF_ERROR(work.context.fs.remove_all(again));
  if (!second.ok()) return second.error().with_context("the second time");
  for (const auto& [file, hash] : first)
    if (const auto other = second->find(file); other == second->end() || other->second != hash)
      return invalid_argument(fmt::format(
          "the program was run twice, and out/{} has the SHA-256 {} and {}: it must give the same bytes "
          "(clocks, random numbers, threads and the order of folders are common reasons that it does not)",
          file, hash, other == second->end() ? "none" : other->second));
  if (second->size() != first.size())
    return invalid_argument("the program was run twice, and made more files the second time");
  ASSIGN_OR_RETURN(const Hashes now, command_files(work));
  if (now != files)
    return invalid_argument("one of its files was changed while the program ran; run it again");
  return sha256_hex(nlohmann::json(first).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace ostro::lab
