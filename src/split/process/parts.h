// The parts of the process state; each captures into and restores from its own piece of the CBOR value.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/proc_text.h"
#include "files/place.h"
#include "split/fds/inherited.h"
#include "split/process/state.h"
#include "split/threads/own_signals.h"

namespace fermata::split::process {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

// A failure that must end the restart: one line, what to do included.
struct Refused {
    std::string line;
};

// The process state, or another part of an image, as one value; throws std::exception when it is none.
Json parse_state(std::string_view bytes);

std::string error_text(int error);

Json capture_descriptors(const Limits& limits, Lines& warnings);
void restore_descriptors(const Json& state, const Limits& limits, const Reading& reading,
                         Lines& warnings);  // throws Refused
// Files of this process in /proc: "/proc/self/…" and the thread, or an empty path when it is none of them.
struct OwnProcFile {
    std::string path;  // with "/proc/self/task/" and the rest of the path behind the thread's number
    int tid = 0;       // old number of that thread, 0 = none
};
OwnProcFile own_proc_file(const std::string& path);
bool of_another_process(const std::string& path);
std::string proc_path_here(const std::string& path, int tid);
// A regular file; where the permissions of our own file have come to forbid it, they are lifted for the
// moment. `saved_mode`: at the checkpoint, where that is known. `place_flags` as files::Place takes them.
files::Opened open_as_owner(const std::string& path, int flags, std::optional<mode_t> saved_mode,
                            int place_flags = 0);

// `ids`: null, or by which the senders of signals are named.
// `wait`: those of capture_alarms(), of which the caller may keep account; `own`: its other ones.
Json capture_signals(const ids::Table* ids, const std::vector<std::string>& wait,
                     const std::vector<threads::OwnSignal>& own);
void restore_signals(const Json& state, const ids::Table* ids);
// Timers, and the signals that wait, of one moment: one that goes off between a look at the signals and a
// look at the timers would be in neither, and a program that waits for its alarm would wait for good.
struct Alarms {
    std::vector<std::string> waiting;     // waiting_signals() (child.h)
    std::vector<threads::OwnSignal> own;  // for one thread alone
    Json timers;                          // for restore_all_timers()
};
Alarms capture_alarms(Lines& warnings);
void restore_all_timers(const Json& state, Lines& warnings);
Json capture_settings(const std::vector<Child>& children, Lines& warnings);
void restore_settings(const Json& state, Lines& warnings);  // throws Refused
// Restores of them the limits, the personality and the switches: what a child may lack.
void restore_limits(const Json& state, Lines& warnings);
// Opens the working directory of these settings, by O_PATH. Throws Refused when it cannot be entered, or is
// one that another user has put in its place: the program opens files in there by their names.
Fd open_working_directory(const Json& settings);
void note_settings();
// Findings of note_…(), for a second lower half of this process, which could only see what the program
// has made of it.
Json noted_settings();
void resume_settings(const Json& noted);
Json noted_attributes();
void resume_attributes(const Json& noted);
Json capture_attributes(Lines& warnings);
void restore_attributes(const Json& state, Lines& warnings);
void note_attributes();
Json capture_cpu_times();
void restore_cpu_times(const Json& state);

}  // namespace fermata::split::process
