#include "ostro/chain/chain.h"

#include <algorithm>
#include <memory>

#include "ostro/io/files/atomic_file.h"

namespace ostro::chain {
namespace {

Result<Chain> parse_chain(std::string_view text, const std::string& path, int64_t to_step, bool to_end) {
  Chain chain;
  while (static_cast<size_t>(chain.bytes) < text.size()) {
    const size_t begin = static_cast<size_t>(chain.bytes), newline = text.find('\n', begin);
    const bool reached = !chain.links.empty() && chain.last_step() >= to_step;
    if (newline == std::string_view::npos) {
      chain.torn_bytes = static_cast<int64_t>(text.size() - begin);
      break;
    }
    const std::string where = fmt::format("{}: line {}", path, chain.links.size() + 1);
    Result<ChainLink> link = parse_chain_line(text.substr(begin, newline - begin),
                                              chain.links.empty() ? std::string_view() : chain.head(), where);
    if (!to_end && reached && (!link.ok() || entry_step(link->entry) > to_step)) return chain;
    if (!link.ok()) return link.error();
    if (const Status order = check_order(chain.links, link->entry); !order.ok())
      return corrupt(fmt::format("{}: {}", where, order.error().message()));
    chain.links.push_back(std::move(*link));
    chain.bytes = static_cast<int64_t>(newline) + 1;
  }
  if (chain.links.empty()) return corrupt(fmt::format("{}: holds no entry", path));
  return chain;
}

}  // namespace

const GenesisEntry& Chain::genesis() const { return std::get<GenesisEntry>(links.front().entry); }

const ChainLink* Chain::find_step(int64_t step) const {
  const auto found = std::lower_bound(links.begin(), links.end(), step, [](const ChainLink& link, int64_t s) {
    return entry_step(link.entry) < s;
  });
  // The genesis of a fork bears the fork's step; a step's own entry is the first that bears its number.
  return found != links.end() && std::holds_alternative<StepEntry>(found->entry) &&
                 entry_step(found->entry) == step
             ? &*found
             : nullptr;
}

const std::string* Chain::find_checkpoint(int64_t step) const {
  for (const ChainLink& link : links)
    if (const auto* entry = std::get_if<CheckpointEntry>(&link.entry);
        entry != nullptr && entry->step == step)
      return &entry->name;
  return nullptr;
}

int64_t Chain::newest_checkpoint() const {
  for (auto link = links.rbegin(); link != links.rend(); ++link)
    if (const auto* entry = std::get_if<CheckpointEntry>(&link->entry)) return entry->step;
  return -1;
}

const ChainLink* Chain::find_hash(std::string_view hash) const {
  const auto found =
      std::find_if(links.begin(), links.end(), [&](const ChainLink& link) { return link.hash == hash; });
  return found != links.end() ? &*found : nullptr;
}

Status check_order(const std::vector<ChainLink>& links, const ChainEntry& entry) {
  const bool is_genesis = std::holds_alternative<GenesisEntry>(entry);
  if (is_genesis != links.empty())
    return invalid_argument(is_genesis ? "a second genesis" : "the first entry is not a genesis");
  if (is_genesis) return {};
  const int64_t last = entry_step(links.back().entry), step = entry_step(entry);
  if (std::holds_alternative<StepEntry>(entry)) {
    if (step == last + 1) return {};
    if (links.size() == 1)
      return invalid_argument(fmt::format(
          "the first step is {}, but the genesis says that {} were done before: a run that goes on "
          "with the state of another has \"fork\" in its genesis, with that run's head",
          step, last));
    return invalid_argument(fmt::format("step {} follows step {}", step, last));
  }
  if (step != last)
    return invalid_argument(
        fmt::format("an amend or checkpoint entry of step {} follows step {}", step, last));
  const bool is_amend = std::holds_alternative<AmendEntry>(entry);
  // The state before the first step is drawn, or the genesis names it: a checkpoint entry of it would say
  // that the run began with another one.
  if (step == entry_step(links.front().entry))
    return invalid_argument(fmt::format("{} after step {}, before any step of this run",
                                        is_amend ? "an amend" : "a checkpoint entry", step));
  if (is_amend) return {};
  for (size_t i = links.size(); i-- > 0 && entry_step(links[i].entry) == step;) {
    if (std::holds_alternative<CheckpointEntry>(links[i].entry))
      return invalid_argument(fmt::format("a second checkpoint entry of step {}", step));
    if (std::holds_alternative<AmendEntry>(links[i].entry))
      return invalid_argument(fmt::format("the checkpoint entry of step {} behind an amend of it", step));
  }
  return {};
}

Result<Chain> read_chain(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  return parse_chain(text, path, 0, /*to_end=*/true);
}

Result<Chain> read_chain_until(io::FileSystem& fs, const std::string& path, int64_t step) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  ASSIGN_OR_RETURN(Chain chain, parse_chain(text, path, step, /*to_end=*/false));
  chain.torn_bytes = 0;
  return chain;
}

Result<Chain> read_chain_to(io::FileSystem& fs, const std::string& path, int64_t step) {
  ASSIGN_OR_RETURN(Chain chain, read_chain_until(fs, path, step));
  const int64_t last = chain.last_step();
  if (last == step) return chain;
  return corrupt(fmt::format("{}: {} at step {}, but step {} was asked for", path,
                             last < step ? "ends" : "begins", last, step));
}

Result<Chain> truncate_to_step(io::FileSystem& fs, const std::string& path, int64_t step) {
  // In an object store the cut has the condition that the chain is still the one that is read here: what
  // another process appends meanwhile must not go. So it is opened first.
  const bool store = fs.is_object_store(path);
  std::unique_ptr<io::WritableFile> opened;
  if (store) {
    RETURN_IF_ERROR(fs.stat(path));  // otherwise opening makes it
    ASSIGN_OR_RETURN(opened, fs.open_append(path));
  }
  ASSIGN_OR_RETURN(std::string text, fs.read_file(path));
  ASSIGN_OR_RETURN(Chain chain, read_chain_to(fs, path, step));
  if (static_cast<int64_t>(text.size()) == chain.bytes) return chain;
  if (store) {
    RETURN_IF_ERROR(fs.truncate(path, chain.bytes));
    return chain;
  }
  text.resize(static_cast<size_t>(chain.bytes));
  RETURN_IF_ERROR(io::write_file_atomically(fs, path, text));
  return chain;
}

}  // namespace ostro::chain
