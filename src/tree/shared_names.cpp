#include "tree/shared_names.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace fermata::tree {
namespace {

using files::Folder;

constexpr const char* kMemory = "/dev/shm";
constexpr uint64_t kMostNotes = 16u << 20;

using File = std::pair<dev_t, ino_t>;

template <typename Number>
bool take_number(std::string_view& text, Number& number, char behind, int base = 10) {
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || at == text.data() + text.size() || *at != behind) return false;
    text.remove_prefix(static_cast<size_t>(at - text.data()) + 1);
    return true;
}

template <typename Line>
void each_line(std::string_view text, Line line) {
    for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
        line(text.substr(0, end));
}

std::map<std::string, File> noted_in(const Folder& directory, const std::string& notes) {
    std::map<std::string, File> names;
    if (!directory.has(notes)) return names;
    each_line(directory.text(notes, kMostNotes), [&](std::string_view line) {
        uint64_t device = 0, inode = 0;
        if (take_number(line, device, ' ') && take_number(line, inode, ' ') && !line.empty() && line != "." &&
            line != ".." && line.find('/') == line.npos)
            names[std::string(line)] = {device, inode};
    });
    return names;
}

// Adds what a process of this user has mapped: "7f00-7f01 rw-s 00000000 00:19 123  /dev/shm/NAME".
void add_mapped(const Folder& process, std::set<File>& used) {
    each_line(process.text("maps", UINT64_MAX), [&](std::string_view line) {
        for (int word = 0; word < 3; ++word) {
            size_t end = line.find(' ');
            if (end == line.npos) return;
            line.remove_prefix(end + 1);
        }
        unsigned major = 0, minor = 0;
        ino_t inode = 0;
        if (take_number(line, major, ':', 16) && take_number(line, minor, ' ', 16) &&
            take_number(line, inode, ' ') && inode != 0)
            used.emplace(makedev(major, minor), inode);
    });
}

void add_open(const Folder& process, std::set<File>& used) {
    auto descriptors = process.find("fd");
    if (!descriptors) return;
    for (const std::string& name : descriptors->names()) {
        struct stat file {};
        if (::fstatat(descriptors->descriptor(), name.c_str(), &file, 0) == 0)
            used.emplace(file.st_dev, file.st_ino);
    }
}

// By the processes of this user that are visible here.
std::set<File> used_files() {
    std::set<File> used;
    const Folder processes = Folder::at("/proc");
    for (const std::string& name : processes.names()) {
        if (name.find_first_not_of("0123456789") != name.npos) continue;
        try {
            auto process = processes.find(name);
            if (!process || process->owner() != ::geteuid()) continue;
            add_mapped(*process, used);
            add_open(*process, used);
        } catch (const Error&) {
            // (The process has ended meanwhile.)
        }
    }
    return used;
}

}  // namespace

void SharedNames::take(const std::string& notes) {
    names_.merge(noted_in(directory_, notes));
    const std::string_view kind = kSharedNames;
    if (notes.starts_with(kind)) directory_.rename(notes, kLeftNames + notes.substr(kind.size()));
}

void SharedNames::take_all(const char* kind) {
    for (const std::string& name : directory_.names())
        if (name.starts_with(kind)) take(name);
}

void SharedNames::forget_notes() {
    for (const std::string& name : directory_.names())
        if (name.starts_with(kLeftNames)) directory_.remove_file(name);
}

void SharedNames::gone(pid_t rank) noexcept {
    looked_at_ = false;
    try {
        take(name_of_shared_names(rank));
    } catch (const std::exception& error) {
        spdlog::warn("what pid {} has left in {}: {}", rank, kMemory, error.what());
    }
}

void SharedNames::all_gone() noexcept {
    looked_at_ = false;
    try {
        take_all(kLeftNames);
        take_all(kSharedNames);
    } catch (const std::exception& error) {
        spdlog::warn("what ranks have left in {}: {}", kMemory, error.what());
    }
}

void SharedNames::remove_of_the_dead() {
    const Folder memory = Folder::at(kMemory);
    // Most libraries remove theirs at once, or in MPI_Finalize.
    auto is_there = [&](const std::string& name, const File& file) {
        auto now = memory.look(name);
        return now && S_ISREG(now->st_mode) && now->st_uid == ::geteuid() && now->st_dev == file.first &&
               now->st_ino == file.second;
    };
    std::erase_if(names_, [&](auto& one) { return !is_there(one.first, one.second); });
    std::set<File> used;
    for (const std::string& name : directory_.names())
        if (name.starts_with(kSharedNames))
            for (auto& [file, number] : noted_in(directory_, name)) used.insert(number);
    if (std::all_of(names_.begin(), names_.end(), [&](auto& one) { return used.count(one.second); })) return;
    used.merge(used_files());
    for (auto one = names_.begin(); one != names_.end();) {
        if (used.count(one->second)) {
            ++one;
            continue;
        }
        // Nobody can have put another one there since: the directory is sticky, and the file ours.
        if (is_there(one->first, one->second) && memory.remove_file(one->first))
            spdlog::info("{}/{}, of a rank that is dead, is removed", kMemory, one->first);
        one = names_.erase(one);
    }
}

void SharedNames::remove_unused() noexcept {
    if (std::exchange(looked_at_, true)) return;
    try {
        if (!names_.empty()) remove_of_the_dead();
        if (names_.empty()) forget_notes();
    } catch (const std::exception& error) {
        spdlog::warn("what ranks have left in {}: {}", kMemory, error.what());
    }
}

}  // namespace fermata::tree
