// VelocWords is a configuration file of VeloC's interface: lines "key = value".
#pragma once

#include <string>
#include <vector>

namespace fermata::api {

struct VelocWords {
    std::string scratch, persistent;
    unsigned versions = 0;             // max_versions; 0 = all stay
    std::string options;               // further ones of fermata_open(), by the key "fermata"
    std::vector<std::string> unknown;  // lines that mean nothing here
};

// Keys that VeloC has and Fermata needs not (ec_interval, chksum …) are taken and mean nothing. Throws Error
// (ExitCode::usage) that names the line.
VelocWords parse_veloc_words(const std::string& text, const std::string& path);

}  // namespace fermata::api
