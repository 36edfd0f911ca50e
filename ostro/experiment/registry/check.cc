#include "ostro/experiment/registry/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "ostro/base/hex_digits.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/chain.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/registry/frozen.h"
#include "ostro/experiment/registry/registry.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

using nlohmann::json;

std::string first_digits(const std::string& hash) { return hash.substr(0, 12); }

class Check {
 public:
  Check(io::FileSystem& fs, std::string directory, const Journal& journal, std::string key)
      : fs_(&fs),
        directory_(std::move(directory)),
        path_(io::join_path(directory_, kRegistryFile)),
        journal_(&journal),
        key_(std::move(key)) {}

  Result<std::vector<std::string>> all() {
    ASSIGN_OR_RETURN(const bool exists, fs_->exists(path_));
    std::string text;
    if (exists) {
      ASSIGN_OR_RETURN(text, fs_->read_file(path_));
    }
    read(text);
    check_order();
    find_places();
    for (size_t i = 0; i < lines_.size(); ++i) check_line(i);
    for (size_t i = 0; i < lines_.size(); ++i) RETURN_IF_ERROR(keep_frozen(i));
    if (faults_.empty()) check_done();
    return std::move(faults_);
  }

 private:
  struct Line {
    size_t number = 0;  // in the file, from 1
    HashedLine line;
    std::string previous;                // the hash that it follows
    std::optional<size_t> written;       // its number among the entries that the journal has
    std::optional<RegistryEntry> entry;  // nothing when it has another form
  };

  void fault(const Line& line, const std::string& what) {
    faults_.push_back(fmt::format("{}: line {}: {}", path_, line.number, what));
  }

