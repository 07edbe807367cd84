#include "noded/own_start.h"

#include <strings.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace fermata::noded {
namespace {

constexpr uint64_t kMostBytes = 16u << 20;

// Of this host, whatever the other one says.
constexpr const char* kOfHost[] = {"FERMATA_NODE", "HOSTNAME", "TMPDIR",         "XDG_RUNTIME_DIR",
                                   "SSH_CLIENT",   "SSH_TTY",  "SSH_CONNECTION", "SSH_AUTH_SOCK"};

void take_environment() {
    std::string text = read_rest(0, "the environment", kMostBytes);
    std::map<std::string, std::string> kept;
    for (const char* name : kOfHost)
        if (const char* value = std::getenv(name)) kept[name] = value;
    ::clearenv();
    for (size_t at = 0; at < text.size();) {
        size_t end = text.find('\0', at);
        if (end == text.npos) fail("the environment of the node daemon came without its end");
        std::string_view word = std::string_view(text).substr(at, end - at);
        if (size_t equals = word.find('='); equals != word.npos && equals > 0)
            ::setenv(std::string(word.substr(0, equals)).c_str(),
                     std::string(word.substr(equals + 1)).c_str(), 1);
        at = end + 1;
    }
    for (const char* name : kOfHost) ::unsetenv(name);
    for (auto& [name, value] : kept) ::setenv(name.c_str(), value.c_str(), 1);
    ::explicit_bzero(text.data(), text.size());
}

}  // namespace

OwnStart OwnStart::of(int argc, char** argv) {
    OwnStart start;
    const bool by_input = argc > 1 && std::strcmp(argv[1], "--environment") == 0;
    if (by_input) take_environment();
    const char* said = std::getenv("FERMATA_DAEMON");
    if (said && std::strcmp(said, "task") == 0) said = std::getenv("SLURM_PROCID");
    if (!said) return start;
    uint32_t number = 0;
    auto [end, error] = std::from_chars(said, said + std::strlen(said), number);
    if (error != std::errc{} || *end != 0) fail("FERMATA_DAEMON is damaged: {}", said);
    start.number = number;
    start.stays = !by_input;
    return start;
}

}  // namespace fermata::noded
