#include "ostro/io/files/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

struct Node;
using NodePtr = std::shared_ptr<Node>;
using Names = std::map<std::string, NodePtr>;

// An atomic change of a directory: names, and the file or directory of each after it (null: removed).
using Change = std::vector<std::pair<std::string, NodePtr>>;

struct Node {
  bool is_directory = false;
  int64_t mtime_ns = 0;
  std::string data, durable_data;
  Names names, durable_names;
  std::vector<Change> changes;  // the changes from durable_names to names, in order
};

void apply_change(Names& names, const Change& change) {
  for (const auto& [name, node] : change) {
    if (node == nullptr) {
      names.erase(name);
    } else {
      names[name] = node;
    }
  }
}

void commit(Node& directory, Change change) {
  apply_change(directory.names, change);
  directory.changes.push_back(std::move(change));
}

// A small random generator for the outcome of a crash. The same seed always gives the same disk.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  size_t below(size_t n) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<size_t>((z ^ (z >> 31)) % n);
  }

 private:
  uint64_t state_;
};

// The content after a crash of a file whose durable bytes are `durable`, and whose content now is `data`.
std::string torn(const std::string& durable, const std::string& data, Chance& chance) {
  if (!data.starts_with(durable)) {  // truncated and written again: the old bytes, or some of the new ones
    if (chance.below(3) == 0) return durable;
    return data.substr(0, chance.below(data.size() + 1));
  }
  std::string kept = data.substr(0, durable.size() + chance.below(data.size() - durable.size() + 1));
  if (kept.size() > durable.size() && chance.below(3) == 0) {
    const size_t begin = durable.size() + chance.below(kept.size() - durable.size());
    std::fill(kept.begin() + static_cast<ptrdiff_t>(begin),
              kept.begin() + static_cast<ptrdiff_t>(std::min(kept.size(), begin + 512)), '\0');
  }
  return kept;
}

// Sets a file or directory and everything below it to a state that a crash may leave: names change by a
// prefix of the changes since the last sync, as in a file system with a journal. Without `chance` only
// durable state is kept.
void crash_tree(Node& node, Chance* chance) {
  if (!node.is_directory) {
    node.durable_data = chance ? torn(node.durable_data, node.data, *chance) : node.durable_data;
    node.data = node.durable_data;
    return;
  }
  const size_t kept = chance ? chance->below(node.changes.size() + 1) : 0;
  for (size_t i = 0; i < kept; ++i) apply_change(node.durable_names, node.changes[i]);
  node.changes.clear();
  node.names = node.durable_names;
  for (auto& [name, child] : node.names) crash_tree(*child, chance);
}

void make_durable(Node& node) {
  node.durable_data = node.data;
  node.durable_names = node.names;
  node.changes.clear();
  for (auto& [name, child] : node.names) make_durable(*child);
}

Error failure(ErrorCode code, const char* what, const std::string& path, const char* reason) {
  return Error(code, fmt::format("{}: cannot {}: {}", path, what, reason));
}

Error absent(const char* what, const std::string& path) {
  return failure(ErrorCode::kNotFound, what, path, "No such file or directory");
}

}  // namespace

struct MemoryFileSystem::State {
  std::mutex mutex;
  NodePtr root = std::make_shared<Node>(Node{.is_directory = true});
  std::map<std::string, std::string> locks;  // clean path -> owner
  uint64_t epoch = 0;             // number of crashes so far; handles from before the last one are invalid
  int64_t clock = 1'000'000'000;  // advances by one second per change

  static std::string normal(const std::string& path) {
    std::string clean = clean_path(path);
    if (clean == ".") return "";
    return clean.starts_with('/') ? clean.substr(1) : clean;
  }

  NodePtr find(const std::string& path) const {
    NodePtr node = root;
    const std::string clean = normal(path);
    for (size_t begin = 0; node != nullptr && begin < clean.size();) {
      const size_t end = std::min(clean.find('/', begin), clean.size());
      const auto child = node->names.find(clean.substr(begin, end - begin));
      node = child == node->names.end() ? nullptr : child->second;
      begin = end + 1;
    }
    return node;
  }

  NodePtr find_parent(const std::string& path) const {
    const NodePtr parent = find(parent_path("/" + normal(path)));
    return parent != nullptr && parent->is_directory ? parent : nullptr;
  }