  // Lines of the file, each behind the one that it follows: as the journal has it, or else as the file has
  // it.
  void read(const std::string& text) {
    std::string before, format;
    size_t number = 0;
    for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Line line;
      line.number = ++number;
      json entry = json::parse(text.substr(begin, end - begin), nullptr, false);
      if (!entry.is_object() || !entry.contains("h") || !entry["h"].is_string() ||
          line_text(entry) != text.substr(begin, end - begin)) {
        fault(line, "is no line of a registry");
        continue;
      }
      line.line.hash = entry["h"];
      entry.erase("h");
      line.line.entry = line_text(entry);
      if (number == 1) {
        format = before = line.line.hash;
        if (line_hash("", line.line.entry) != line.line.hash) fault(line, "was altered");
        continue;
      }
      const auto& known = journal_->registry();
      const auto found = std::find(known.begin(), known.end(), line.line.hash);
      if (found != known.end()) line.written = static_cast<size_t>(found - known.begin());
      line.previous = !line.written ? before : *line.written == 0 ? format : known[*line.written - 1];
      before = line.line.hash;
      line.entry = read_entry(line.line, line.previous);
      lines_.push_back(std::move(line));
    }
  }

  void check_order() {
    const auto& known = journal_->registry();
    for (size_t i = 0; i < known.size(); ++i)
      if (std::none_of(lines_.begin(), lines_.end(), [&](const Line& l) { return l.written == i; }))
        faults_.push_back(
            fmt::format("{}: an entry was removed or altered: entry {} of the journal, {}, is not in it",
                        path_, i + 1, first_digits(known[i])));
    for (size_t i = 1; i < lines_.size(); ++i)
      if (lines_[i].written && lines_[i - 1].written && *lines_[i].written <= *lines_[i - 1].written)
        fault(lines_[i], fmt::format("was reordered: it was written before line {}", lines_[i - 1].number));
  }

  void check_line(size_t i) {
    const Line& line = lines_[i];
    if (line_hash(line.previous, line.line.entry) != line.line.hash)
      fault(line, "was altered: its hash \"h\" is not that of its text behind the line before");
    if (!line.entry) {
      fault(line, "is a kind of line that this version does not know");
      return;
    }
    const RegistryEntry& entry = *line.entry;
    if (i > 0 && lines_[i - 1].entry && entry.time < lines_[i - 1].entry->time)
      fault(line, fmt::format("was backdated: it claims the time {}, and the line before it {}", entry.time,
                              lines_[i - 1].entry->time));
    check_place(i);
    check_signature(i);
  }

  // The journal's line of an entry stands right behind the head that the entry names.
  void check_place(size_t i) {
    const Line& line = lines_[i];
    const bool torn = i + 1 == lines_.size() && line.entry->journal == journal_->head();
    if (!line.written && !torn)
      fault(line, "was altered or put in later: the journal has no entry with its hash");
    const auto [first, last] = places_.equal_range(line.line.hash);
    for (auto it = first; it != last; ++it) {
      const size_t at = it->second;
      const std::string head = at == 0 ? "" : journal_->lines()[at - 1].hash;
      if (line.entry->journal != head)
        fault(line,
              fmt::format("was backdated: it claims another place in the journal than line {}", at + 1));
    }
  }

  void find_places() {
    const auto& done = journal_->lines();
    for (size_t at = 0; at < done.size(); ++at) {
      const json entry = json::parse(done[at].entry);
      if (entry["kind"] == "registry") places_.emplace(entry["sha256"], at);
    }
  }

  void check_signature(size_t i) {
    const Line& line = lines_[i];
    const auto name = [](const std::string& pem) {
      if (pem.empty()) return std::string("no key");
      const auto key = bundle::PublicKey::parse(pem, "a key");
      return key.ok() ? "the key " + first_digits(key->fingerprint()) : std::string("what is no key");
    };
    const std::string& pem = line.entry->public_key;
    const std::string& wanted =
        !key_.empty() || i == 0 || !lines_[i - 1].entry ? key_ : lines_[i - 1].entry->public_key;
    if ((i > 0 || !key_.empty()) && pem != wanted)
      fault(line, fmt::format("is signed by another key: by {}, not by {}", name(pem), name(wanted)));
    if (pem.empty()) return;
    const auto key = bundle::PublicKey::parse(pem, "its key");
    const auto signature = from_hex_digits(line.entry->signature);
    if (!key.ok() || !signature || !key->has_signed(line.entry->signed_text, *signature))
      fault(line, fmt::format("its signature is not one of {} over this line", name(pem)));
  }

  // Reads the frozen text of an entry.
  Status keep_frozen(size_t i) {
    if (!lines_[i].entry || lines_[i].entry->kind != "register") return {};
    const std::string& wanted = lines_[i].entry->registration;
    const std::string path = frozen_path(directory_, wanted);
    const auto text = fs_->read_file(path);
    if (!text.ok() && text.error().code() != ErrorCode::kNotFound) return text.error();
    if (!text.ok()) {
      faults_.push_back(
          fmt::format("{}: is gone; line {} of the registry registers it", path, lines_[i].number));
    } else if (sha256_hex(*text) != wanted) {
      faults_.push_back(
          fmt::format("{}: was changed: its SHA-256 is {}, and line {} of the registry registers {}", path,
                      sha256_hex(*text), lines_[i].number, wanted));
    } else if (!is_frozen_text(*text)) {
      faults_.push_back(fmt::format("{}: is nothing that this version registers", path));
    } else {
      frozen_[wanted] = frozen_steps(*text);
    }
    return {};
  }

  // What was done under a registration stands behind it in the journal and says so, with the seeds that
  // follow from it, and the run itself has the configuration that the journal says.
  void check_done() {
    std::string registration;
    std::map<std::string, std::string> beacons;
    std::string last;
    std::set<std::string> fingerprints;
    std::map<std::string, std::string> contents;              // of steps, as they were done last
    std::set<std::pair<std::string, std::string>> forecasts;  // registered: step and content
    for (const HashedLine& done : journal_->lines()) {
      const json entry = json::parse(done.entry);
      const auto say = [&](const std::string& what) {
        faults_.push_back(fmt::format("{}: step {}: {}", io::join_path(directory_, kJournalFile),
                                      entry["step"].get<std::string>(), what));
      };
      if (entry["kind"] == "registry") {
        for (const Line& line : lines_)
          if (entry["sha256"] == line.line.hash) {
            last = line.line.hash;
            if (line.entry->kind == "register") registration = line.entry->registration;
            if (line.entry->kind == "beacon") beacons.emplace(line.entry->registration, line.entry->value);
            if (line.entry->kind == "forecast") forecasts.emplace(line.entry->forecast, line.entry->content);
          }
      }
      if (entry["kind"] != "done") continue;
      const bool is_new = fingerprints.insert(entry["fingerprint"]).second;
      const std::string step = entry["step"];
      contents[step] = entry["content"];
      if (!entry.contains("registration")) {
        if (is_new && frozen_.contains(registration) && frozen_[registration].contains(step) &&
            frozen_[registration][step].waits())
          say("waits for the registration, and does not say under which entry of the registry it was done");
        continue;
      }
      if (entry["registration"] != last) {
        say(fmt::format("was done under the registry's entry {}, and {} was the last one then",
                        first_digits(entry["registration"]), last.empty() ? "none" : first_digits(last)));
        continue;
      }
      if (!frozen_.contains(registration)) {
        say("was done before any plan was registered");
        continue;
      }
      if (!frozen_[registration].contains(step)) {
        say("the registered plan has no such step");
        continue;
      }
      std::string wrong =
          wrong_seed(frozen_[registration][step], entry["recipe"], {registration, beacons[registration]});
      if (wrong.empty() && is_new)
        wrong =
            wrong_config(io::join_path(output_folder(directory_, entry["fingerprint"]), chain::kChainFile),
                         entry["recipe"]);
      const std::string& forecast = frozen_[registration][step].forecast;
      if (wrong.empty() && is_new && !forecast.empty() && !forecasts.contains({forecast, contents[forecast]}))
        wrong = fmt::format("was done before the forecast that it checks, {}, was registered", forecast);
      if (!wrong.empty()) say(wrong);
    }
  }

  // How the configuration of a run's chain, with its amends, differs from that of its recipe. Empty of a
  // chain that is gone or damaged: the list of the output's files tells.
  std::string wrong_config(const std::string& path, const std::string& recipe) const {
    const json made = json::parse(recipe);
    if (!made["parameters"].contains("config")) return "";
    const auto begun = chain::read_chain_until(*fs_, path, 0);
    if (!begun.ok()) return "";
    if (json::parse(begun->genesis().config) != made["parameters"]["config"]) {
      const auto all =
          chain::object_differences(begun->genesis().config, line_text(made["parameters"]["config"]));
      return fmt::format("{}: the run was made with another configuration than its recipe in the journal: {}",
                         path, all.empty() ? "in the order of its keys" : all[0]);
    }
    const auto chain = chain::read_chain(*fs_, path);
    if (!chain.ok()) return "";
    json amends = json::array();
    for (const chain::ChainLink& link : chain->links)
      if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry)) {
        json difference = json::parse(amend->difference);
        for (const char* data : {"data", "data_roots"}) difference.erase(data);  // the recipe's inputs
        amends.push_back({{"step", amend->step}, {"difference", difference}});
      }
    return amends == made["parameters"].value("amends", json::array())
               ? ""
               : fmt::format("{}: the run was amended otherwise than its recipe in the journal says", path);
  }

  io::FileSystem* fs_;
  std::string directory_, path_;
  const Journal* journal_;
  std::string key_;
  std::vector<Line> lines_;
  std::multimap<std::string, size_t> places_;                        // the journal's lines, by entry
  std::map<std::string, std::map<std::string, FrozenStep>> frozen_;  // by registration
  std::vector<std::string> faults_;
};

}  // namespace

Result<std::vector<std::string>> registry_faults(io::FileSystem& fs, const std::string& lab_directory,
                                                 const Journal& journal, const std::string& key) {
  return Check(fs, lab_directory, journal, key).all();
}

}  // namespace ostro::lab
