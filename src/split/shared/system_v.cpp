#include "split/shared/system_v.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/proc_text.h"
#include "split/alloc/shared_segments.h"
#include "split/shared/ipc.h"

namespace fermata::split::shared {
namespace {

using nlohmann::json;

#ifndef MSG_COPY
constexpr int MSG_COPY = 040000;
#endif

union Argument {
    int value;
    unsigned short* values;
};

std::set<std::pair<Kind, int>>& known() {
    static std::set<std::pair<Kind, int>> objects;
    return objects;
}

// Numbers in the second column of a table in /proc/sysvipc.
std::vector<int> numbers_in(const char* table) {
    std::vector<int> numbers;
    std::istringstream lines(read_proc(std::string("/proc/sysvipc/") + table));
    std::string line;
    std::getline(lines, line);  // names of the columns
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        long key = 0;
        int id = 0;
        if (words >> key >> id) numbers.push_back(id);
    }
    return numbers;
}

bool used_by_us(int id, const semid_ds& status) {
    constexpr unsigned long kMost = 4096;  // questions
    for (unsigned long i = 0; i < std::min(status.sem_nsems, kMost); ++i)
        if (::semctl(id, static_cast<int>(i), GETPID) == ::getpid()) return true;
    return false;
}

const char* word_of(Kind kind) { return kind == Kind::semaphores ? "semaphores" : "message queue"; }

json describe_permissions(const Key& key, const ipc_perm& permissions) {
    json one = describe_ipc(static_cast<int>(key.inode), permissions);
    one["name"] = fmt::format("System V {} {}", word_of(key.kind), key.inode);
    return one;
}

struct Message {
    long type;
    char text[1];
};

json read_messages(int id, const msqid_ds& status) {
    std::vector<char> buffer(sizeof(Message) + status.__msg_cbytes + 1);
    auto* message = reinterpret_cast<Message*>(buffer.data());
    json messages = json::array();
    for (long i = 0; i < static_cast<long>(status.msg_qnum); ++i) {
        ssize_t size = ::msgrcv(id, message, status.__msg_cbytes, i, MSG_COPY | IPC_NOWAIT);
        if (size < 0)
            fail(
                "cannot read the messages of System V message queue {}: {} (a kernel without "
                "CONFIG_CHECKPOINT_RESTORE?)",
                id, std::strerror(errno));
        messages.push_back({message->type, json::binary({message->text, message->text + size})});
    }
    return messages;
}

void put_messages(int id, const json& messages) {
    for (const json& one : messages) {
        const auto& bytes = one.at(1).get_binary();
        std::vector<char> buffer(sizeof(Message) + bytes.size());
        auto* message = reinterpret_cast<Message*>(buffer.data());
        message->type = one.at(0).get<long>();
        std::memcpy(message->text, bytes.data(), bytes.size());
        if (::msgsnd(id, message, bytes.size(), IPC_NOWAIT) != 0)
            fail("cannot put a message back into System V message queue {}: {}", id, std::strerror(errno));
    }
}

// Everything out: what came after the checkpoint comes again.
void empty(int id) {
    std::vector<char> buffer(sizeof(Message) + (1 << 16));
    while (::msgrcv(id, buffer.data(), 1 << 16, 0, IPC_NOWAIT | MSG_NOERROR) >= 0) {
    }
}

int find(Kind kind, const json& saved, bool& exists) {
    int id = saved.at("id").get<int>();
    semid_ds set{};
    msqid_ds queue{};
    exists = kind == Kind::semaphores ? status_of(id, set) : status_of(id, queue);
    if (!exists) return -1;
    const ipc_perm& there = kind == Kind::semaphores ? set.sem_perm : queue.msg_perm;
    bool alike = kind != Kind::semaphores || set.sem_nsems == saved.at("values").size();
    return alike && is_ours(there, saved) ? id : -1;
}

int make(Kind kind, const json& saved) {
    auto key = saved.at("ipc_key").get<key_t>();
    int flags = IPC_CREAT | IPC_EXCL | saved.at("mode").get<int>();
    return kind == Kind::semaphores ? ::semget(key, static_cast<int>(saved.at("values").size()), flags)
                                    : ::msgget(key, flags);
}

void remove(Kind kind, int id) {
    if (kind == Kind::semaphores)
        ::semctl(id, 0, IPC_RMID);
    else
        ::msgctl(id, IPC_RMID, nullptr);
}

}  // namespace

