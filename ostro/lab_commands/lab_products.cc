#include "ostro/lab_commands/lab_products.h"

#include <fmt/format.h>

#include "ostro/lab/record/record.h"
#include "ostro/lab/report/report.h"
#include "ostro/paper/paper.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/site/site.h"

namespace ostro::cli {
Status make_products(const Context& context, const lab::Plan& plan) {
  if (!plan.makes.report && !plan.makes.site) return {};
  ASSIGN_OR_RETURN(const lab::LabState state, lab::finished_lab(context, plan, /*every_byte=*/true));
  Status paper_status;
  site::SiteRequest pages;
  if (plan.makes.report) {
    const std::string folder = plan.report_folder();
    ASSIGN_OR_RETURN(paper::Paper made, paper::make_paper(context.fs, plan, state, /*latex=*/false));
    RETURN_IF_ERROR(lab::write_files(context.fs, folder, made.files));
    RETURN_IF_ERROR(write_stdout(fmt::format("report: {}, {} files\n", folder, made.files.size())));
    paper_status = paper::check_whole(folder, made, "were not made");
    pages.report = std::move(made);
  }
  if (plan.makes.site) {
    const std::string folder = plan.site_folder();
    ASSIGN_OR_RETURN(const site::Site made, site::write_site(context, plan, state, pages, folder));
    RETURN_IF_ERROR(
        write_stdout(fmt::format("site: {}/index.html, {} files{}\n", folder, made.files,
                                 made.missing.empty() ? "" : ", without the paper itself: " + made.missing)));
  }
  return paper_status;
}

}  // namespace ostro::cli
