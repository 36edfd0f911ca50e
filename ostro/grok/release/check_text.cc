// The output of `ostro check`, as text and as JSON.
#include <fmt/core.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/grok/release/check.h"

namespace ostro::grok {
namespace {

using Json = nlohmann::ordered_json;

constexpr FileState kStates[] = {FileState::kWhole, FileState::kMissing, FileState::kShort,
                                 FileState::kWrong};

const char* state_name(FileState state) {
  switch (state) {
    case FileState::kWhole: return "whole";
    case FileState::kMissing: return "missing";
    case FileState::kShort: return "short";
    case FileState::kWrong: return "wrong";
  }
  return "";
}

// Files in a row that are missing are one line.
std::string missing_line(const ReleaseReport& report, size_t begin, size_t end) {
  const Leaf &first = report.leaves[begin], &last = report.leaves[end - 1];
  if (end - begin == 1)
    return fmt::format("missing  {}: {}, {} bytes\n", first.file, leaf_title(first), first.bytes);
  int64_t bytes = 0;
  for (size_t i = begin; i < end; ++i) bytes += report.leaves[i].bytes;
  return fmt::format("missing  {} to {}: {} to {}, {} files, {} bytes\n", first.file, last.file,
                     leaf_title(first), leaf_title(last), end - begin, bytes);
}

std::string file_line(const Leaf& leaf, const FileReport& file) {
  if (file.state != FileState::kWhole)
    return fmt::format("{:<8} {}: {}{}{}\n", state_name(file.state), leaf.file, leaf_title(leaf),
                       file.error.empty() ? "" : ": ", file.error);
  std::string line =
      fmt::format("whole    {}: {}: {}, {} bytes", leaf.file, leaf.name, describe(leaf.tensor), file.bytes);
  if (file.bytes != leaf.bytes)
    line +=
        fmt::format(" (the release's own file would have {}: another version of NumPy wrote it)", leaf.bytes);
  return line + "\n";
}

}  // namespace

std::string check_text(const ReleaseReport& report, bool all) {
  int64_t bytes = 0;
  for (const Leaf& leaf : report.leaves) bytes += leaf.bytes;
  std::string out = fmt::format("{}: {}, {} files, {} bytes\n", report.directory, shape_title(report.shape),
                                report.leaves.size(), bytes);
  for (size_t i = 0; i < report.files.size(); ++i) {
    if (all) {
      out += file_line(report.leaves[i], report.files[i]);
    } else if (report.files[i].state == FileState::kMissing) {
      size_t end = i + 1;
      while (end < report.files.size() && report.files[end].state == FileState::kMissing) ++end;
      out += missing_line(report, i, end);
      i = end - 1;
    } else if (report.files[i].state != FileState::kWhole) {
      out += file_line(report.leaves[i], report.files[i]);
    }
  }
  for (const std::string& other : report.others)
    out += fmt::format("unknown  {}: {} has no such file\n", other, shape_title(report.shape));
  std::string sum;
  for (const FileState state : kStates)
    sum += fmt::format("{}{} {}", sum.empty() ? "" : ", ", report.count(state), state_name(state));
  out += fmt::format("{}; {} of {} bytes are whole", sum, report.bytes(FileState::kWhole), bytes);
  out += report.contents ? fmt::format("; contents checked, {} bytes read\n", report.bytes_read)
                         : "; contents not read (--contents)\n";
  return out;
}

std::string check_json(const ReleaseReport& report) {
  Json files = Json::array();
  for (size_t i = 0; i < report.files.size(); ++i) {
    const Leaf& leaf = report.leaves[i];
    const FileReport& found = report.files[i];
    Json file = {{"file", leaf.file},
                 {"name", leaf.name},
                 {"dtype", dtype_name(leaf.tensor.weight.dtype)},
                 {"shape", leaf.tensor.weight.shape}};
    if (leaf.tensor.scales) file["scales_shape"] = leaf.tensor.scales->shape;
    file["state"] = state_name(found.state);
    file["bytes"] = found.bytes;
    file["bytes_expected"] = leaf.bytes;
    if (!found.sha256.empty()) file["sha256"] = found.sha256;
    if (!found.error.empty()) file["error"] = found.error;
    files.push_back(std::move(file));
  }
  Json out = {{"directory", report.directory}, {"model", shape_title(report.shape)}};
  for (const FileState state : kStates) {
    out[state_name(state)] = report.count(state);
    out[fmt::format("{}_bytes", state_name(state))] = report.bytes(state);
  }
  out["contents"] = report.contents;
  out["bytes_read"] = report.bytes_read;
  out["unknown"] = report.others;
  out["files"] = std::move(files);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::grok
