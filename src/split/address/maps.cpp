#include "split/address/maps.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "split/address/raw.h"

namespace fermata::split {
namespace {

std::string slurp(const char* path) {
    long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (failed(fd)) fail("cannot read {}: {}; is /proc mounted?", path, std::strerror(int(-fd)));
    std::string text;
    size_t used = 0;
    for (;;) {
        if (text.size() - used < 16384) text.resize(text.empty() ? 65536 : text.size() * 2);
        long got = sys(SYS_read, fd, text.data() + used, text.size() - used);
        if (failed(got)) {
            sys(SYS_close, fd);
            fail("cannot read {}: {}", path, std::strerror(int(-got)));
        }
        if (got == 0) break;
        used += size_t(got);
    }
    sys(SYS_close, fd);
    text.resize(used);
    return text;
}

// "7f00-7f01 r-xp 00000000 fe:00 1234   /path": the kernel escapes newlines in names as \012.
bool parse_header(const char* line, const char* end, Mapping& m) {
    const char* at = line;
    // (strtoull asks for the locale each time.)
    auto number = [&](auto& value, int base = 16) {
        auto [behind, error] = std::from_chars(at, end, value, base);
        at = behind;
        return error == std::errc{} && at < end;
    };
    auto skip = [&](char what) { return *at == what && ++at < end; };
    uint64_t from = 0, to = 0;
    if (!number(from) || !skip('-') || !number(to) || from > to || *at != ' ' || end - at < 7) return false;
    m.range = {from, to};
    m.prot =
        (at[1] == 'r' ? PROT_READ : 0) | (at[2] == 'w' ? PROT_WRITE : 0) | (at[3] == 'x' ? PROT_EXEC : 0);
    m.shared = at[4] == 's';
    at += 6;
    if (!number(m.offset) || !skip(' ') || !number(m.device_major) || !skip(':') || !number(m.device_minor) ||
        !skip(' '))
        return false;
    at = std::from_chars(at, end, m.inode).ptr;
    while (at < end && *at == ' ') ++at;
    m.name.assign(at, end);
    return true;
}

}  // namespace

std::string maps_text() { return slurp("/proc/self/maps"); }

std::vector<Mapping> parse_maps(const std::string& text) {
    std::vector<Mapping> maps;
    const char* at = text.data();
    const char* stop = at + text.size();
    while (at < stop) {
        auto* end = static_cast<const char*>(std::memchr(at, '\n', size_t(stop - at)));
        if (!end) end = stop;
        if (end - at > 8 && std::memcmp(at, "VmFlags:", 8) == 0) {
            if (!maps.empty()) maps.back().flags.assign(at + 8, end);
        } else if ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f')) {
            // Only header lines begin with a lower-case hexadecimal digit; smaps keys are capitalised.
            Mapping m;
            if (parse_header(at, end, m)) maps.push_back(std::move(m));
        }
        at = end + 1;
    }
    return maps;
}

std::vector<Mapping> read_maps() { return parse_maps(maps_text()); }
std::vector<Mapping> read_smaps() { return parse_maps(slurp("/proc/self/smaps")); }

std::string to_string(const Mapping& m) {
    return fmt::format("{:x}-{:x} {}{}{}{} {}", m.range.begin(), m.range.end(),
                       m.prot & PROT_READ ? 'r' : '-', m.prot & PROT_WRITE ? 'w' : '-',
                       m.prot & PROT_EXEC ? 'x' : '-', m.shared ? 's' : 'p',
                       m.name.empty() ? "(anonymous)" : m.name);
}

}  // namespace fermata::split