  Result<NodePtr> find_or_create_file(const std::string& path) {
    if (NodePtr node = find(path)) {
      if (node->is_directory) return failure(ErrorCode::kIo, "create", path, "Is a directory");
      return node;
    }
    const NodePtr parent = find_parent(path);
    if (parent == nullptr) return absent("create", path);
    auto node = std::make_shared<Node>();
    node->mtime_ns = clock += 1'000'000'000;
    commit(*parent, {{base_name(normal(path)), node}});
    return node;
  }
};

class MemoryFileSystem::ReadHandle final : public RandomAccessFile {
 public:
  ReadHandle(std::shared_ptr<State> state, NodePtr node, std::string path)
      : state_(std::move(state)),
        node_(std::move(node)),
        path_(std::move(path)),
        size_(static_cast<int64_t>(node_->data.size())),
        epoch_(state_->epoch) {}

  Status read(int64_t offset, std::span<std::byte> out) const override {
    OSTRO_CHECK(offset >= 0, "{}: read at offset {}", path_, offset);
    const std::lock_guard lock(state_->mutex);
    if (epoch_ != state_->epoch) return failure(ErrorCode::kIo, "read", path_, "the disk lost power");
    const auto size = static_cast<int64_t>(node_->data.size());
    const auto wanted = static_cast<int64_t>(out.size());
    if (wanted > size || offset > size - wanted) {
      return corrupt(fmt::format("{}: ends at byte {}, but bytes [{}, {}) were expected", path_, size, offset,
                                 offset + wanted));
    }
    if (wanted > 0) std::memcpy(out.data(), node_->data.data() + offset, out.size());
    return {};
  }
  int64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  std::shared_ptr<State> state_;
  NodePtr node_;
  std::string path_;
  int64_t size_;
  uint64_t epoch_;
};

class MemoryFileSystem::WriteHandle final : public WritableFile {
 public:
  WriteHandle(std::shared_ptr<State> state, NodePtr node, std::string path)
      : state_(std::move(state)), node_(std::move(node)), path_(std::move(path)), epoch_(state_->epoch) {}

  Status append(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(state_->mutex);
    if (epoch_ != state_->epoch) return failure(ErrorCode::kIo, "write", path_, "the disk lost power");
    node_->data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    node_->mtime_ns = state_->clock += 1'000'000'000;
    return {};
  }

  Status sync() override {
    const std::lock_guard lock(state_->mutex);
    if (epoch_ != state_->epoch) return failure(ErrorCode::kIo, "sync", path_, "the disk lost power");
    node_->durable_data = node_->data;
    return {};
  }

  Status close() override { return {}; }

 private:
  std::shared_ptr<State> state_;
  NodePtr node_;
  std::string path_;
  uint64_t epoch_;
};

class MemoryFileSystem::Lock final : public FileLock {
 public:
  Lock(std::shared_ptr<State> state, std::string key)
      : state_(std::move(state)), key_(std::move(key)), epoch_(state_->epoch) {}
  ~Lock() override {
    const std::lock_guard lock(state_->mutex);
    if (epoch_ == state_->epoch) state_->locks.erase(key_);
  }

 private:
  std::shared_ptr<State> state_;
  std::string key_;
  uint64_t epoch_;
};

MemoryFileSystem::MemoryFileSystem() : state_(std::make_shared<State>()) {}
MemoryFileSystem::~MemoryFileSystem() = default;

void MemoryFileSystem::crash(uint64_t seed) {
  const std::lock_guard lock(state_->mutex);
  Chance chance(seed);
  crash_tree(*state_->root, seed == 0 ? nullptr : &chance);
  state_->locks.clear();
  ++state_->epoch;
}

std::string* MemoryFileSystem::content(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(path);
  return node == nullptr || node->is_directory ? nullptr : &node->data;
}

Result<std::unique_ptr<RandomAccessFile>> MemoryFileSystem::open(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  NodePtr node = state_->find(path);
  if (node == nullptr) return absent("open", path);
  if (node->is_directory) return failure(ErrorCode::kIo, "open", path, "Is a directory");
  return std::unique_ptr<RandomAccessFile>(std::make_unique<ReadHandle>(state_, std::move(node), path));
}

