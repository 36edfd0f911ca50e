#include "ostro/experiment/journal/output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

// What stands in a run's folder beside its result: clocks, logs and pages for people; and in a store's what
// it has noted of texts that were moved or touched. They may change when a reader looks at the output, and
// nothing is computed from them.
bool is_left_out(const std::string& name) {
  for (const char* other : {"lock", "run.json", "metrics.jsonl", "goodput.json", "log.txt", "report.html",
                            "report.json", "tb", "source_hashes.json"})
    if (name == other) return true;
  return name.ends_with(".tmp") || name.ends_with(".lock");
}

constexpr const char* kHasAll = "all";  // a member of manifests that list all files of the folder

NamesLeftOut left_out_of(OutputFiles which) {
  return which == OutputFiles::kAll ? nullptr : NamesLeftOut(is_left_out);
}

// Files below `below`, a folder of `top`, with paths relative to `top`.
Status list_files(io::FileSystem& fs, const std::string& top, const std::string& below, NamesLeftOut left_out,
                  std::vector<std::string>& out) {
  ASSIGN_OR_RETURN(const auto entries, fs.list(io::join_path(top, below)));
  for (const io::DirEntry& entry : entries) {
    const std::string path = io::join_path(below, entry.name);
    if (left_out != nullptr && left_out(entry.name)) continue;
    // A link leads out of the sandbox in which its program ran, to any file of this machine.
    if (entry.is_link)
      return invalid_argument(
          fmt::format("{}: is a link; an output has its files itself", io::join_path(top, path)));
    if (entry.is_directory) {
      RETURN_IF_ERROR(list_files(fs, top, path, left_out, out));
    } else {
      out.push_back(path);
    }
  }
  return {};
}

constexpr const char* kFix = "Put back a copy, or remove the folder, and the step is done again";

}  // namespace

Result<std::vector<std::string>> files_below(io::FileSystem& fs, const std::string& folder,
                                             NamesLeftOut left_out) {
  std::vector<std::string> out;
  RETURN_IF_ERROR(list_files(fs, folder, "", left_out, out));
  return out;
}

Status remove_beside(io::FileSystem& fs, const std::string& folder) {
  for (const std::string end : kBesideOutput) RETURN_IF_ERROR(fs.remove_all(folder + end));
  return {};
}

std::string output_folder(const std::string& lab_directory, const std::string& fingerprint) {
  return io::join_path(lab_directory, "out/" + fingerprint.substr(0, kOutputNameDigits));
}

std::string manifest_path(const std::string& lab_directory, const std::string& fingerprint) {
  return output_folder(lab_directory, fingerprint) + ".json";
}

Result<std::string> write_manifest(io::FileSystem& fs, const std::string& lab_directory,
                                   const std::string& fingerprint, OutputFiles which, FileHashes& hashes) {
  const std::string folder = output_folder(lab_directory, fingerprint);
  ASSIGN_OR_RETURN(const std::vector<std::string> files, files_below(fs, folder, left_out_of(which)));
  nlohmann::json manifest = {{"fingerprint", fingerprint}, {"files", nlohmann::json::object()}};
  if (which == OutputFiles::kAll) manifest[kHasAll] = true;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string hash, hashes.sha256(io::join_path(folder, file)));
    manifest["files"][file] = hash;
  }
  RETURN_IF_ERROR(fs.sync_tree(folder));
  const std::string text = manifest.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  RETURN_IF_ERROR(io::write_file_atomically(fs, manifest_path(lab_directory, fingerprint), text));
  return sha256_hex(text);
}

Result<bool> check_output(io::FileSystem& fs, const std::string& lab_directory,
                          const std::string& fingerprint, const std::string& manifest, FileHashes& hashes) {
  const std::string folder = output_folder(lab_directory, fingerprint),
                    list = manifest_path(lab_directory, fingerprint);
  ASSIGN_OR_RETURN(const bool has_folder, fs.exists(folder));
  ASSIGN_OR_RETURN(const bool has_list, fs.exists(list));
  if (!has_folder || !has_list) return false;
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(list));
  if (sha256_hex(text) != manifest)
    return corrupt(fmt::format("{}: was changed: its SHA-256 is {}, the journal has {}. {}", list,
                               sha256_hex(text), manifest, kFix));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  OSTRO_CHECK(json.is_object(), "{}: has the hash of the journal and is no manifest", list);
  const NamesLeftOut left_out =
      left_out_of(json.contains(kHasAll) ? OutputFiles::kAll : OutputFiles::kResult);
  for (const auto& [file, hash] : json["files"].items()) {
    if (left_out != nullptr && left_out(io::base_name(file))) continue;  // of an earlier version
    const std::string path = io::join_path(folder, file);
    const auto now = hashes.sha256(path);
    if (!now.ok() && now.error().code() == ErrorCode::kNotFound)
      return corrupt(fmt::format("{}: is gone; it is part of an output. {}", path, kFix));
    if (!now.ok()) return now.error();
    if (*now != hash.get<std::string>())
      return corrupt(fmt::format("{}: was changed: its SHA-256 is {}, that of the output was {}. {}", path,
                                 *now, hash.get<std::string>(), kFix));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> there, files_below(fs, folder, left_out));
  for (const std::string& file : there)
    if (!json["files"].contains(file))
      return corrupt(fmt::format("{}: is no part of the output. Remove it", io::join_path(folder, file)));
  return true;
}

}  // namespace ostro::lab
