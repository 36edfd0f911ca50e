// ostro data verify
#include <fmt/core.h>

#include "ostro/cli/build_progress.h"
#include "ostro/cli/commands.h"
#include "ostro/cli/data_session.h"
#include "ostro/cli/standard_streams.h"
#include "ostro/data/store_plan.h"
#include "ostro/data/store_verify.h"
#include "ostro/io/routing_file_system.h"

namespace ostro::cli {
namespace {

using data::Component;

struct Damage {
  int64_t count = 0;
  Error first{ErrorCode::kCorrupt, ""};

  void add(const Error& error) {
    if (count++ == 0) first = error;
  }
};

// Prints what was found of a component's store.
Status verify_component(const DataSession& session, const Component& component, Damage& damage) {
  io::FileSystem& fs = io::default_file_system();
  ASSIGN_OR_RETURN(const data::StoreFolder folder, data::store_folder(fs, session.config.data, component));
  BuildProgressLine line(component.name.empty() ? "verifying" : "verifying " + component.name);
  const auto report =
      data::verify_arrays(fs, folder.ledger, {.threads = session.threads, .progress = line.callback()});
  line.end();
  std::string out = component.name.empty() ? "" : fmt::format("component {}\n", component.name);
  if (!report.ok()) {
    damage.add(report.error());
    return write_stdout(out + fmt::format("damaged  {}\n", report.error().message()));
  }
  for (const data::VerifiedArrayReport& array : report->arrays) {
    if (!array.status.ok()) damage.add(array.status.error());
    out += array.status.ok()
               ? fmt::format("ok       {}: {} elements, {} bytes\n", array.path, array.elements, array.bytes)
               : fmt::format("damaged  {}\n", array.status.error().message());
  }
  return write_stdout(out + fmt::format("ledger hash {}\n", report->ledger_hash));
}

Status verify_all(const DataSession& session) {
  Damage damage;
  for (const Component& component : session.components)
    RETURN_IF_ERROR(verify_component(session, component, damage));
  if (damage.count == 0) return {};
  if (damage.count == 1) return damage.first;
  return damage.first.with_context(fmt::format("{} places are damaged; the first", damage.count));
}

}  // namespace

int data_verify_command(Args args) {
  std::string component;
  args.summary(
      "Reads every array of the token stores and compares it with the ledger: the CRC-32C of each chunk and "
      "the\n"
      "SHA-256 of the whole. Names every damaged array, with its first damaged chunk; reads no text, writes "
      "nothing.");
  args.option("--component", &component, "NAME", "only this one");
  args.config();
  if (const auto code = args.parse()) return *code;
  return with_data_session(args, component, verify_all);
}

}  // namespace ostro::cli
