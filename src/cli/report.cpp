#include "cli/report.h"

#include <cstdio>

#include "base/text.h"
#include "cli/history.h"
#include "report/page.h"

namespace fermata::cli {

void add_report(CLI::App* app, ReportWords& w) {
    app->add_option("--ckpt-dir", w.ckpt_dir, "checkpoint directory (default fermata-ckpt; or: report DIR)")
        ->type_name("DIR");
    app->add_option("--job", w.job, "which job of the journal (default: its newest)")->type_name("NAME");
    app->add_option("-o,--output", w.output, "the page (default fermata-report.html)")
        ->type_name("FILE.html");
    app->add_option("--bandwidth", w.bandwidth, "what the storage can do, as 500MB/s: a line in the picture")
        ->type_name("RATE");
}

int report(const ReportWords& w) {
    const double floor = w.bandwidth.empty() ? 0 : parse_bytes(w.bandwidth, "--bandwidth", true);
    write_page(w.output, report::page(history_in(w.ckpt_dir, w.job), floor));
    std::printf("%s\n", visible(w.output).c_str());
    return 0;
}

}  // namespace fermata::cli
