// This header has `fermata predict`: its options, and what it answers from numbers or from a journal.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "predict/interval.h"
#include "predict/levels.h"

namespace fermata::cli {

// Words of the command line.
struct PredictWords {
    std::string ckpt_dir, job, checkpoint, restart, mtbf, rank_mtbf, work, interval, ranks, levels, replicas,
        shape, memory, bandwidth, storage, disk, plot;
    bool json = false;
};
void add_predict(CLI::App* app, PredictWords& words);
int predict(const PredictWords& words);

// A number, and how it came to be known.
struct Known {
    double value = 0;
    std::string from;
};

// Everything that is asked about; what is absent is not answered.
struct Question {
    std::optional<Known> checkpoint, recovery, mtbf, rank_mtbf, interval, bytes, bandwidth;
    double work = 0;
    uint64_t ranks = 0;
    std::vector<predict::LevelCost> levels;
    std::vector<double> shares;  // of ranks with two processes
    double shape = 1;
    double memory = 0, storage_bandwidth = 0, storage = 0, disk = 0;
    std::vector<std::string> remarks;

    std::optional<predict::Job> job() const;
};
// docs/formats/predict.md
nlohmann::ordered_json answer(const Question& question);
// For people; a line each.
std::string text_of(const nlohmann::ordered_json& answer);
// A picture of the answer: efficiency over the time between failures, and the cost over the interval.
std::string plot_of(const predict::Job& job, std::optional<double> interval);

}  // namespace fermata::cli
