#include "front/objects/connected.h"

#include "front/core/bridge.h"
#include "front/core/library_lock.h"
#include "front/core/line.h"
#include "front/objects/api.h"
#include "front/objects/comm_make.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

struct Connections {
    SpinLock lock;                       // the numbers of strangers
    volatile bool met;                   // some are known
    int32_t forgotten;                   // numbers given out before the lower half began anew
    volatile int32_t open;               // communicators with strangers
    volatile int32_t ports;              // opened and not closed
    volatile int32_t connecting;         // threads in a call that may wait for other processes
    const char* volatile connecting_in;  // one of these calls
};
constinit Connections connections{};

}  // namespace

bool has_stranger(const Members& members) noexcept {
    for (Member member : members)
        if (member.is_stranger()) return true;
    return false;
}

int read_members(RealComm real, bool remote, Members* members) noexcept {
    int n = 0;
    int rc = remote ? LOWER(Comm_remote_size)(real, &n) : LOWER(Comm_size)(real, &n);
    if (rc != FM_SUCCESS) return rc;
    Vec<int> numbers(static_cast<size_t>(n), FM_UNDEFINED);
    members->clear();
    members->reserve(numbers.size());
    SpinGuard guard(connections.lock);
    rc = LOWER(WorldRanksOfComm)(real, remote, n, numbers.data());
    if (rc != FM_SUCCESS) return rc;
    for (int number : numbers) {
        if (number < 0) return FM_ERR_INTERN;  // the library knows the process as nothing
        if (number < front.world_size) {
            members->push_back(played_by(PhysicalRank(number)));
        } else {
            connections.met = true;
            members->push_back(Member::stranger(connections.forgotten + (number - front.world_size)));
        }
    }
    return FM_SUCCESS;
}

bool library_numbers(const Members& members, Vec<int>* numbers) noexcept {
    numbers->clear();
    numbers->reserve(members.size());
    for (Member member : members) {
        if (!member.is_stranger()) {
            numbers->push_back(physical_rank(member.rank()).number());
            continue;
        }
        int32_t met = member.which_stranger() - connections.forgotten;
        if (met < 0) return false;
        numbers->push_back(front.world_size + met);
    }
    return true;
}

bool connected_now() noexcept { return (connections.open | connections.connecting) != 0; }

bool connected_refuse(char* why, size_t size) noexcept {
    Line line(why, size);
    if (connections.connecting != 0) {
        line << "inside " << connections.connecting_in
             << ", which may wait for other processes: try again when it has returned";
        return true;
    }
    if (connections.open != 0) {
        library_lock.lock();
        CommObject* comm = first_comm();
        while (comm != nullptr && !comm->connected) comm = comm->next;
        if (comm != nullptr) {
            line << "connected to processes outside of the job by " << comm->origin;
            if (!comm->name.empty()) line << " (communicator \"" << comm->name.c_str() << "\")";
            line << ": MPI_Comm_disconnect or MPI_Comm_free all communicators with them first";
        }
        library_lock.unlock();
        if (comm != nullptr) return true;
    }
    if (connections.ports != 0) {
        line << "a port is open (MPI_Open_port), whose name would mean nothing after a restart: "
                "MPI_Close_port it "
                "first";
        return true;
    }
    return false;
}

void connection_made(CommObject* comm) noexcept {
    comm->connected = true;
    __atomic_add_fetch(&connections.open, 1, __ATOMIC_SEQ_CST);
}

void connection_gone(CommObject* comm) noexcept {
    if (!__atomic_exchange_n(&comm->connected, false, __ATOMIC_SEQ_CST)) return;
    __atomic_sub_fetch(&connections.open, 1, __ATOMIC_SEQ_CST);
}

void connections_tidy() noexcept {
    if (!connections.met) return;
    SpinGuard guard(connections.lock);
    if (connected_now()) return;
    connections.forgotten += LOWER(ForgetStrangers)();
    connections.met = false;
}

int uid_of_connected(const CommObject& made, uint64_t* uid) noexcept {
    *uid = fresh_uid();
    if (made.stranger) return FM_SUCCESS;
    RealComm real{made.real};
    RealDatatype byte = to_real(FM_BYTE);
    if (!made.inter) return LOWER(Bcast)(uid, sizeof *uid, byte, 0, real);
    // The lower side's first tells the other side, whose first tells it back.
    int sender = made.rank == 0 ? FM_ROOT : FM_PROC_NULL;
    int rc = LOWER(Bcast)(uid, sizeof *uid, byte, made.low ? sender : 0, real);
    return rc != FM_SUCCESS ? rc : LOWER(Bcast)(uid, sizeof *uid, byte, made.low ? 0 : sender, real);
}

int refuse_strangers(const char* function) noexcept {
    char text[160];
    Line line(text, sizeof text);
    line << function << ": not supported by fermata on a communicator with processes outside of the job";
    bridge()->warn(text);
    return FM_ERR_UNSUPPORTED_OPERATION;
}

void connecting_begins(const char* function) noexcept {
    connections.connecting_in = function;
    __atomic_add_fetch(&connections.connecting, 1, __ATOMIC_SEQ_CST);
    if (front.attention != 0) bridge()->poke_agent();
}
void connecting_ends() noexcept { __atomic_sub_fetch(&connections.connecting, 1, __ATOMIC_SEQ_CST); }

void port_opened() noexcept { __atomic_add_fetch(&connections.ports, 1, __ATOMIC_SEQ_CST); }
void port_closed() noexcept {
    if (connections.ports > 0) __atomic_sub_fetch(&connections.ports, 1, __ATOMIC_SEQ_CST);
}

}  // namespace fermata::front
