#include <fmt/format.h>

#include <random>

#include "ostro/base/watch/fault_point.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/fleet/cells/collected_hashes.h"
#include "ostro/fleet/cells/save_cells.h"
#include "ostro/io/files/path.h"

namespace ostro::fleet {
namespace {

using checkpoint::Manifest;
using checkpoint::Saved;

constexpr char kFailed = '!';                 // begins what a worker tells of an error
constexpr const char* kNothing = "/nothing";  // a key that is never set

// Hashes are small, but there are many of them: they go through a file in a folder of its own. The store has
// the SHA-256 of the file.
std::string hashes_folder(const std::string& attempt) { return attempt + ".hashes.tmp"; }

// Of how many attempts to save a step there ever were, no two have the same mark.
std::string new_mark() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// The name of an attempt. On a disk it is the directory that the attempt writes.
std::string name_attempt(const SharedSave& save, int64_t step) {
  const std::string mark = new_mark();
  const std::string place = checkpoint::temporary_directory(*save.fs, save.root, step, mark);
  return save.fs->is_object_store(save.root) ? place + "." + mark + ".tmp" : place;
}

std::string place_of(const SharedSave& save, int64_t step, const std::string& attempt) {
  if (!save.fs->is_object_store(save.root)) return attempt;
  return checkpoint::temporary_directory(*save.fs, save.root, step);
}

Error failed(int64_t rank, int64_t step, const std::string& why) {
  return Error(
      ErrorCode::kIo,
      fmt::format("worker {} cannot write its cells of the checkpoint of step {}: {}; the checkpoints "
                  "before are as they were: make room or repair the disk there, and start the same "
                  "command again",
                  rank, step, why));
}

Result<std::string> ask(const SharedSave& save, const std::string& key) {
  while (true) {
    auto value = save.store->get(save.key + key, std::chrono::seconds(10));
    if (value.ok() || value.error().code() != ErrorCode::kBusy) return value;
  }
}

Status tell_others(const SharedSave& save, const std::string& key, const std::string& value) {
  return save.store->set(save.key + key, value);
}

bool ended(const SharedSave& save) {
  const auto nothing = save.store->get(save.key + kNothing, std::chrono::milliseconds(1));
  return !nothing.ok() && nothing.error().code() != ErrorCode::kBusy;
}

// Whether the cause of an error is that the checkpoint's folder is not there any more. Then the epoch ends,
// and this returns when it has. `temporary` was there before.
bool was_removed(const SharedSave& save, const std::string& temporary, const Error& error) {
  if (!save.removed) return false;
  const auto there = save.fs->exists(temporary);
  if (!there.ok() || *there) return false;
  save.removed(
      fmt::format("{} was removed while worker {} wrote it ({})", temporary, save.rank, error.message()));
  (void)ask(save, kNothing);
  return true;
}

constexpr const char* kBegun = "/begun";  // the name of the attempt
constexpr const char* kDone = "/done";
std::string written_key(int64_t rank) { return fmt::format("/written/{}", rank); }

Status lead_writing(const SharedSave& save, const std::string& temporary, const CellSnapshot& snapshot,
                    Collected& collected) {
  io::FileSystem& fs = *save.fs;
  fault_aside("write", snapshot.info.step, save.rank);
  ASSIGN_OR_RETURN(const auto hashes, write_cells(fs, temporary, snapshot.tensors, snapshot.cells));
  for (size_t i = 0; i < hashes.size(); ++i)
    RETURN_IF_ERROR(collected.add(save.rank, snapshot.cells[i].tensor, snapshot.cells[i].cell, hashes[i]));
  return Status();
}

Status collect_hashes(const SharedSave& save, const std::string& attempt, int64_t step,
                      Collected& collected) {
  for (int64_t rank = 1; rank < save.size; ++rank) {
    ASSIGN_OR_RETURN(const std::string told, ask(save, written_key(rank)));
    if (told.starts_with(kFailed)) return failed(rank, step, told.substr(1));
    const std::string path = io::join_path(hashes_folder(attempt), std::to_string(rank));
    const auto text = save.fs->read_file(path);
    if (!text.ok())
      return failed(rank, step, text.error().message() + " (every worker must see the same files)");
    if (sha256_hex(*text) != told)
      return failed(rank, step, path + " is not what it wrote there; every worker must see the same files");
    RETURN_IF_ERROR(collected.add_text(rank, *text));
  }
  return Status();
}

}  // namespace

checkpoint::AsyncSaver::Write lead_save(SharedSave save, CellSnapshot given, UnfinishedSave* unfinished) {
  const auto snapshot = std::make_shared<const CellSnapshot>(std::move(given));
  const auto write = [save, snapshot]() -> Result<Saved> {
    io::FileSystem& fs = *save.fs;
    const int64_t step = snapshot->info.step;
    const std::string attempt = name_attempt(save, step), temporary = place_of(save, step, attempt);
    Status begun = begin_save(fs, save.root, temporary, snapshot->info, snapshot->tensors);
    if (begun.ok()) begun = fs.make_dirs(hashes_folder(attempt));
    RETURN_IF_ERROR(tell_others(save, kBegun, begun.ok() ? attempt : kFailed + begun.error().message()));
    if (!begun.ok()) return failed(save.rank, step, begun.error().message());
    const auto write_all = [&]() -> Result<Saved> {
      Collected collected(snapshot->info, snapshot->tensors);
      if (const Status own = lead_writing(save, temporary, *snapshot, collected); !own.ok())
        return own.error().code() == ErrorCode::kIo ? failed(save.rank, step, own.error().message())
                                                    : own.error();
      RETURN_IF_ERROR(collect_hashes(save, attempt, step, collected));
      ASSIGN_OR_RETURN(Manifest manifest, collected.manifest());
      RETURN_IF_ERROR(fs.remove_all(hashes_folder(attempt)));
      return finish_save(fs, save.root, temporary, std::move(manifest));
    };
    Result<Saved> saved = write_all();
    if (!saved.ok()) (void)was_removed(save, temporary, saved.error());
    if (saved.ok()) RETURN_IF_ERROR(checkpoint::prune_checkpoints(fs, save.root, step));
    return saved;
  };
  return [save, snapshot, write, unfinished]() -> Result<std::optional<Saved>> {
    Result<Saved> saved = write();
    // A worker that does not receive this learns that the epoch is over.
    (void)tell_others(save, kDone, saved.ok() ? "" : std::string(1, kFailed));
    if (!saved.ok() && unfinished != nullptr) unfinished->snapshot = snapshot;
    if (!saved.ok()) return saved.error();
    return std::optional<Saved>(std::move(saved).value());
  };
}

checkpoint::AsyncSaver::Write join_save(SharedSave save, CellSnapshot given, UnfinishedSave* unfinished) {
  const auto snapshot = std::make_shared<const CellSnapshot>(std::move(given));
  const auto write = [save, snapshot](const std::string& attempt) -> Result<std::string> {
    io::FileSystem& fs = *save.fs;
    const std::string temporary = place_of(save, snapshot->info.step, attempt);
    ASSIGN_OR_RETURN(const bool there, fs.exists(temporary));
    if (!there)
      return not_found(temporary +
                       " is not there, where worker 0 has made it; every worker must see the same files");
    fault_aside("write", snapshot->info.step, save.rank);
    ASSIGN_OR_RETURN(const auto hashes, write_cells(fs, temporary, snapshot->tensors, snapshot->cells));
    const std::string text = hashes_text(snapshot->cells, hashes);
    ASSIGN_OR_RETURN(const auto file,
                     fs.create_once(io::join_path(hashes_folder(attempt), std::to_string(save.rank))));
    RETURN_IF_ERROR(file->append(text));
    RETURN_IF_ERROR(file->close());
    return sha256_hex(text);
  };
  // Ok: the leader has come to an end.
  const auto take_part = [save, snapshot, write]() -> Result<std::string> {
    ASSIGN_OR_RETURN(const std::string attempt, ask(save, kBegun));
    if (!attempt.starts_with(kFailed)) {
      const std::string temporary = place_of(save, snapshot->info.step, attempt);
      const auto begun = save.fs->exists(temporary);
      const Result<std::string> written = write(attempt);
      if (!written.ok() && begun.ok() && *begun && was_removed(save, temporary, written.error()))
        return written.error();
      // A save of an epoch that has ended may have lost its folder to the next one.
      if (!written.ok() && ended(save)) return written.error();
      if (!written.ok() && save.cannot_write) {
        const Error error = failed(save.rank, snapshot->info.step, written.error().message());
        save.cannot_write(error);
        return error;
      }
      RETURN_IF_ERROR(tell_others(save, written_key(save.rank),
                                  written.ok() ? *written : kFailed + written.error().message()));
    }
    return ask(save, kDone);
  };
  return [snapshot, take_part, unfinished]() -> Result<std::optional<Saved>> {
    const Result<std::string> end = take_part();
    // The leader reports what is wrong. If it is gone, the next leader deals the cells out again.
    if ((!end.ok() || end->starts_with(kFailed)) && unfinished != nullptr) unfinished->snapshot = snapshot;
    return std::optional<Saved>();
  };
}

}  // namespace ostro::fleet
