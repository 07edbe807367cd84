// Fermata's variables of this process, kept where the program cannot lose them: `unset`, `env -i` and a
// LD_PRELOAD of the user's own must not take a rank out of the job.
#include <string.h>
#include <sys/mman.h>

#include "split/loader/starters.h"
#include "starter/start.h"

namespace fermata::starter {
namespace {

constexpr const char* kPrefix = "FERMATA_";
constexpr const char* kPreload = "LD_PRELOAD";
constexpr size_t kMost = 64;

const char* kept[kMost];  // "NAME=value"
size_t kept_count;

bool ours(const char* variable) { return strncmp(variable, kPrefix, strlen(kPrefix)) == 0; }

const char* value_of(const char* variable, const char* name) {
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=' ? variable + length + 1 : nullptr;
}

bool names_library(const char* preload, const char* library) {
    size_t length = strlen(library);
    for (const char* at = preload; at != nullptr && *at != 0; at += strcspn(at, " :")) {
        at += strspn(at, " :");
        if (strcspn(at, " :") == length && strncmp(at, library, length) == 0) return true;
    }
    return false;
}

bool complete(char* const* environment) {
    const char* preload = value_in(environment, kPreload);
    if (preload == nullptr || !names_library(preload, remembered(split::kStarterLibrary))) return false;
    const char* mark = mode == Mode::starter ? split::kStarterVariable : split::kOutsideOf;
    return value_in(environment, mark) != nullptr;
}

size_t count(char* const* environment) {
    size_t n = 0;
    while (environment != nullptr && environment[n] != nullptr) ++n;
    return n;
}

}  // namespace

// A copy: programs write over the place where their environment stood to show a title in `ps`.
void remember_environment(char** environment) {
    size_t bytes = 0, n = 0;
    for (char** e = environment; *e != nullptr; ++e)
        if (ours(*e)) bytes += strlen(*e) + 1;
    if (bytes == 0) return;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    char* at = static_cast<char*>(memory);
    for (char** e = environment; *e != nullptr && n < kMost; ++e) {
        if (!ours(*e)) continue;
        size_t size = strlen(*e) + 1;
        memcpy(at, *e, size);
        kept[n++] = at;
        at += size;
    }
    kept_count = n;
}

const char* remembered(const char* name) {
    for (size_t i = 0; i < kept_count; ++i)
        if (const char* value = value_of(kept[i], name)) return value;
    return "";
}

const char* value_in(char* const* environment, const char* name) {
    for (char* const* e = environment; e != nullptr && *e != nullptr; ++e)
        if (const char* value = value_of(*e, name)) return value;
    return nullptr;
}

void forget_environment(char** environment) {
    char** to = environment;
    for (char** e = environment; *e != nullptr; ++e) {
        const char* preload = value_of(*e, kPreload);
        bool only_ours = preload != nullptr && strcmp(preload, remembered(split::kStarterLibrary)) == 0;
        if (!ours(*e) && !only_ours) *to++ = *e;
    }
    *to = nullptr;
    mode = Mode::off;
}

size_t room_for(char* const* environment) { return count(environment) + kept_count + 2; }

size_t text_for(char* const* environment) {
    const char* preload = value_in(environment, kPreload);
    return strlen(kPreload) + strlen(remembered(split::kStarterLibrary)) +
           (preload != nullptr ? strlen(preload) : 0) + 3;
}

char** with_ours(char* const* environment, char** room, char* text) {
    if (mode == Mode::off || complete(environment)) return const_cast<char**>(environment);
    char** to = room;
    const char* preload = value_in(environment, kPreload);
    const char* library = remembered(split::kStarterLibrary);
    for (char* const* e = environment; e != nullptr && *e != nullptr; ++e)
        if (!ours(*e) && value_of(*e, kPreload) == nullptr) *to++ = *e;
    for (size_t i = 0; i < kept_count; ++i) *to++ = const_cast<char*>(kept[i]);
    *to++ = text;
    *to = nullptr;
    text = stpcpy(stpcpy(text, kPreload), "=");
    if (preload == nullptr || *preload == 0)
        strcpy(text, library);
    else if (names_library(preload, library))
        strcpy(text, preload);
    else
        strcpy(stpcpy(stpcpy(text, library), ":"), preload);
    return room;
}

}  // namespace fermata::starter
