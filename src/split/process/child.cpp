#include "split/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "split/fds/descriptors.h"
#include "split/process/descriptors/saved.h"
#include "split/process/parts.h"
#include "split/shared/queues.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace {

std::string name_of(const Json& one) {
    return one.contains("path") ? one.at("path").get<std::string>() : "a descriptor";
}

// Refuses what the kernel knows of a process by its own number, or gives to no child.
void refuse_own(const Json& all) {
    for (const Json& one : all.at("descriptions")) {
        for (const Json& lock : one.value("locks", Json::array())) {
            // (flock() and OFDLCK belong to the open file, which the child has.)
            const std::string kind = lock.get<descriptors::Lock>().kind;
            if (kind == "FLOCK" || kind == "OFDLCK") continue;
            fail("the program has a lock on {}: no other process can take it over while the job runs",
                 name_of(one));
        }
        if (one.at("kind") == "pidfd" || name_of(one).starts_with("/proc/self"))
            fail("the program has {} open, which is of this one process",
                 one.at("kind") == "pidfd" ? "a pidfd of its own" : name_of(one));
        if (one.contains("owner_signal"))
            fail("the program wants signals from {} (F_SETOWN), which would go to the process that ends",
                 name_of(one));
    }
    for (const Json& number : all.at("descriptors")) {
        const Json& one = all.at("descriptions").at(number.at(1).get<size_t>());
        if (one.at("kind") != "queue") continue;
        if (shared::somebody_to_notify(number.at(0).get<int>()) == raw::getpid())
            fail(
                "the program wants to be notified of a message queue (mq_notify), and no other process can "
                "be");
    }
}

}  // namespace

ForChild prepare_child(const Limits& limits) {
    ForChild made;
    for (const Child& child : children())
        if (!child.ended)
            fail("child process {} ({}) of the program would lose its parent: wait for its end", child.pid,
                 child.name);
    refuse_own(capture_descriptors(limits, made.warnings));
    made.warnings.clear();  // of images
    Json state;
    state["settings"] = capture_settings({}, made.warnings);
    state["attributes"] = capture_attributes(made.warnings);
    Alarms alarms = capture_alarms(made.warnings);
    made.waiting = std::move(alarms.waiting);
    state["signals"] = capture_signals(limits.ids, made.waiting, alarms.own);
    state["timers"] = std::move(alarms.timers);
    state["cpu_times"] = capture_cpu_times();
    Json::to_cbor(state, made.state);

    Json notes, channels = Json::array(), inherited = Json::array();
    for (const LauncherChannel& one : launcher_channels())
        channels.push_back({one.fd, one.device, one.inode});
    for (int i = 0; i < 3; ++i) {
        inherited.push_back(inherited_descriptor(i));
        if (inherited_descriptor(i) >= 0) made.descriptors.push_back(inherited_descriptor(i));
    }
    notes["channels"] = channels;
    notes["inherited"] = inherited;
    notes["settings"] = noted_settings();
    notes["attributes"] = noted_attributes();
    Json::to_cbor(notes, made.notes);
    return made;
}

void resume_notes(const std::string& bytes) {
    const Json notes = parse_state(bytes);
    std::vector<LauncherChannel> channels;
    for (const Json& one : notes.at("channels")) channels.push_back({one.at(0), one.at(1), one.at(2)});
    resume_launcher_channels(std::move(channels));
    for (int i = 0; i < 3; ++i)
        resume_inherited_descriptor(i, notes.at("inherited").at(static_cast<size_t>(i)));
    resume_settings(notes.at("settings"));
    resume_attributes(notes.at("attributes"));
}

Restored restore_in_child(const std::string& bytes, const Limits& limits) {
    Restored restored;
    raw::set_signal_mask(raw::kAllSignals);
    try {
        Json state = parse_state(bytes);
        restore_limits(state.at("settings"), restored.warnings);
        restore_attributes(state.at("attributes"), restored.warnings);
        restore_signals(state.at("signals"), limits.ids);
    } catch (const Refused& refused) {
        restored.error = refused.line;
    } catch (const std::exception& error) {
        restored.error = std::string("what a process hands over is damaged: ") + error.what();
    }
    return restored;
}

void end_with_peer(int socket, bool on) {
    const int flags = ::fcntl(socket, F_GETFL);
    if (flags < 0 || ::fcntl(socket, F_SETOWN, ::getpid()) != 0 ||
        ::fcntl(socket, F_SETSIG, on ? SIGKILL : 0) != 0 ||
        ::fcntl(socket, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC) != 0)
        fail_errno("cannot have this process end with the one that it goes on for");
    pollfd now{socket, POLLIN, 0};
    if (on && ::poll(&now, 1, 0) != 0) ::_exit(static_cast<int>(ExitCode::failed));
}

}  // namespace fermata::split::process
