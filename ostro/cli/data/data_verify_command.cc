// ostro data verify
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/batches/packing/pack_verify.h"
#include "ostro/cli/data/data_session.h"
#include "ostro/cli/main/commands.h"
#include "ostro/data/store/store_plan.h"
#include "ostro/data/store/store_verify.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

using batches::PackIndexReport;
using batches::PackIndexState;
using data::Component;
using nlohmann::json;

struct Damage {
  int64_t count = 0;
  Error first{ErrorCode::kCorrupt, ""};

  void add(const Error& error) {
    if (count++ == 0) first = error;
  }
};

// What was found of a component's store.
struct Findings {
  std::string text;
  json object = json::object();
  Damage damage;

  void add_damage(const Error& error) {
    damage.add(error);
    text += fmt::format("damaged  {}\n", error.message());
  }
};

std::string title(const std::string& what, const Component& component) {
  return component.name.empty() ? what : what + " " + component.name;
}

const char* state_name(PackIndexState state) {
  switch (state) {
    case PackIndexState::kGood: return "ok";
    case PackIndexState::kStale: return "stale";
    case PackIndexState::kDamaged: return "damaged";
    case PackIndexState::kUnread: return "unread";
  }
  return "";
}

void add_arrays(const data::StoreReport& report, Findings& found) {
  json& arrays = found.object["arrays"] = json::array();
  for (const data::VerifiedArrayReport& array : report.arrays) {
    json entry = {{"path", array.path}, {"elements", array.elements}, {"bytes", array.bytes}};
    entry["state"] = array.status.ok() ? "ok" : "damaged";
    if (array.status.ok()) {
      found.text +=
          fmt::format("ok       {}: {} elements, {} bytes\n", array.path, array.elements, array.bytes);
    } else {
      found.add_damage(array.status.error());
      entry["error"] = array.status.error().message();
    }
    arrays.push_back(std::move(entry));
  }
}

// A store whose arrays are damaged is not damaged in another place because its indices cannot be compared.
void add_packs(const std::vector<PackIndexReport>& packs, bool is_packed, Findings& found) {
  if (packs.empty() && !is_packed) return;
  const bool arrays_damaged = found.damage.count > 0;
  json& indices = found.object["pack_indices"] = json::array();
  int64_t counts[4] = {};
  for (const PackIndexReport& pack : packs) {
    ++counts[static_cast<size_t>(pack.state)];
    json entry = {{"path", pack.path}, {"bytes", pack.bytes}, {"state", state_name(pack.state)}};
    if (!pack.status.ok()) entry["error"] = pack.status.error().message();
    indices.push_back(std::move(entry));
    switch (pack.state) {
      case PackIndexState::kGood:
        found.text +=
            fmt::format("ok       {}: {} sequences, {} bytes\n", pack.path, pack.sequences, pack.bytes);
        break;
      case PackIndexState::kStale:
        found.text += fmt::format("stale    {}: of another ledger hash or format; not used\n", pack.path);
        break;
      case PackIndexState::kDamaged: found.add_damage(pack.status.error()); break;
      case PackIndexState::kUnread:
        if (!arrays_damaged) found.damage.add(pack.status.error());
        found.text += fmt::format("unread   {}: {}\n", pack.path, pack.status.error().message());
        break;
    }
  }
  if (packs.empty()) {
    found.text += "pack indices: none; made when they are first needed\n";
    return;
  }
  found.text += fmt::format("pack indices: {} ok, {} stale, {} damaged", counts[0], counts[1], counts[2]);
  found.text += counts[3] == 0 ? "\n" : fmt::format(", {} unread\n", counts[3]);
}

Result<Findings> verify_component(const prepare::Session& session, const Component& component) {
  io::FileSystem& fs = session.fs;
  ASSIGN_OR_RETURN(const data::StoreFolder folder, data::store_folder(fs, session.options, component));
  Findings found;
  if (!component.name.empty()) found.text = fmt::format("component {}\n", component.name);
  BuildProgressLine line(title("verifying", component));
  const auto report =
      data::verify_arrays(fs, folder.ledger, {.threads = session.threads, .progress = line.callback()});
  line.end();
  if (!report.ok()) {
    found.add_damage(report.error());
    found.object["error"] = report.error().message();
    return found;
  }
  found.object["ledger_hash"] = report->ledger_hash;
  add_arrays(*report, found);
  BuildProgressLine packs_line(title("verifying pack indices", component));
  const auto packs = batches::verify_packs(fs, folder.ledger, {.progress = packs_line.callback()});
  packs_line.end();
  if (packs.ok()) {
    add_packs(*packs, data::is_packed(component.format), found);
  } else {
    found.add_damage(packs.error());
    found.object["error"] = packs.error().message();
  }
  found.text += fmt::format("ledger hash {}\n", report->ledger_hash);
  return found;
}

Status verify_all(const prepare::Session& session, bool as_json) {
  Damage damage;
  json all = json::object();
  for (const Component& component : session.components) {
    ASSIGN_OR_RETURN(Findings found, verify_component(session, component));
    if (found.damage.count > 0) {
      if (damage.count == 0) damage.first = found.damage.first;
      damage.count += found.damage.count;
    }
    if (!as_json) RETURN_IF_ERROR(write_stdout(found.text));
    all[component.name] = std::move(found.object);
  }
  if (as_json) {
    if (session.components[0].name.empty()) all = json(all[""]);
    RETURN_IF_ERROR(write_stdout(all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"));
  }
  if (damage.count == 0) return {};
  if (damage.count == 1) return damage.first;
  return damage.first.with_context(fmt::format("{} places are damaged; the first", damage.count));
}

}  // namespace

int data_verify_command(Args args) {
  std::string component;
  bool as_json = false;
  args.summary(
      "Reads every array of the token stores and compares it with the ledger: the CRC-32C of each chunk and "
      "the\n"
      "SHA-256 of the whole; and every pack index with what packing the rows gives. Names every damaged "
      "array,\n"
      "with its first damaged chunk, and index, with its first wrong byte; reads no text, writes nothing.");
  args.option("--component", &component, "NAME", "only this one");
  args.flag("--json", &as_json, "one line of JSON");
  args.config();
  if (const auto code = args.parse()) return *code;
  return with_data_session(args, component,
                           [&](const prepare::Session& session) { return verify_all(session, as_json); });
}

}  // namespace ostro::cli
