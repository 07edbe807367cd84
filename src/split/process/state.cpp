#include "split/process/state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/cbor.h"
#include "base/error.h"
#include "split/process/child.h"
#include "split/process/files.h"
#include "split/process/parts.h"
#include "split/process/places.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace {

constexpr int kVersion = 2;

// Those that wait, and the one that would tell of the end of children that are in no image.
Signals signals_to_come(Signals all, const std::vector<Child>& children) {
    for (const Child& child : children)
        if (!child.ended) all.push_back(signal_of_end(child.pid));
    return all;
}

}  // namespace

Json parse_state(std::string_view bytes) {
    if (const char* fault = cbor_fault(bytes.data(), bytes.size())) throw std::runtime_error(fault);
    return Json::from_cbor(bytes);
}

std::string error_text(int error) { return std::strerror(error); }

void note_inherited() {
    keep_inherited_descriptors();
    note_settings();
    note_attributes();
}

Captured capture(const Limits& limits, const Keep& keep, const std::vector<Child>& children_now) {
    Captured captured;
    Json state;
    state["version"] = kVersion;
    state["settings"] = capture_settings(children_now, captured.warnings);
    state["attributes"] = capture_attributes(captured.warnings);
    state["descriptors"] = capture_descriptors(limits, captured.warnings);
    try {
        state["files"] = capture_files(keep, state["descriptors"], captured.copies, captured.warnings);
    } catch (const Refused& refused) {
        fail("{}", refused.line);
    }
    state["tmpdir"] = temporary_folder();
    state["generation_directory"] = keep.generation ? keep.generation.path() : "";
    Alarms alarms = capture_alarms(captured.warnings);
    state["signals"] =
        capture_signals(limits.ids, signals_to_come(std::move(alarms.waiting), children_now), alarms.own);
    state["timers"] = std::move(alarms.timers);
    state["cpu_times"] = capture_cpu_times();
    Json::to_cbor(state, captured.state);
    return captured;
}

Restored restore(std::string_view bytes, const Limits& limits, const Reading& reading) {
    Restored restored;
    raw::set_signal_mask(raw::kAllSignals);
    note_inherited();
    try {
        Json state = parse_state(bytes);
        if (state.at("version") != kVersion)
            throw Refused{"the image's process state has version " + state.at("version").dump() +
                          ", this is Fermata for version " + std::to_string(kVersion)};
        // Before the limits: descriptors may lie above a limit that was lowered later.
        restore_descriptors(state.at("descriptors"), limits, reading, restored.warnings);
        restore_settings(state.at("settings"), restored.warnings);
        restore_attributes(state.at("attributes"), restored.warnings);
        restore_signals(state.at("signals"), limits.ids);
    } catch (const Refused& refused) {
        restored.error = refused.line;
    } catch (const std::exception& error) {
        restored.error = std::string("the image's process state is damaged: ") + error.what();
    }
    return restored;
}

Restored restore_timers(std::string_view bytes) {
    Restored restored;
    try {
        Json state = parse_state(bytes);
        restore_cpu_times(state.at("cpu_times"));
        restore_all_timers(state.at("timers"), restored.warnings);
    } catch (const std::exception& error) {
        restored.error = std::string("the image's process state is damaged: ") + error.what();
    }
    return restored;
}

}  // namespace fermata::split::process
