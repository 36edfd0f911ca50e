#include "ostro/lab_commands/lab_watch.h"

#include "ostro/lab_commands/lab_view.h"
#include "ostro/lab_commands/serve_pages.h"
#include "ostro/shell/shared/watch_screen.h"
#include "ostro/site/site.h"

namespace ostro::cli {
namespace {

LiveHistories histories_of(const Context& context, const lab::LiveLab& lab, const page::Terminal& terminal) {
  LiveHistories out;
  for (const lab::BegunStep& begun : lab.begun)
    if (begun.run && begun.is_at_work) out[begun.step] = history_for(context.fs, begun.folder, terminal);
  return out;
}

}  // namespace

Status watch_lab(const Context& context, const std::string& plan_file, const std::string& listen,
                 bool ascii) {
  if (listen.empty())
    return watch_until_end(ascii, [&](const page::Terminal& terminal, int rows) -> Result<Picture> {
      ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, plan_file));
      ASSIGN_OR_RETURN(const lab::LiveLab lab, lab::look_live(context, plan));
      const LiveHistories histories = histories_of(context, lab, terminal);
      return Picture{lab_screen(plan, lab, histories, terminal, rows), lab_line(plan, lab, histories),
                     !lab.driver.empty(), lab_progress(lab)};
    });
  // Pages are made when they are asked for: a plan that cannot be read is told before.
  if (const auto plan = lab::read_plan(context.fs, plan_file); !plan.ok()) return plan.error();
  return serve_pages(context, listen, [&](const std::string& folder) -> Status {
    ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, plan_file));
    ASSIGN_OR_RETURN(const lab::LiveLab lab, lab::look_live(context, plan));
    return site::write_live_page(context, plan, lab, folder);
  });
}

}  // namespace ostro::cli