Result<std::unique_ptr<WritableFile>> MemoryFileSystem::create(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  ASSIGN_OR_RETURN(NodePtr node, state_->find_or_create_file(path));
  node->data.clear();
  return std::unique_ptr<WritableFile>(std::make_unique<WriteHandle>(state_, std::move(node), path));
}

Result<std::unique_ptr<WritableFile>> MemoryFileSystem::open_append(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  ASSIGN_OR_RETURN(NodePtr node, state_->find_or_create_file(path));
  return std::unique_ptr<WritableFile>(std::make_unique<WriteHandle>(state_, std::move(node), path));
}

Result<FileInfo> MemoryFileSystem::stat(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(path);
  if (node == nullptr) return absent("stat", path);
  return FileInfo{static_cast<int64_t>(node->data.size()), node->mtime_ns, node->is_directory};
}

Status MemoryFileSystem::truncate(const std::string& path, int64_t size) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(path);
  if (node == nullptr || node->is_directory) return absent("truncate", path);
  node->data.resize(static_cast<size_t>(size));
  node->durable_data = node->data;
  return {};
}

Status MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(from);
  const NodePtr source = state_->find_parent(from), target = state_->find_parent(to);
  if (node == nullptr || source == nullptr || target == nullptr) return absent("rename", from);
  if (const NodePtr old = state_->find(to)) {
    if (old->is_directory != node->is_directory) {
      return failure(ErrorCode::kIo, "rename", to, old->is_directory ? "Is a directory" : "Not a directory");
    }
    if (!old->names.empty()) return failure(ErrorCode::kIo, "rename", to, "Directory not empty");
  }
  const std::string old_name = base_name(State::normal(from)), new_name = base_name(State::normal(to));
  if (source == target) {
    commit(*source, {{old_name, nullptr}, {new_name, node}});
  } else {
    commit(*target, {{new_name, node}});
    commit(*source, {{old_name, nullptr}});
  }
  return {};
}

Status MemoryFileSystem::remove(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(path), parent = state_->find_parent(path);
  if (node == nullptr || parent == nullptr) return absent("remove", path);
  if (!node->names.empty()) return failure(ErrorCode::kIo, "remove", path, "Directory not empty");
  commit(*parent, {{base_name(State::normal(path)), nullptr}});
  return {};
}

Result<std::vector<DirEntry>> MemoryFileSystem::list(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(path);
  if (node == nullptr || !node->is_directory) return absent("list", path);
  std::vector<DirEntry> entries;
  for (const auto& [name, child] : node->names) entries.push_back({name, child->is_directory});
  return entries;
}

Status MemoryFileSystem::make_dirs(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  NodePtr node = state_->root;
  const std::string clean = State::normal(path);
  for (size_t begin = 0; begin < clean.size();) {
    const size_t end = std::min(clean.find('/', begin), clean.size());
    const std::string name = clean.substr(begin, end - begin);
    NodePtr& child = node->names[name];
    if (child == nullptr) {
      child = std::make_shared<Node>(Node{.is_directory = true});
      node->durable_names = node->names;
      node->changes.clear();
    }
    if (!child->is_directory) return failure(ErrorCode::kIo, "make directory", path, "Not a directory");
    node = child;
    begin = end + 1;
  }
  return {};
}

Status MemoryFileSystem::sync_dir(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(path);
  if (node == nullptr || !node->is_directory) return absent("sync directory", path);
  node->durable_names = node->names;
  node->changes.clear();
  return {};
}

Status MemoryFileSystem::sync_tree(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  const NodePtr node = state_->find(path);
  if (node == nullptr || !node->is_directory) return absent("sync everything below", path);
  make_durable(*node);
  return {};
}

Result<std::unique_ptr<FileLock>> MemoryFileSystem::lock(const std::string& path, std::string_view owner) {
  const std::lock_guard lock(state_->mutex);
  if (state_->find_parent(path) == nullptr) return absent("open lock", path);
  const std::string key = State::normal(path);
  const auto [held, taken] = state_->locks.try_emplace(key, owner);
  if (!taken) return busy(fmt::format("{}: locked by {}", path, held->second));
  return std::unique_ptr<FileLock>(std::make_unique<Lock>(state_, key));
}

}  // namespace ostro::io
