// Settings of Slurm, as slurm.conf has them and as `scontrol show config` says them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fermata::launch {

class SlurmSettings {
  public:
    // Reads "Name=value", several to a line or one with blanks, comments and lines that go on; who knows the
    // names writes them in any case.
    static SlurmSettings in(const std::string& text);

    bool empty() const { return settings_.empty() && partitions_.empty(); }
    // "" where it is not set, or set to nothing ("(null)", "N/A").
    std::string value(const std::string& name) const;
    // The number that the value begins with ("30 sec"); `standard` where there is none.
    double number(const std::string& name, double standard) const;
    // Is `word` one of the value's, between commas or blanks?
    bool has(const std::string& name, const std::string& word) const;
    // The values of this setting in the partitions that have it.
    std::vector<std::string> of_partitions(const std::string& name) const;

  private:
    using Values = std::map<std::string, std::string>;  // names in small letters
    Values settings_;
    std::vector<Values> partitions_;
};

}  // namespace fermata::launch
