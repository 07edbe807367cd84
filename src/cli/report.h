// This header has `fermata report`: a job's journal as one page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fermata::cli {

struct ReportWords {
    std::string ckpt_dir = "fermata-ckpt", job, output = "fermata-report.html", bandwidth;
};
void add_report(CLI::App* app, ReportWords& words);
int report(const ReportWords& words);

}  // namespace fermata::cli
