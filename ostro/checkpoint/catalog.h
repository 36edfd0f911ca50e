// list_checkpoints, prune_checkpoints: the checkpoints of a run: a directory `step-NNNNNNNN` for each, below
// one root. Errors are those of the file system and of parse_manifest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/checkpoint/manifest.h"
#include "ostro/io/files/file_system.h"

namespace ostro::checkpoint {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kCheckpointsFolder = "checkpoints";  // in a run directory
// The file beside the folder of an imported checkpoint that lists the files from which it was made.
inline constexpr const char* kOriginFile = "origin.json";

// Ends the name of the manifest that is kept beside the folder of a checkpoint in an object store while
// another takes its place.
inline constexpr const char* kReplacedManifest = ".replaced.json";

// "step-00000042". Steps above 99,999,999 have more digits.
std::string step_directory(int64_t step);
// The step in such a name, also in that of a checkpoint that is being replaced ("step-00000042.old"); nothing
// for any other name.
std::optional<int64_t> step_of_directory(std::string_view name);

struct Entry {
  int64_t step = 0;
  std::string path;
  bool operator==(const Entry&) const = default;
};

// Returns all checkpoints by ascending step, including damaged ones, without directories that are being
// written or removed. A missing root gives none.
Result<std::vector<Entry>> list_checkpoints(io::FileSystem& fs, const std::string& root);

// Returns the checkpoints that the path `where` may mean, the best first: the checkpoint there, or those of
// the run there (RUN/checkpoints) from the newest on. Error: kNotFound when it is neither a checkpoint nor a
// run that has one.
Result<std::vector<std::string>> find_checkpoints(io::FileSystem& fs, const std::string& where);

// The manifest of one checkpoint.
Result<Manifest> read_manifest(io::FileSystem& fs, const std::string& path);

// Removes a checkpoint. After a power loss at any moment it exists either wholly or not at all.
Status remove_checkpoint(io::FileSystem& fs, const std::string& path);

// Renames a checkpoint that is damaged, so that no reader takes it for one and a person can look at it.
// Returns where it is: "damaged-step-00000042" beside the others, or with a number behind that. Durable when
// it returns. In an object store it is copied there, object by object.
Result<std::string> set_aside(io::FileSystem& fs, const std::string& path);

// Removes temporary checkpoints other than the two newest of any kind: the newest, and the one that a restore
// falls back to when that is damaged. Only steps up to `newest`, the one just saved, are counted and removed:
// a run that refused later checkpoints and continued from this one must not lose its own because of them.
// Checkpoints with an unreadable manifest are neither counted nor removed, so that a person can look at them.
Status prune_checkpoints(io::FileSystem& fs, const std::string& root, int64_t newest);

// Removes the directories that interrupted saves and removals left, and restores a checkpoint whose
// replacement was never finished. No save may be running.
Status remove_leftovers(io::FileSystem& fs, const std::string& root);

}  // namespace ostro::checkpoint