void note_system_v(Kind kind, int id) { known().insert({kind, id}); }

std::vector<Use> used_system_v(const std::set<int>& not_ours) {
    for (int id : numbers_in("sem")) {
        semid_ds status{};
        if (status_of(id, status) && used_by_us(id, status)) note_system_v(Kind::semaphores, id);
    }
    for (int id : numbers_in("msg")) {
        msqid_ds status{};
        if (status_of(id, status) && (status.msg_lspid == ::getpid() || status.msg_lrpid == ::getpid()))
            note_system_v(Kind::messages, id);
    }
    for (int id : numbers_in("shm")) {
        shmid_ds status{};
        if (!not_ours.contains(id) && !lower_segment(id) && status_of(id, status) &&
            (status.shm_cpid == ::getpid() || status.shm_lpid == ::getpid()))
            note_system_v(Kind::segment, id);
    }
    std::vector<Use> uses;
    std::erase_if(known(), [&](const auto& one) {
        auto [kind, id] = one;
        shmid_ds segment{};
        if (kind == Kind::segment) {
            // A removed one belongs to those who have it attached.
            if (!status_of(id, segment) || (segment.shm_perm.mode & SHM_DEST)) return true;
            Use use;
            use.key = {kind, this_ipc(), 0, static_cast<uint64_t>(id)};
            use.size = segment.shm_segsz;
            uses.push_back(use);
            return false;
        }
        semid_ds set{};
        msqid_ds queue{};
        if (kind == Kind::semaphores ? !status_of(id, set) : !status_of(id, queue)) return true;
        Use use;
        use.key = {kind, this_ipc(), 0, static_cast<uint64_t>(id)};
        uses.push_back(use);
        return false;
    });
    return uses;
}

json describe_system_v(const Key& key, bool content, std::vector<std::string>& warnings) {
    int id = static_cast<int>(key.inode);
    json one;
    if (key.kind == Kind::semaphores) {
        semid_ds status{};
        if (!status_of(id, status)) fail("System V semaphores {} have gone: {}", id, std::strerror(errno));
        one = describe_permissions(key, status.sem_perm);
        std::vector<unsigned short> values(status.sem_nsems);
        Argument argument{};
        argument.values = values.data();
        if (::semctl(id, 0, GETALL, argument) != 0)
            fail("cannot read System V semaphores {}: {}", id, std::strerror(errno));
        one["values"] = values;
    } else {
        msqid_ds status{};
        if (!status_of(id, status)) fail("System V message queue {} has gone: {}", id, std::strerror(errno));
        one = describe_permissions(key, status.msg_perm);
        one["messages"] = content ? read_messages(id, status) : json::array();
    }
    if (content && ::geteuid() != 0)
        warnings.push_back(
            fmt::format("System V {} {}: come back only where they still exist, this node, or as root",
                        word_of(key.kind), id));
    return one;
}

int make_system_v(Kind kind, const json& saved, std::vector<std::string>& warnings) {
    int wanted = saved.at("id").get<int>();
    bool exists = false;
    int id = find(kind, saved, exists);
    if (id < 0 && exists)
        fail(
            "System V {} {} on this node are others than the program's, which had that number: remove them "
            "(ipcrm) and restart again",
            word_of(kind), wanted);
    if (id < 0) {
        ask_for_number(kind == Kind::semaphores ? "sem" : "msg", wanted);
        id = make(kind, saved);
        if (id < 0) fail("cannot make System V {} {} again: {}", word_of(kind), wanted, std::strerror(errno));
    }
    if (id != wanted) {
        remove(kind, id);
        warnings.push_back(
            fmt::format("System V {} {} are not on this node, and only root can ask for their number: the "
                        "program finds none under it",
                        word_of(kind), wanted));
        return -1;
    }
    if (kind == Kind::semaphores) {
        auto values = saved.at("values").get<std::vector<unsigned short>>();
        Argument argument{};
        argument.values = values.data();
        if (::semctl(id, 0, SETALL, argument) != 0)
            fail("cannot set System V semaphores {} again: {}", id, std::strerror(errno));
    } else {
        empty(id);
        put_messages(id, saved.at("messages"));
    }
    note_system_v(kind, id);
    return id;
}

}  // namespace fermata::split::shared
