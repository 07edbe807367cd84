#include "launch/slurm_settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

namespace fermata::launch {
namespace {

std::string in_small_letters(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

std::string trimmed(const std::string& text) {
    const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
    return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// Without what stands behind a "#" that no backslash is before.
std::string without_comment(const std::string& line) {
    for (size_t at = 0; at < line.size(); ++at)
        if (line[at] == '#' && (at == 0 || line[at - 1] != '\\')) return line.substr(0, at);
    return line;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    bool goes_on = false;
    for (std::string line; std::getline(in, line);) {
        line = trimmed(without_comment(line));
        const bool next = line.ends_with("\\");
        if (next) line.pop_back();
        if (goes_on)
            lines.back() += line;
        else
            lines.push_back(line);
        goes_on = next;
    }
    return lines;
}

// "a=b c=d" as two, "a = b c" as one.
std::vector<std::string> pieces_of(const std::string& line) {
    std::vector<std::string> pieces;
    std::istringstream in(line);
    for (std::string word; in >> word;) {
        if (const size_t equals = word.find('='); equals == 0 || equals == word.npos) return {line};
        pieces.push_back(word);
    }
    return pieces;
}

}  // namespace

SlurmSettings SlurmSettings::in(const std::string& text) {
    SlurmSettings found;
    for (const std::string& line : lines_of(text)) {
        Values values;
        for (const std::string& piece : pieces_of(line)) {
            const size_t equals = piece.find('=');
            if (equals == std::string::npos) continue;
            std::string value = trimmed(piece.substr(equals + 1));
            if (value.size() > 1 && value.front() == '"' && value.back() == '"')
                value = value.substr(1, value.size() - 2);
            values[in_small_letters(trimmed(piece.substr(0, equals)))] = value;
        }
        if (values.contains("partitionname"))
            found.partitions_.push_back(std::move(values));
        else if (!values.contains("nodename"))
            found.settings_.insert(values.begin(), values.end());
    }
    return found;
}

std::string SlurmSettings::value(const std::string& name) const {
    auto found = settings_.find(in_small_letters(name));
    return found == settings_.end() || found->second == "(null)" || found->second == "N/A" ? ""
                                                                                           : found->second;
}

double SlurmSettings::number(const std::string& name, double standard) const {
    const std::string text = value(name);
    double number = standard;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} ? number : standard;
}

bool SlurmSettings::has(const std::string& name, const std::string& word) const {
    std::string text = in_small_letters(value(name));
    std::replace(text.begin(), text.end(), ',', ' ');
    std::istringstream in(text);
    for (std::string one; in >> one;)
        if (one == in_small_letters(word)) return true;
    return false;
}

std::vector<std::string> SlurmSettings::of_partitions(const std::string& name) const {
    std::vector<std::string> values;
    for (const Values& partition : partitions_)
        if (auto found = partition.find(in_small_letters(name)); found != partition.end())
            values.push_back(found->second);
    return values;
}

}  // namespace fermata::launch
