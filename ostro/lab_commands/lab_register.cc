#include "ostro/lab_commands/lab_register.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "ostro/base/one_line.h"
#include "ostro/lab/drive/registering.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/record/scaling_record.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

struct RegisterRequest {
  std::string file, sign, key, withdraw, reason;
  bool check = false;
};

Result<std::optional<bundle::SigningKey>> read_key(io::FileSystem& fs, const std::string& path) {
  if (path.empty()) return std::optional<bundle::SigningKey>();
  ASSIGN_OR_RETURN(bundle::SigningKey key, bundle::SigningKey::read(fs, path));
  return std::optional(std::move(key));
}

std::string entry_text(const lab::RegistryEntry& e, size_t line) {
  std::string what = e.kind == "register"   ? fmt::format("registers {}", lab::short_hash(e.registration))
                     : e.kind == "forecast" ? fmt::format("registers the forecast {}: {}",
                                                          one_line(e.forecast), one_line(e.value))
                     : e.kind == "beacon"
                         ? fmt::format("beacon of {}: {}", lab::short_hash(e.registration), one_line(e.value))
                         : fmt::format("withdraws {}: {}", one_line(e.hypothesis), one_line(e.reason));
  for (const std::string& change : e.changes) what += "\n    changed: " + one_line(change);
  for (const std::string& name : e.late) what += "\n    late: the journal had results for " + one_line(name);
  return fmt::format("line {}, {}: {}\n", line, one_line(e.time), what);
}

// The registry's lines, and what came out of each hypothesis as far as it is known.
Status check(const Context& context, const lab::Plan& plan, const RegisterRequest& request) {
  std::string key;
  if (!request.key.empty()) {
    ASSIGN_OR_RETURN(key, context.fs.read_file(request.key));
    RETURN_IF_ERROR(bundle::PublicKey::parse(key, request.key));
  }
  ASSIGN_OR_RETURN(const lab::RegistrationCheck found, lab::check_registration(context, plan, key));
  if (!found.faults.empty()) return corrupt(fmt::format("{}", fmt::join(found.faults, "\nerror: ")));
  std::string out;
  for (size_t i = 0; i < found.entries.size(); ++i) out += entry_text(found.entries[i], i + 2);
  ASSIGN_OR_RETURN(const lab::LabState state, lab::look_at(context, plan));
  ASSIGN_OR_RETURN(const lab::Database record, lab::make_record(context.fs, plan, state, /*measured=*/false));
  ASSIGN_OR_RETURN(const lab::Rows rows, record.select("SELECT name, verdict, reason FROM hypotheses"));
  for (const auto& row : rows.rows)
    out += fmt::format("hypothesis {}: {}{}\n", lab::value_text(row[0]), lab::value_text(row[1]),
                       lab::value_text(row[2]).empty() ? "" : ", since " + one_line(lab::value_text(row[2])));
  ASSIGN_OR_RETURN(const std::vector<std::string> forecasts, lab::forecast_lines(record));
  for (const std::string& line : forecasts) out += line + "\n";
  for (const std::string& name : found.dropped)
    out +=
        fmt::format("hypothesis {}: open, and no longer in the plan; --withdraw {} --reason TEXT says why\n",
                    one_line(name), one_line(name));
  return write_stdout(out +
                      fmt::format("equal: the registry holds, and {} is what was registered\n", plan.file));
}

Status register_now(const Context& context, const lab::Plan& plan, const RegisterRequest& request) {
  if (request.check) return check(context, plan, request);
  ASSIGN_OR_RETURN(const auto key, read_key(context.fs, request.sign));
  const bundle::SigningKey* sign = key ? &*key : nullptr;
  if (!request.withdraw.empty()) {
    ASSIGN_OR_RETURN(const std::string head,
                     lab::withdraw(context, plan, request.withdraw, request.reason, sign));
    return write_stdout(fmt::format("withdrawn: {}\nregistry head: {}\n", request.withdraw, head));
  }
  ASSIGN_OR_RETURN(const lab::Registered done, lab::register_plan(context, plan, sign));
  std::string out = fmt::format("{}: {}\n", done.is_new ? "registered" : "registered already, and unchanged",
                                done.registration);
  for (const std::string& change : done.changes) out += fmt::format("changed: {}\n", change);
  for (const std::string& name : done.late)
    out += fmt::format("late: the journal has results of steps that {} uses, and the entry says so\n", name);
  for (const std::string& forecast : done.forecasts) out += fmt::format("forecast {}\n", forecast);
  return write_stdout(out + fmt::format("registry head: {}\n", done.head));
}

}  // namespace

int lab_register(Args args) {
  RegisterRequest request;
  args.summary(
      "Freezes the plan with its hypotheses, configurations and sources, and appends that to the registry of "
      "its\n"
      "lab. Until then `ostro lab run` does no step that a hypothesis uses. Of a plan that has not changed "
      "it "
      "writes\nnothing.");
  args.positional("FILE", &request.file, "the plan (docs/guide/lab.md)");
  args.option("--sign", &request.sign, "KEY",
              "sign the entry with this private key: openssl genpkey -algorithm ed25519 -out KEY");
  args.option("--withdraw", &request.withdraw, "NAME", "record that this hypothesis gets no outcome");
  args.option("--reason", &request.reason, "TEXT", "why it is withdrawn");
  args.flag("--check", &request.check,
            "write nothing: check the registry against journal, plan and signatures, and list it");
  args.option("--key", &request.key, "FILE",
              "with --check: the public key (PEM) that must have signed every entry");
  if (const auto code = args.parse()) return *code;
  if (request.withdraw.empty() != request.reason.empty())
    return report_error(invalid_argument("--withdraw and --reason go together; give both"));
  if (request.check && (!request.withdraw.empty() || !request.sign.empty()))
    return report_error(invalid_argument("--check writes nothing; leave out --sign and --withdraw"));
  if (!request.check && !request.key.empty())
    return report_error(invalid_argument("--key belongs to --check; --sign KEY signs"));
  const auto plan = lab::read_plan(args.context().fs, request.file);
  if (!plan.ok()) return report_error(plan.error());
  return exit_after(register_now(args.context(), *plan, request));
}

int lab_beacon(Args args) {
  std::string file, value, sign;
  args.summary(
      "Records a public value that is younger than the registration, for instance a number that was drawn "
      "in\n"
      "public after it. Seeds of the registration follow from it, too, so nobody could know the results "
      "before.");
  args.positional("FILE", &file, "the plan");
  args.positional("VALUE", &value, "the public value, one line");
  args.option("--sign", &sign, "KEY", "sign the entry with this private key");
  if (const auto code = args.parse()) return *code;
  const auto record = [&]() -> Status {
    const Context& context = args.context();
    ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
    ASSIGN_OR_RETURN(const auto key, read_key(context.fs, sign));
    ASSIGN_OR_RETURN(const std::string head, lab::record_beacon(context, plan, value, key ? &*key : nullptr));
    return write_stdout(fmt::format("beacon: {}\nregistry head: {}\n", value, head));
  };
  return exit_after(record());
}

}  // namespace ostro::cli
